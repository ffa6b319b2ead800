"""A Spark session for archives: embedded in this process unless a cluster is named."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

from dsms.errors import UsageError
from dsms_spark.java import use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONF = {  # what a session may change at any time
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.sources.partitionOverwriteMode": "static",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
}
QUIET = ("py4j", "pyspark")


def get_session(
    master: str | None = None, memory: str | None = None, more: dict[str, Any] | None = None
) -> SparkSession:
    """The session of this process, made if there is none.

    master  `local[*]` unless said (or SPARK_MASTER is set); any Spark master, or `sc://host:port` for Spark Connect
    memory  of an embedded driver, e.g. `4g`
    more    further settings of Spark
    Raises DS650 (no Java), DS651 (no pyspark), DS652 (Spark does not start)."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise UsageError("DS651", "PySpark is not installed", hint="pip install 'dsms[spark]'") from None
    master = master or os.environ.get("SPARK_MASTER") or "local[*]"
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.ERROR)
    builder: Any = SparkSession.builder.appName("dsms")
    if master.startswith("sc://"):
        builder = builder.remote(master)
    else:
        use_java()
        builder = builder.master(master).config("spark.ui.enabled", "false")
        builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
        if master.startswith("local"):
            cores = os.cpu_count() or 2
            builder = builder.config("spark.sql.shuffle.partitions", str(cores)).config(
                "spark.driver.host", "127.0.0.1"
            )
            builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
        if memory is not None:
            builder = builder.config("spark.driver.memory", memory)
    for name, value in {**CONF, **(more or {})}.items():
        builder = builder.config(name, value)
    try:
        return prepared(builder.getOrCreate())
    except UsageError:
        raise
    except Exception as error:
        raise UsageError("DS652", f"Spark does not start ({master}): {error}",
                         hint="check --master, the memory of the machine, and JAVA_HOME") from error  # fmt: skip


def prepared(spark: SparkSession) -> SparkSession:
    """A session, whoever made it, that reads and writes archives as they must be."""
    for name, value in CONF.items():
        if name != "spark.sql.sources.partitionOverwriteMode":
            spark.conf.set(name, value)
    return spark
