"""A server's answers for `spark.read.format("dsms").option("server", "host:port")`, and rows for
its streams.

    sql             any SELECT
    query           the answer of a registered query as it is now; with the columns of its stream,
                    `_kind` (snapshot), `_seq` (the number of the result row that comes next) and
                    `_at` (the instant of the answer)
    stream, window  what a stream's window holds now, for example `RANGE 1 HOUR`

The answer is taken when Spark plans the reading, once for all tasks.  Written rows go to the stream
in frames that are numbered in each partition, so a task that is run again adds nothing twice (if it
has the same rows in the same order).  Partitions write side by side: for a stream with TIMESTAMP BY
sort within one partition, or declare enough SLACK.

    end      true: say that the stream has ended when all is written
    refused  error (the default): fail if rows were refused or late, the others stand; ignore
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import datasource as source

from dsms.errors import UsageError
from dsms.tabular.names import unique
from dsms_client.results import RowSet
from dsms_spark.options import (
    MARKS,
    Options,
    arrow_of,
    connected,
    fitted,
    marked,
    named_types,
    needed,
    newest,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

PART_ROWS = 100_000  # of an answer that one task takes
FRAME_ROWS = 16_384  # that are sent at a time


def statement(options: Options) -> str:
    """The SELECT that the options stand for.  Raises DS640."""
    said = [name for name in ("sql", "query", "stream") if name in options]
    if len(said) != 1:
        raise UsageError(
            "DS640",
            "what is to be read is named by one of the options sql, query and stream",
            hint="a path reads an archive",
        )
    match said[0]:
        case "sql":
            return options["sql"].strip().rstrip(";")
        case "query":
            return f"SELECT * FROM {options['query']}"
    window = needed(options, "window", "how much of the stream, for example RANGE 1 HOUR")
    return f"SELECT * FROM {options['stream']} [{window.strip().strip('[]')}]"


def schema_of(options: Options) -> StructType:
    """The columns of the answer.  The server is asked for no rows where the statement can be
    wrapped."""
    from dsms.errors import QueryError

    asked = statement(options)
    with connected(options) as client:
        try:
            answer = client.query(f"SELECT * FROM ({asked}) LIMIT 0")
        except QueryError:
            answer = client.query(asked)
        except UsageError as problem:
            if problem.code != "DS410" or "query" not in options:
                raise
            # it keeps no answer, but tells what it reports
            reported = client.query(f"DESCRIBE {options['query']}")
            return named_types([*((row[0], row[1]) for row in reported.rows), *MARKS])
    columns = list(zip(unique(answer.columns), answer.types, strict=True))
    return named_types([*columns, *MARKS] if "query" in options else columns)


def whole(answer: RowSet) -> RowSet:
    """The answer; DS407 where it lacks rows, which a DataFrame could not say."""
    from dsms.intake.values import instant_text

    if answer.since is not None:
        raise UsageError(
            "DS407",
            f"the answer is complete from {instant_text(answer.since)} on only: rows before that "
            "are not kept any more, and a DataFrame can't say so",
            hint="take shorter windows, or declare the stream with a longer RETAIN",
        )
    return answer


@dataclass(frozen=True, slots=True)
class AnswerPartition(source.InputPartition):  # type: ignore[misc]
    """A piece of the answer, as an Arrow IPC stream."""

    data: bytes


class AnswerReader(source.DataSourceReader):  # type: ignore[misc]
    """The answer of a statement, asked once."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options, self._schema = dict(options), arrow_of(schema)

    def partitions(self) -> list[AnswerPartition]:
        """Ask, and cut the answer to pieces."""
        from dsms_client.columns import ipc

        with connected(self._options) as client:
            seq = newest(client, self._options["query"]) if "query" in self._options else None
            answer = whole(client.query(statement(self._options)))
        table = (
            answer.table() if seq is None else marked(answer.table(), "snapshot", seq, answer.as_of)
        )
        starts = range(0, max(1, table.num_rows), PART_ROWS)
        return [AnswerPartition(bytes(ipc(table.slice(start, PART_ROWS)))) for start in starts]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The rows of a piece."""
        from dsms_client.columns import from_ipc

        yield from (
            batch for batch in fitted(from_ipc(partition.data), self._schema) if batch.num_rows
        )


@dataclass(frozen=True, slots=True)
class Written(source.WriterCommitMessage):  # type: ignore[misc]
    """What became of a partition's rows."""

    accepted: int
    late: int
    refused: int
    reasons: tuple[str, ...]


class StreamWriter(source.DataSourceArrowWriter):  # type: ignore[misc]
    """Appends rows to a stream, columns by name.  Made once for a job: all tries of a task have the
    same name."""

    def __init__(self, options: Options, refused: str) -> None:
        needed(options, "server", "host:port")
        needed(options, "stream", "the stream that takes the rows")
        self._options, self._refused = dict(options), refused
        self._job = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """One partition; tries of it have one name at the server, where frames of one number are
        taken once."""
        from pyspark import TaskContext

        context = TaskContext.get()
        part = 0 if context is None else context.partitionId()
        return sent(self._options, f"spark-{self._job}-{part}", 0, iterator)

    def commit(self, messages: list[Any]) -> None:
        """All partitions are written.  Raises DS512 if rows were not taken and that is an error."""
        if self._options.get("end") == "true":
            with connected(self._options) as client:
                client.end(self._options["stream"])
        if self._refused == "error":
            check(messages)

    def abort(self, messages: list[Any]) -> None:
        """A task has failed for good.  What was written stays in the stream: rows are never taken
        back."""


def sent(options: Options, name: str, seq: int, batches: Iterator[pa.RecordBatch]) -> Written:
    """Send rows as the writer of that name, in frames numbered from `seq` on."""
    from dsms_client.results import IngestReport

    total = IngestReport()
    with connected(options, client=name, seq=seq) as client:
        for frame in _frames(batches):
            total += client.ingest(options["stream"], frame)
    return Written(total.accepted, total.late, total.refused, total.reasons)


def check(messages: list[Any]) -> None:
    """Raise DS512 if rows were not taken."""
    reported = [m for m in messages if m is not None]
    late, refused = sum(m.late for m in reported), sum(m.refused for m in reported)
    if late or refused:
        reasons = list(dict.fromkeys(r for m in reported for r in m.reasons))
        raise UsageError(
            "DS512",
            f"{refused} rows were refused and {late} came too late; the others stand: "
            + "; ".join(reasons[:3]),
            hint='.option("refused", "ignore") lets that pass',
        )


def _frames(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows in frames of one size, wherever Spark cuts its batches."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        while count >= FRAME_ROWS:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, FRAME_ROWS).combine_chunks()
            rest = table.slice(FRAME_ROWS)
            waiting, count = rest.to_batches(), rest.num_rows
    if count:
        yield pa.Table.from_batches(waiting).combine_chunks()
