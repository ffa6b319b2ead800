"""The rows that streams keep -> Parquet files, and the statements that send them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsms.errors import DsmsError
from dsms_client import literals
from dsms_client.files.fed import Made, arranged, movable, read
from dsms_client.files.timecolumn import own_columns
from dsms_client.shell import show

if TYPE_CHECKING:
    import pyarrow as pa

    from dsms_client.sync import Client

FED = "that of "  # how SHOW STREAMS says that queries give a stream's time
ENDED = "it has ended"


def written(client: Client, folder: Path, made: Iterable[Made]) -> Iterator[str]:
    """Write a file for each stream; all statements in the order in which they are to be run, and
    what is not in the files as comments.  Then clocks are set to where they stand."""
    status = client.query("SHOW STREAMS")
    streams = [dict(zip(status.columns, row, strict=True)) for row in status.rows]
    columns = client.names()["streams"]
    timed = {s["stream"] for s in streams if _is_timed(client, s)}
    stamped = {s["stream"].casefold() for s in streams if s["clock"].startswith("system time")}
    declared = [read(one, columns, timed) for one in made]
    moved = movable(declared, timed, stamped)
    plan = arranged(declared, moved)
    yield from plan.first
    by_key = {s["stream"].casefold(): s for s in streams}
    for number, (key, texts) in enumerate(plan.then.items()):
        yield from _rows(client, folder, by_key[key], number)
        yield from _clock(by_key[key], ends=False)
        yield from texts
    rest = [s for s in streams if s["stream"].casefold() not in moved]
    for number, stream in enumerate(rest, len(plan.then)):
        if stream["clock"].startswith(FED):
            name = literals.name(stream["stream"])
            yield f"-- stream {name}: its rows come again from what its sources keep"
        else:
            yield from _rows(client, folder, stream, number)
    for stream in rest:
        if not stream["clock"].startswith(FED):
            yield from _clock(stream)
    yield from plan.last


def _is_timed(client: Client, stream: dict[str, Any]) -> bool:
    """Whether rows say their instants in a column; those with KEY take places, and are not all
    kept."""
    described = client.query(f"DESCRIBE {literals.name(stream['stream'])}")
    notes = [note or "" for *_, note in described.rows]
    return stream["key"] is None and any(note.startswith("event time") for note in notes)


def _rows(client: Client, folder: Path, stream: dict[str, Any], number: int) -> Iterator[str]:
    name = literals.name(stream["stream"])
    if stream["waiting"]:
        yield f"-- stream {name}: {stream['waiting']} rows wait behind its clock"
    if stream["since"] is not None:
        gone = f"rows before {show.instant(stream['since'])} are no longer kept"
        yield f"-- stream {name}: {gone}; of windows that reach further back they will be missing"
    file = f"stream{number}.parquet"
    if _write(client, stream["stream"], folder / file, stream):
        yield f"COPY {name} FROM '{file}';"


def _clock(stream: dict[str, Any], ends: bool = True) -> Iterator[str]:
    """Where it stands; that of a stream which queries feed ends with those."""
    name, ended = literals.name(stream["stream"]), (stream["waits_for"] or "").endswith(ENDED)
    at = stream["newest"] if ended else stream["complete"]
    if ended and ends:
        yield f"END STREAM {name};"
    elif at is not None and (not ends or stream["clock"].startswith("event time")):
        yield f"HEARTBEAT {name} AT {literals.quoted(show.instant(at))};"


def _write(client: Client, name: str, path: Path, status: dict[str, Any]) -> int:
    """How many rows it was."""
    import pyarrow.parquet as pq

    made, _ = client.work(lambda one: own_columns(one, name))
    timed = status["clock"].startswith(("event time", FED))
    if status["key"] is not None:  # what it holds are rows that take places
        made = {*made, "_op"}
    given = [column for column, _ in client.names()["streams"][name] if column not in made]
    asked = f"SELECT {', '.join(map(literals.name, given))} FROM {literals.name(name)} s"
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
