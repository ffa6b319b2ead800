"""Queries go by what punctuations have said of their streams: where they have come past all rows
that came before one, their operators let go of what only rows that do not come could have met."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.intake.promises import Promised
from dsms.intake.stream import StreamInput
from dsms.operators.base import Operator
from dsms.operators.expressions import ErrorCounter, compile_expr
from dsms.operators.group import GroupByOp
from dsms.operators.join import JoinOp
from dsms.operators.letting_go import LetsGo
from dsms.plan.physical import Phys
from dsms.plan.promises import Covers, Reached, across, reached, rising
from dsms.running.dispatch import Dispatch
from dsms.running.faults import explained
from dsms.running.part import Part
from dsms.running.pipeline import Path
from dsms.running.query import RunningQuery
from dsms.sql import logical as lp
from dsms.sql.expr import Col, columns
from dsms.sql.types import ALWAYS, FOREVER

Unit = RunningQuery | Part
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
                rest = _followed(dispatch, key, left, inputs)
                self.open[key] = promises.after, rest
                if not rest:
                    del self.open[key]


def _followed(dispatch: Dispatch, stream: str, left: list[str] | None, inputs: Inputs) -> list[str]:
    """Of the readers that are left, those that are not far enough."""
    if left is None:
        parts = [part.name for part in dispatch.parts_of(stream)]
        left = parts + [key for key, q in dispatch.queries.items() if stream in q.reads]
    rest = []
    for name in left:
        unit = dispatch.parts.get(name) or dispatch.told(name)
        if not isinstance(unit, Part | RunningQuery):
            continue
        try:
            if not _follow(unit, stream, inputs):
                rest.append(name)
        except Exception as fault:  # a bug of ours stops that query alone
            unit.fail(explained(name, fault, f"by what {stream} has promised"))
    return rest


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
    for promised, number in list(promises.since(seen, unit.clock)):
        unit.promised[stream] = max(number, unit.promised.get(stream, 0))
        for leaf in _leaves(unit.phys, stream, ()):
            _go_by(unit, leaf, promised, inputs)
    return unit.promised.get(stream, 0) >= promises.made


def _leaves(phys: Phys, stream: str, at: Path) -> Iterator[Path]:
    match phys.node:
        case lp.StreamScan() as scan if scan.live and scan.stream.home == stream:
            yield at
    for k, child in enumerate(phys.children):
        yield from _leaves(child, stream, (*at, k))


def _go_by(unit: Unit, leaf: Path, promised: Promised, inputs: Inputs) -> None:
    """What one leaf's stream has promised reaches the operators above it."""
    stages = {stage.path: stage.operator for stage in unit.pipeline.stages}
    for good in (True, False):
        index = np.flatnonzero((promised.upto == FOREVER) == good)
        values = tuple(v.take(pa.array(index)) for v in promised.values)
        covers = _covers(unit, values, inputs)
        for at in reached(unit.phys, leaf, promised.columns, len(index), covers):
            operator, places = stages.get(at.path), _places(at)
            if operator is None or places is None:
                continue
            some = np.flatnonzero(at.some)
            theirs = tuple(v.take(pa.array(some)) for v in values)
            if not good:
                _until(operator, at, places, theirs, promised.upto[index[some]])
            elif isinstance(operator, JoinOp):
                operator.let_go(1 - at.child, places, theirs)
            elif isinstance(operator, LetsGo):
                operator.let_go(places, theirs)


def _covers(unit: Unit, values: tuple[pa.Array, ...], inputs: Inputs) -> Covers:
    """Of which of these combinations other streams have promised the same for good."""

    def covers(stream: str, known: Mapping[int, int]) -> np.ndarray:
        promises = inputs[stream].promises
        if promises is None:
            return np.zeros(len(values[0]), np.bool_)
        there = {place: values[column] for place, column in known.items()}
        return promises.covers(there, len(values[0]), unit.clock)

    return covers


def _until(
    operator: Operator,
    at: Reached,
    places: list[int],
    values: tuple[pa.Array, ...],
    upto: np.ndarray,
) -> None:
    """Groups by time, of instants up to which nothing comes, can't change any more."""
    if not isinstance(operator, GroupByOp) or not isinstance(at.node, lp.GroupBy):
        return
    for key, expr in enumerate(at.node.keys):
        if (found := rising(expr, at.times)) is not None:
            (column,) = columns(found)
            cols = [pa.nulls(len(upto))] * column + [pa.array(upto + 1)]
            first = compile_expr(found)(cols, len(upto), ErrorCounter())
            operator.let_go(places, values, (key, first))
            return


def _places(at: Reached) -> list[int] | None:
    """Where the values stand: keys of a GROUP BY, columns of a DISTINCT, columns of the other input
    of a join; None: not all of them do."""
    match at.node:
        case lp.GroupBy(keys=keys):
            found = [
                [i for i, e in enumerate(keys) if isinstance(e, Col) and e.index in places]
                for places in at.known
            ]
        case lp.Distinct():
            found = [sorted(places) for places in at.known]
        case lp.Join(kind="inner", keys=keys):
            found = [sorted(places) for places in across(keys, at.child, at.known)]
        case _:
            return None
    return [places[0] for places in found] if all(found) else None
