"""Micro-batches of Spark into a stream: `df.writeStream.format("dsms").option("server",
...).option("stream", s)`.

    writer   a name that this writer keeps over restarts; two that write at once have two

Each partition of it is one writer for the server, and its frames are numbered by micro-batch, so a
micro-batch that is run again, by a retry or from a checkpoint, adds nothing twice (if it has the
same rows in the same order).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as source

from dsms_spark.options import Options, needed
from dsms_spark.source_server import Written, check, sent

BATCH = "streaming.sql.batchId"
FRAMES = 1 << 20  # of a partition of a micro-batch, at most


class MicroBatchWriter(source.DataSourceStreamArrowWriter):  # type: ignore[misc]
    """Appends the rows of micro-batches, columns by name."""

    def __init__(self, options: Options, refused: str) -> None:
        needed(options, "server", "host:port")
        needed(options, "stream", "the stream that takes the rows")
        self._name = needed(
            options, "writer", "a name that this writer keeps when it is started again"
        )
        self._options, self._refused = dict(options), refused

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """One partition of a micro-batch."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        batch = int(context.getLocalProperty(BATCH))  # type: ignore[arg-type]
        return sent(
            self._options, f"{self._name}-{context.partitionId()}", batch * FRAMES, iterator
        )

    def commit(self, messages: list[Any], batchId: int) -> None:
        """All partitions are written.  Raises DS512 if rows were not taken and that is an error."""
        if self._refused == "error":
            check(messages)

    def abort(self, messages: list[Any], batchId: int) -> None:
        """A task has failed for good.  What was written stays in the stream, and is not written
        again."""
