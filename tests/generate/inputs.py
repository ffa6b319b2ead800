"""What comes in: rows with ties and gaps, heartbeats, changes of tables."""

from __future__ import annotations

from dataclasses import dataclass

from tests.generate.draws import Draws
from tests.generate.world import SECOND, Source, World, arrival, value
from tests.stories.cells import shown, sql_instant
from tests.stories.model import Arrival, Beat, End, Event, Statement

STEPS = (0, 1, 1, 2, 0, 3, 1, 9)  # seconds between rows: ties, gaps
LITTLE = 250_000  # instants off the full second


@dataclass(slots=True)
class _Table:
    """The live rows of a table by key, and keys that were ever deleted."""

    source: Source
    rows: dict[int, tuple]
    gone: set[int]


@dataclass(frozen=True, slots=True)
class Given:
    """Rows of tables that are there before any query, and what comes then."""

    first: tuple[Statement, ...]
    events: list[Event]


def given(
    d: Draws, world: World, most: int = 20, base: int = 0, unit: int = SECOND, undated: bool = False
) -> Given:
    """Rows of all streams in time order, heartbeats between them, and changes of tables as the
    clock goes.

    From the instant `base` on; `unit`: what a step of time is, in µs; `undated`: some changes have
    no AT."""
    now = base
    out: list[Event] = []
    tables = [_Table(s, {}, set()) for s in world.sources if s.kind != "stream"]
    first = tuple(_insert(d, table, None) for table in tables for _ in range(d.number(0, 2)))
    for _ in range(d.number(min(5, most), most)):
        now += d.pick(STEPS) * unit + (LITTLE if d.chance(10) else 0)
        if tables and d.chance(25):
            at = None if undated and d.chance(50) else now
            out.append(_change(d, d.pick(tables), at))
        if d.chance(8):
            out.append(Beat(d.pick(world.of("stream")).name, now - 1))
        else:
            stream = d.pick(world.of("stream"))
            out.append(Arrival(stream.name, now, arrival(d, stream, now)))
    return Given(first, out + [Beat(None, now + d.pick((0, 3, 30)) * unit)])


def ended(d: Draws, came: Given) -> Given:
    """The same, and at times all streams end: after the last heartbeat, or without it."""
    if not d.chance(30):
        return came
    return Given(came.first, [*came.events[: len(came.events) - d.number(0, 1)], End(None)])


def _literal(v: object, type_) -> str:
    if isinstance(v, str):
        return "'" + v.replace("'", "''") + "'"
    return shown(v, type_)


def _insert(d: Draws, table: _Table, at: int | None) -> Statement:
    free = [
        k for k in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9) if k not in table.rows and k not in table.gone
    ]
    fresh = (
        free[d.number(0, min(2, len(free) - 1))],
        *(value(d, t) for _, t in table.source.columns[1:]),
    )
    table.rows[fresh[0]] = fresh
    cells = ", ".join(_literal(v, t) for v, (_, t) in zip(fresh, table.source.columns, strict=True))
    return Statement(f"INSERT INTO {table.source.name} VALUES ({cells}){_at(at)}")


def _at(at: int | None) -> str:
    return "" if at is None else f" AT {sql_instant(at)}"


def _change(d: Draws, table: _Table, at: int | None) -> Statement:
    what = d.pick(("insert", "update", "delete"))
    if what == "insert" or not table.rows:
        return _insert(d, table, at)
    key = d.pick(sorted(table.rows))
    name = table.source.name
    if what == "delete":
        del table.rows[key]
        if table.source.kind == "nrr":
            table.gone.add(key)
        return Statement(f"DELETE FROM {name} WHERE k = {key}{_at(at)}")
    y = value(d, table.source.columns[1][1])
    return Statement(
        f"UPDATE {name} SET y = {_literal(y, table.source.columns[1][1])} WHERE k = {key}{_at(at)}"
    )


def shuffled(d: Draws, sent: list[Event], slack: int) -> list[Event]:
    """The same rows, each sent up to `slack` µs of event time late; heartbeats only where they
    still hold.

    Rows of one instant keep their order, which is the order of arrival among them.
    """
    delay: dict[tuple[str, int], int] = {}
    keyed = []
    for place, event in enumerate(sent):
        if isinstance(event, Arrival):
            late = delay.setdefault((event.stream, event.at), d.number(0, slack // SECOND) * SECOND)
            keyed.append((event.at + late, place, event))
    rows = [event for _, _, event in sorted(keyed, key=lambda k: k[:2])]
    return [*rows, *(e for e in sent[-1:] if isinstance(e, Beat))]
