"""Queries go by what punctuations have said of their streams: where they have come past all rows
that came before one, their operators let go of what only rows that do not come could have met."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.intake.promises import Promised
from dsms.intake.stream import StreamInput
from dsms.operators.base import Operator
from dsms.operators.expressions import ErrorCounter, compile_expr
from dsms.operators.group import GroupByOp
from dsms.operators.letting_go import LetsGo
from dsms.operators.not_coming import Meets
from dsms.operators.passing import Piped
from dsms.operators.periodic import LazyOp
from dsms.plan.physical import Phys
from dsms.plan.promises import Covers, Reached, across, reached, rising
from dsms.python_functions.cutting import uncut
from dsms.running.dispatch import Dispatch
from dsms.running.faults import explained
from dsms.running.part import Part
from dsms.running.pipeline import Path
from dsms.running.query import RunningQuery
from dsms.running.registered import Registered
from dsms.sql import logical as lp
from dsms.sql.expr import Col, columns
from dsms.sql.types import ALWAYS, FOREVER

Unit = RunningQuery | Part
Take = Callable[[Sequence[pa.Array], np.ndarray], None]  # values, the instants they are good for
Inputs = Mapping[str, StreamInput]


@dataclass(slots=True)
class Promising:
    """Which streams have promised something that not all of their readers go by yet.  Not state:
    each reader knows how far it is (`promised`).

    open   by stream, the instant behind which there is something to be done, and which readers are
           left (None: not known): names of parts, keys of queries
    known  of which readers: how many had been registered, and how often parts had been made"""

    open: dict[str, tuple[int, list[str] | None]] = field(default_factory=dict)
    known: tuple[int, int] = (-1, -1)

    def made(self, stream: str) -> None:
        """The stream has promised something."""
        self.open[stream] = ALWAYS, None

    @uncut()
    def follow(self, inputs: Inputs, dispatch: Dispatch) -> None:
        """Let readers go by what they may."""
        if self.known != (dispatch.count, dispatch.found):
            self.known = dispatch.count, dispatch.found
            for key, entry in inputs.items():
                if entry.promises is not None:
                    self.made(key)
        for key, (at, left) in list(self.open.items()) if self.open else ():
            if key not in inputs or (promises := inputs[key].promises) is None:
                del self.open[key]
            elif inputs[key].completed >= at:
                behind, rest = _followed(dispatch, key, left, inputs)
                self.open[key] = max(promises.after, behind), rest
                if not rest:
                    del self.open[key]


def _followed(
    dispatch: Dispatch, stream: str, left: list[str] | None, inputs: Inputs
) -> tuple[int, list[str]]:
    """Of the readers that are left those that are not far enough, and before which instant none of
    them will be."""
    if left is None:
        parts = [part.name for part in dispatch.parts_of(stream)]
        left = parts + [key for key, q in dispatch.queries.items() if stream in q.reads]
    rest, behind = [], FOREVER
    for name in left:
        reader = dispatch.parts.get(name) or dispatch.told(name)
        if not isinstance(reader, Part | Registered):
            continue
        unit, soonest = working(reader)
        try:
            if unit is not None and not _follow(unit, stream, inputs):
                rest.append(name)
                behind = min(behind, soonest)
        except Exception as fault:  # a bug of ours stops that query alone
            reader.fail(explained(name, fault, f"by what {stream} has promised"))
    return behind, rest


def working(reader: Part | Registered) -> tuple[Unit | None, int]:
    """Whose operators work for a reader, and before which instant they get no further."""
    if isinstance(reader, Part | RunningQuery):
        return reader, ALWAYS
    unit, soonest = reader.at_work()
    return (unit, soonest) if isinstance(unit, RunningQuery) else (None, FOREVER)


def _follow(unit: Unit, stream: str, inputs: Inputs) -> bool:
    """Whether the unit now goes by all that the stream has promised."""
    promises = inputs[stream].promises
    if promises is None or unit.failure is not None:
        return True
    seen = unit.promised.get(stream, 0)
    if seen >= promises.made:
        return True
    if unit.flow is not None or (isinstance(unit, RunningQuery) and unit.beginning):
        return False
    if any(_waits(stage.operator) for stage in unit.pipeline.stages):
        return False
    for promised, number in list(promises.since(seen, unit.clock)):
        unit.promised[stream] = max(number, unit.promised.get(stream, 0))
        for leaf in leaves_over(unit.phys, stream, ()):
            _go_by(unit, leaf, promised, inputs)
    return unit.promised.get(stream, 0) >= promises.made


def _waits(operator: Operator) -> bool:
    """Whether rows that came before now wait for the end of a period."""
    match operator:
        case Piped(first, second):
            return _waits(first) or _waits(second)
        case LazyOp():
            return bool(operator.waiting)
        case _:
            return False


def leaves_over(phys: Phys, stream: str, at: Path) -> Iterator[Path]:
    match phys.node:
        case lp.StreamScan() as scan if scan.live and scan.stream.home == stream:
            yield at
    for k, child in enumerate(phys.children):
        yield from leaves_over(child, stream, (*at, k))


def _go_by(unit: Unit, leaf: Path, promised: Promised, inputs: Inputs) -> None:
    """What one leaf's stream has promised reaches the operators above it."""
    stages = {stage.path: stage.operator for stage in unit.pipeline.stages}
    for good in (True, False):
        index = np.flatnonzero((promised.upto == FOREVER) == good)
        values = tuple(v.take(pa.array(index)) for v in promised.values)
        covers = _covers(unit, values, inputs)
        for at in reached(unit.phys, leaf, promised.columns, len(index), covers):
            some = np.flatnonzero(at.some)
            theirs = tuple(v.take(pa.array(some)) for v in values)
            take = taker(stages.get(at.path), at, good)
            if take is not None:
                take(theirs, promised.upto[index[some]])


