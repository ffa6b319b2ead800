"""The rows that streams keep -> Parquet files, and the statements that send them again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsms.errors import DsmsError
from dsms_client import literals
from dsms_client.files.timecolumn import own_columns
from dsms_client.shell import show

if TYPE_CHECKING:
    import pyarrow as pa

    from dsms_client.sync import Client

FED = "that of "  # how SHOW STREAMS says that queries give a stream's time
ENDED = "it has ended"


def written(client: Client, folder: Path) -> Iterator[str]:
    """Write a file for each stream, in the order of its time; the statements, and what is not in
    the files as comments.  Then clocks are set to where they stand."""
    status = client.query("SHOW STREAMS")
    streams = [dict(zip(status.columns, row, strict=True)) for row in status.rows]
    for number, stream in enumerate(streams):
        name = stream["stream"]
        if stream["clock"].startswith(FED):
            yield f"-- stream {literals.name(name)}: its rows come again from what its sources keep"
            continue
        if stream["waiting"]:
            yield f"-- stream {literals.name(name)}: {stream['waiting']} rows wait behind its clock"
        file = f"stream{number}.parquet"
        if _write(client, name, folder / file, stream):
            yield f"COPY {literals.name(name)} FROM '{file}';"
    for stream in streams:
        name, fed = literals.name(stream["stream"]), stream["clock"].startswith(FED)
        if (stream["waits_for"] or "").endswith(ENDED) and not fed:
            yield f"END STREAM {name};"
        elif stream["complete"] is not None and stream["clock"].startswith("event time"):
            yield f"HEARTBEAT {name} AT {literals.quoted(show.instant(stream['complete']))};"


def _write(client: Client, name: str, path: Path, status: dict[str, Any]) -> int:
    """How many rows it was."""
    import pyarrow.parquet as pq

    made, _ = client.work(lambda one: own_columns(one, name))
    if status["key"] is not None:  # what it holds are rows that take places
        made = {*made, "_op"}
    given = [column for column, _ in client.names()["streams"][name] if column not in made]
    asked = f"SELECT {', '.join(map(literals.name, given))} FROM {literals.name(name)} s"
    timed = status["clock"].startswith("event time")
    rows, writer = 0, None
    try:
        for table in _parts(client, f"{asked} [RANGE UNBOUNDED]", _span(client, name, timed)):
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
            rows += table.num_rows
    finally:
        if writer is not None:
            writer.close()
    if not rows:
        path.unlink(missing_ok=True)
    return rows


def _span(client: Client, name: str, timed: bool) -> tuple[int, int] | None:
    """The first and the last instant of a stream with event time; None: it has no rows, or none
    with an instant in a column."""
    if not timed:
        return None
    asked = f"SELECT MIN(INSTANT(s)), MAX(INSTANT(s)) FROM {literals.name(name)} s"
    ((first, last),) = client.query(f"{asked} [RANGE UNBOUNDED]").rows
    return None if first is None else (first, last)


def _parts(client: Client, asked: str, span: tuple[int, int] | None) -> Iterator[pa.Table]:
    """The answer, in as many parts of the time as it takes (DS623: one is too long)."""
    where = ""
    if span is not None:
        first, last = (literals.literal(at, "TIMESTAMP") for at in span)
        where = f" WHERE INSTANT(s) BETWEEN {first} AND {last}"
    try:
        table = client.query(asked + where).table()
    except DsmsError as problem:
        if problem.code != "DS623" or span is None or span[0] == span[1]:
            raise
        middle = (span[0] + span[1]) // 2
        yield from _parts(client, asked, (span[0], middle))
        yield from _parts(client, asked, (middle + 1, span[1]))
        return
    yield table
