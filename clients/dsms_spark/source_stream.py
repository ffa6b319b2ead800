"""Results of a persistent query for `spark.readStream.format("dsms").option("server",
...).option("query", q)`.

Offsets are the numbers of result rows, which are a function of the query's input: a stream that
goes on from its checkpoint reads the very rows that it would have read, each once.  The server
keeps the newest result rows of a query (`WITH (result_log = n)`); a stream that was away for longer
fails with DS409 rather than leave some out.

    start              earliest (the default: row 0), latest, or a number
    maxRowsPerTrigger  at most so many rows in one micro-batch

Besides the query's columns each row has `_kind` (insert, delete, result), `_seq` (its number) and
`_at` (its instant).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import datasource as source

from dsms.errors import UsageError
from dsms_spark.options import Options, arrow_of, connected, fitted, marked, needed, newest

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from dsms_client.changes import Changes
    from dsms_client.sync import ChangesReader, Client

KINDS = ("delete", "result", "insert")  # of the signs -1, 0, 1
WAIT_SECONDS = 30.0  # for rows that the server has


@dataclass(frozen=True, slots=True)
class Span(source.InputPartition):  # type: ignore[misc]
    """Result rows numbered start, ..., end - 1."""

    start: int
    end: int


class ResultReader(source.DataSourceStreamReader):  # type: ignore[misc]
    """One task a micro-batch: rows come in their order."""

    def __init__(self, options: Options, schema: StructType, most: int | None) -> None:
        self._query = needed(options, "query", "a persistent query")
        self._options, self._schema, self._most = dict(options), arrow_of(schema), most

    def initialOffset(self) -> dict[str, int]:
        """Where a stream without a checkpoint begins."""
        start = self._options.get("start", "earliest")
        if start == "latest":
            with connected(self._options) as client:
                return {"seq": newest(client, self._query)}
        if start != "earliest" and not start.isdecimal():
            raise UsageError(
                "DS640", f"start is earliest, latest or the number of a row, not {start!r}"
            )
        return {"seq": 0 if start == "earliest" else int(start)}

    def latestOffset(
        self, start: dict[str, int] | None = None, limit: Any = None
    ) -> dict[str, int]:
        """How far the results have got, or as far as one micro-batch is to go."""
        with connected(self._options) as client:
            last = newest(client, self._query)
        if start is None:
            return {"seq": last}
        if last < start["seq"]:
            raise UsageError(
                "DS409",
                f"{self._query} has {last} result rows, and this stream has read {start['seq']}: "
                "they were numbered anew, by a server without --data or CREATE QUERY",
                hint="begin again with another checkpoint",
            )
        most = self._most if getattr(limit, "max_rows", None) is not None or limit is None else None
        return {"seq": last if most is None else min(last, start["seq"] + most)}

    def getDefaultReadLimit(self) -> Any:
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

        return ReadAllAvailable() if self._most is None else ReadMaxRows(self._most)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Span]:
        """The rows of a micro-batch."""
        return [Span(start["seq"], end["seq"])] if end["seq"] > start["seq"] else []

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The rows of a span, the same ones every time.  Raises DS409 where the server has them no
        more."""
        with (
            connected(self._options) as client,
            _subscribed(client, self._query, partition.start) as results,
        ):
            at = partition.start
            while at < partition.end:
                changes = _next(results, self._query, at)
                if len(changes):
                    yield from fitted(_rows(changes).slice(0, partition.end - at), self._schema)
                    at = changes.next_seq

    def commit(self, end: dict[str, int]) -> None:
        """The server keeps rows by their number, whether they have been read or not."""


def _subscribed(client: Client, query: str, start: int) -> ChangesReader:
    try:
        return client.changes(query, start)
    except UsageError as problem:
        if problem.code == "DS409":
            problem.hint = (
                '.option("start", "latest") with a new checkpoint begins with what comes '
                "from now on; "
                "a larger WITH (result_log = n) keeps more"
            )
        raise


def _next(results: Any, query: str, at: int) -> Changes:
    try:
        changes: Changes | None = results.next(WAIT_SECONDS)
    except TimeoutError:
        raise UsageError(
            "DS409", f"result row {at} of {query} did not come", hint="is the server at work?"
        ) from None
    if changes is None:
        raise UsageError(
            "DS409",
            f"the results of {query} ended before row {at}",
            hint="the query was dropped, or the server stops",
        )
    return changes


def _rows(changes: Changes) -> pa.Table:
    """Rows with their marks."""
    kinds = pa.array(KINDS).take(pa.array(changes.sign + 1, pa.int64()))
    numbers = pa.array(np.arange(changes.seq, changes.next_seq))
    return marked(changes.data.table(), kinds, numbers, changes.ats)
