"""The Spark data source `dsms`: archives, live answers and streams of results in, rows out to
streams.

    spark.read.format("dsms").option("path", folder)                       an archive (`source_archive`)
    spark.read.format("dsms").option("server", "host:port")                what a server answers now (`source_server`)
        .option("sql", "SELECT ...") | .option("query", q) | .option("stream", s).option("window",
        "RANGE 1 HOUR")
    spark.readStream.format("dsms").option("server", ...).option("query", q)   its pushes (`source_stream`)
    df.write.format("dsms").option("server", ...).option("stream", s).mode("append")   rows into a stream
    df.writeStream.format("dsms") ... .option("writer", name)              ... of a stream of Spark's (`source_sink`)

Spark's types: TIMESTAMP is an instant (`timestamp`), INTERVAL a `interval day to second`, INT
`bigint`, FLOAT `double`, the others as they are called.  Further options of a server: token, tls
(true, or a file with a certificate).
"""  # noqa: E501

from __future__ import annotations

from typing import TYPE_CHECKING

from dsms.errors import INSTALL_SPARK, UsageError

try:
    from pyspark.sql.datasource import (  # noqa: F401
        DataSource,
        DataSourceArrowWriter,
        DataSourceStreamArrowWriter,
        Filter,
    )
except ImportError as problem:
    raise UsageError(
        "DS651", f"the format `dsms` needs PySpark 4.1 or later: {problem}", hint=INSTALL_SPARK
    ) from None

from dsms_spark.options import choice, number, options_of, refuse_unknown

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType

ARCHIVE = ("path", "since", "until", "marks")
SERVER = ("server", "token", "tls")
SNAPSHOT = (*SERVER, "sql", "query", "stream", "window")
STREAM = (*SERVER, "query", "start", "maxrowspertrigger")
WRITE = (*SERVER, "stream", "end", "refused")
SINK = (*SERVER, "stream", "writer", "refused", "checkpointlocation", "path")


class DsmsDataSource(DataSource):
    """What `dsms_spark.register(spark)` makes known."""

    @classmethod
    def name(cls) -> str:
        return "dsms"

    def schema(self) -> StructType:
        """The columns of what the options name; results of a query have `_kind`, `_seq` and `_at`
        besides."""
        options = options_of(self.options)
        if "path" in options:
            from dsms_spark.source_archive import schema_of

            return schema_of(options)
        from dsms_spark.source_server import schema_of as answer_schema

        return answer_schema(options)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = options_of(self.options)
        if "path" in options:
            refuse_unknown(options, ARCHIVE)
            from dsms_spark.source_archive import ArchiveReader

            return ArchiveReader(options, schema)
        refuse_unknown(options, SNAPSHOT)
        from dsms_spark.source_server import AnswerReader

        return AnswerReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options = options_of(self.options)
        refuse_unknown(options, STREAM)
        from dsms_spark.source_stream import ResultReader

        return ResultReader(options, schema, number(options, "maxrowspertrigger"))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        options = options_of(self.options)
        refuse_unknown(options, WRITE)
        if overwrite:
            raise UsageError("DS640", "a stream can only be appended to", hint='.mode("append")')
        from dsms_spark.source_server import StreamWriter

        return StreamWriter(options, choice(options, "refused", ("error", "ignore")))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        options = options_of(self.options)
        refuse_unknown(options, SINK)
        if overwrite:
            raise UsageError(
                "DS640", "a stream can only be appended to", hint='.outputMode("append")'
            )
        from dsms_spark.source_sink import MicroBatchWriter

        return MicroBatchWriter(options, choice(options, "refused", ("error", "ignore")))
