"""The rows that streams keep -> Parquet files, and the statements that send them again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsms.instants import MAX_INSTANT
from dsms_client import literals
from dsms_client.files.fed import Made, arranged, furthest, movable, read, sources
from dsms_client.files.kept import FED, Files, write
from dsms_client.shell import show

if TYPE_CHECKING:
    from dsms_client.sync import Client

ENDED = "it has ended"
STAMPED = "system time"
Status = dict[str, Any]  # a line of SHOW STREAMS


def written(client: Client, folder: Path, made: Iterable[Made]) -> Iterator[str]:
    """Write a file for each stream; all statements in the order in which they are to be run, and
    what is not in the files as comments.  Then clocks are set to where they stand."""
    status = client.query("SHOW STREAMS")
    streams = [dict(zip(status.columns, row, strict=True)) for row in status.rows]
    columns = client.names()["streams"]
    timed = {s["stream"] for s in streams if _is_timed(client, s)}
    stamped = {s["stream"].casefold() for s in streams if s["clock"].startswith(STAMPED)}
    declared = [read(one, columns, timed) for one in made]
    moved = movable(declared, timed, stamped)
    known = _known(declared, streams, moved)
    plan = arranged([_with_since(one, known) for one in declared], moved)
    future = {one.name: furthest(one) for one in declared if one.kind == "stream"}
    yield from plan.first
    by_key = {s["stream"].casefold(): s for s in streams}
    for number, (key, texts) in enumerate(plan.then.items()):
        one = by_key[key]
        yield from _rows(client, folder, one, number, future.get(one["stream"]))
        yield from _clock(one, ends=False)
        yield from texts
    rest = [s for s in streams if s["stream"].casefold() not in moved]
    for number, stream in enumerate(rest, len(plan.then)):
        if stream["clock"].startswith(FED):
            name = literals.name(stream["stream"])
            yield f"-- stream {name}: its rows come again from what its sources keep"
        else:
            yield from _rows(client, folder, stream, number, future.get(stream["stream"]))
    for stream in rest:
        if not stream["clock"].startswith(FED):
            yield from _clock(stream)
    yield from plan.last


def _is_timed(client: Client, stream: Status) -> bool:
    """Whether rows say their instants in a column; those with KEY take places, and are not all
    kept."""
    described = client.query(f"DESCRIBE {literals.name(stream['stream'])}")
    notes = [note or "" for *_, note in described.rows]
    return stream["key"] is None and any(note.startswith("event time") for note in notes)


# ---------------------------------------------------------------- since when there are rows


def _known(declared: list[Made], streams: list[Status], moved: set[str]) -> dict[str, str]:
    """By stream, in small letters, the instant from which on its rows will be there, as text; those
    that lack none are left out.  Rows that are stamped anew are there from now on; what queries
    make again rests on the rows that their sources keep."""
    by_key = {s["stream"].casefold(): s for s in streams}
    found: dict[str, str] = {}
    for key, stream in by_key.items():
        again = stream["clock"].startswith(FED) and key not in moved
        rests = [by_key[k] for k in ({key, *sources(declared, key, moved)} if again else {key})]
        gone = [s["since"] for s in rests if s["since"] is not None and s["key"] is None]
        if stream["key"] is not None:
            found |= _held_since(key, stream)
        elif gone:
            anew = any(s["clock"].startswith(STAMPED) for s in rests)
            found[key] = "NOW" if anew else literals.literal(max(gone), "TIMESTAMP")
    return found


def _held_since(key: str, stream: Status) -> dict[str, str]:
    """`_known` of a stream with KEY: of what it held before now nothing comes.  One that queries
    feed takes what they make again."""
    ended = (stream["waits_for"] or "").endswith(ENDED)
    at = stream["newest"] if ended or stream["complete"] is None else stream["complete"]
    if at is None or stream["newest"] is None or stream["clock"].startswith(FED):
        return {}
    if stream["clock"].startswith(STAMPED):
        return {key: "NOW"}
    return {key: literals.literal(min(at + 1, MAX_INSTANT), "TIMESTAMP")}


def _with_since(made: Made, known: Mapping[str, str]) -> Made:
    """A stream with the statement that says since when its rows are known."""
    at = known.get(made.name.casefold()) if made.kind == "stream" else None
    if at is None:
        return made
    said = f"ALTER STREAM {literals.name(made.name)} SET SINCE TO {at};"
    return replace(made, behind=[said, *made.behind])


# ---------------------------------------------------------------- rows and clocks


def _rows(
    client: Client, folder: Path, stream: Status, number: int, most: int | None
) -> Iterator[str]:
    """`most`: MAX FUTURE, µs."""
    name, since = literals.name(stream["stream"]), stream["since"]
    if stream["waiting"]:
        yield f"-- stream {name}: {stream['waiting']} rows wait behind its clock"
    if stream["key"] is not None:
        yield f"-- stream {name}: what it held before, of which UNTIL ... AGO tells, does not come"
    if stream["shed"] is not None:
        yield f"-- stream {name}: of rows that were left out it knows no more, each stands for one"
    if count := stream.get("promised"):
        said = f"of {count} combinations of values was promised that none follow (PUNCTUATE)"
        yield f"-- stream {name}: {said}; here its sources have to say so anew"
    last = since - 1 if since is not None and stream["key"] is None else None
    files = Files(folder, f"stream{number}", last, most)
    write(client, files, stream)
    for file, before in files.found:
        if before is not None:
            yield _heartbeat(name, before)
        yield f"COPY {name} FROM '{file}';"


def _clock(stream: Status, ends: bool = True) -> Iterator[str]:
    """Where it stands; that of a stream which queries feed ends with those."""
    name, ended = literals.name(stream["stream"]), (stream["waits_for"] or "").endswith(ENDED)
    at = stream["newest"] if ended else stream["complete"]
    if ended and ends:
        yield f"END STREAM {name};"
    elif at is not None and (not ends or stream["clock"].startswith("event time")):
        yield _heartbeat(name, at)


def _heartbeat(name: str, at: int) -> str:
    return f"HEARTBEAT {name} AT {literals.quoted(show.instant(at))};"
