"""The instants at which the answer of a plan can change: arrivals, expirations and changes of
tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import assert_never

from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS, FOREVER
from dsms.sql.window import (
    First,
    Landmark,
    Lasting,
    Latest,
    Now,
    Partitioned,
    Rows,
    Session,
    Slide,
    Throttled,
    Time,
    Unbounded,
    When,
    WindowSpec,
)
from tests.oracle.episodes import gap_of
from tests.oracle.facts import Change, Row
from tests.oracle.scalar import evaluate
from tests.oracle.slides import slide_of


def instants(
    node: lp.Node,
    streams: Mapping[str, Sequence[Row]],
    tables: Mapping[str, Sequence[Change]],
    ages: Mapping[str, int] = MappingProxyType({}),
    bounds: Callable[[Slide], Sequence[int]] = lambda _: (),
    deaths: Callable[[lp.Window], Collection[int]] = lambda _: (),
) -> set[int]:
    """Every instant at which the answer of `node` can differ from that of the instant before; more
    do no harm.  `ages`: how old rows are when they are seen, of streams where that matters;
    `bounds`: the boundaries of a SLIDE in a periodic query, at which blocks append; `deaths`: when
    rows leave a window that asks them (`tests.oracle.lasting`)."""
    match node:
        case lp.StreamScan():
            name = node.stream.name
            return {row.ts + n for row in streams.get(name, ()) for n in (0, ages.get(name, 0))}
        case lp.TableScan():
            return {change.at for change in tables.get(node.table.name, ())}
        case lp.Window(spec=Session() as spec) if not isinstance(spec.gap, int):
            inner = instants(node.child, streams, tables, ages, bounds)
            gaps = {gap_of(spec, values) for values in _values(node.child, streams)}
            return inner | {t + gap for t in inner if t > ALWAYS for gap in gaps}
        case lp.Window():
            inner = instants(node.child, streams, tables, ages, bounds, deaths)
            return _window(node.spec, inner) | set(deaths(node))
        case lp.JoinNRR():
            return instants(node.child, streams, tables, ages, bounds, deaths)
        case lp.Values():
            return {ALWAYS}
        case lp.Append() if (slide := slide_of(node.child)) is not None:
            own = {b - 1 for b in bounds(slide)}
            return instants(node.child, streams, tables, ages, bounds, deaths) | own
        case _:
            below = (
                instants(child, streams, tables, ages, bounds, deaths)
                for child in lp.children(node)
            )
            return {ALWAYS}.union(*below)


def _values(node: lp.Node, streams: Mapping[str, Sequence[Row]]) -> list[tuple]:
    """What rows of the node may be: of a stream, perhaps with other columns."""
    match node:
        case lp.StreamScan():
            return [row.values for row in streams.get(node.stream.name, ())]
        case lp.Project():
            return [
                tuple(evaluate(e, row) for e in node.exprs) for row in _values(node.child, streams)
            ]
        case lp.Select() | lp.Window() | lp.Union():
            return [row for child in lp.children(node) for row in _values(child, streams)]
        case _:
            raise AssertionError(node)


def _window(spec: WindowSpec, inner: set[int]) -> set[int]:
    steps: tuple[int, ...]
    match spec:
        case Time():
            steps = (0, spec.until, spec.length)
        case Now():
            steps = (0, 1)
        case Throttled():
            steps = (0, spec.until, spec.length)
        case Unbounded() | Landmark() | Lasting():
            steps = (0, spec.until)
        case Session(gap=int() as gap):
            steps = (0, gap)
        case Partitioned():
            steps = (0, spec.age or 0)
        case Rows() | Latest() | First() | Session() | When():
            steps = (0,)
        case _:
            assert_never(spec)
    found = {t + step for t in inner if t > ALWAYS for step in steps}
    return {t for t in found if t < FOREVER} | {t for t in inner if t == ALWAYS}