def taker(operator: Operator | None, at: Reached, good: bool) -> Take | None:
    """How an operator goes by promises that reach it, for `good` or up to instants; None: it has no
    use for them."""
    if isinstance(operator, Meets):
        places = _meeting(at)
        if not good or not any(at.lasts[j] for j in places if j != at.child):
            return None
        return lambda values, _: operator.none_come(at.child, places, values)
    if not at.stays or (keys := _places(at)) is None:
        return None
    if isinstance(operator, GroupByOp):
        if not operator.sheds:
            return None
        return (
            (lambda values, _: operator.let_go(keys, values))
            if good
            else _until(operator, at, keys)
        )
    if not good or not isinstance(operator, LetsGo):
        return None
    return lambda values, _: operator.let_go(keys, values)


def _meeting(at: Reached) -> dict[int, tuple[int, ...]]:
    """By input of a join the columns in which the values stand, where all of them do."""
    assert isinstance(at.node, lp.Join | lp.MultiJoin)
    found = {at.child: tuple(min(places) for places in at.known)}
    for j in range(len(lp.children(at.node))):
        if j != at.child and all(known := across(at.node, at.child, j, at.known)):
            found[j] = tuple(min(places) for places in known)
    return found


def _covers(unit: Unit, values: tuple[pa.Array, ...], inputs: Inputs) -> Covers:
    """Of which of these combinations other streams have promised the same for good."""

    def covers(stream: str, known: Mapping[int, int]) -> np.ndarray:
        promises = inputs[stream].promises
        if promises is None:
            return np.zeros(len(values[0]), np.bool_)
        there = {place: values[column] for place, column in known.items()}
        return promises.covers(there, len(values[0]), unit.clock)

    return covers


def _until(operator: GroupByOp, at: Reached, places: list[int]) -> Take | None:
    """Groups by time, of instants up to which nothing comes, can't change any more."""
    assert isinstance(at.node, lp.GroupBy)
    rises = ((key, rising(expr, at.times)) for key, expr in enumerate(at.node.keys))
    key, found = next(((key, found) for key, found in rises if found is not None), (0, None))
    if found is None:
        return None
    (column,), first = columns(found), compile_expr(found)

    def take(values: Sequence[pa.Array], upto: np.ndarray) -> None:
        cols = [pa.nulls(len(upto))] * column + [pa.array(upto + 1)]
        operator.let_go(places, values, (key, first(cols, len(upto), ErrorCounter())))

    return take


def _places(at: Reached) -> list[int] | None:
    """Where the values stand: keys of a GROUP BY, columns of a DISTINCT; None: not all of them
    do."""
    match at.node:
        case lp.GroupBy(keys=keys):
            found = [
                [i for i, e in enumerate(keys) if isinstance(e, Col) and e.index in places]
                for places in at.known
            ]
        case lp.Distinct():
            found = [sorted(places) for places in at.known]
        case _:
            return None
    return [places[0] for places in found] if all(found) else None
