"""Joins at work that others take the place of, between two instants.

What lies below the joins goes on with its state, and so does what stands above: that has been told
all results so far, and is told the next ones as if nothing had happened.  The new joins are given
the rows that the old ones keep of their inputs, with the instants at which these came and will
leave; of what they make of them those that keep it are given it, and nobody is told.  For a row
that is dead by now nothing can come: so what is alive is all that they need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dsms.operators.adaptive_join import AdaptiveJoinOp
from dsms.operators.base import Operator
from dsms.operators.build import Builder
from dsms.operators.expressions import ErrorCounter
from dsms.operators.join import JoinOp
from dsms.operators.multi_join import MultiJoinOp
from dsms.operators.pieces import go_on
from dsms.plan.parts import node_at
from dsms.plan.physical import Phys
from dsms.plan.rejoin import Unfit, inputs, number, put_in
from dsms.running.part import PartFeed
from dsms.running.pipeline import Path, Pipeline, Stage
from dsms.running.query import RunningQuery
from dsms.sql import logical as lp
from dsms.state.batch import Batch, in_order
from dsms.state.live import LiveInput


@dataclass(frozen=True, slots=True)
class JoinInput:
    """An input of joins at work.

    path    its place in the plan;  phys: its part of it;  number: see `dsms.plan.rejoin`
    stage   what gives its rows;  rows: what the join keeps of it"""

    path: Path
    phys: Phys
    number: int
    stage: Stage
    rows: LiveInput

    def living(self, clock: int) -> np.ndarray:
        """Slots of the rows alive behind that instant, oldest first."""
        store = self.rows.store
        return np.flatnonzero(store.alive.view & (store.exp.view > clock))

    def batch(self, clock: int) -> Batch:
        """Those rows."""
        store, slots = self.rows.store, self.living(clock)
        return in_order(store.batch(slots, store.ts.view[slots], None))


def inputs_at(query: RunningQuery, path: Path) -> list[JoinInput]:
    """The inputs of the joins at that place of a query's plan.  Raises Unfit where others run
    them, too, or they are of another kind."""
    stages = {stage.path: stage for stage in query.pipeline.stages}
    found = []
    for below, phys in inputs(node_at(query.phys, path)):
        at = (*path, *below)
        if at not in stages or at[:-1] not in stages:
            raise Unfit("other queries share its joins")
        kept = _kept(stages[at[:-1]].operator, at[-1])
        found.append(JoinInput(at, phys, number(phys.node), stages[at], kept))
    return found


def _kept(operator: Operator, k: int) -> LiveInput:
    match operator:
        case JoinOp():
            return (operator.left, operator.right)[k].rows
        case MultiJoinOp():
            return operator.inputs[k].rows
        case AdaptiveJoinOp():
            raise Unfit("its joins find their routes as they go")
        case _:
            raise Unfit("its joins keep their rows otherwise")


@dataclass(slots=True)
class Exchange:
    """The joins at `path` of a query, which stands where its clock is, and those that are to take
    their place: `new`, with operators of `builder`."""

    query: RunningQuery
    path: Path
    new: Phys
    builder: Builder
    old: list[JoinInput] = field(init=False)
    places: dict[Path, JoinInput] = field(init=False)  # where the inputs come
    made: dict[Path, tuple[Operator, ErrorCounter]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.old = inputs_at(self.query, self.path)
        self.places = {
            at: one for one in self.old for at in _where(self.new, one.phys, ())
        }  # each once

    def fill(self) -> None:
        """Make the operators, and give them what is alive."""
        top: Path = ()
        while isinstance(node_at(self.new, top).node, lp.Project):
            self._make(top)
            top = (*top, 0)
        self._make(top)
        operator, _ = self.made[top]
        assert isinstance(operator, JoinOp | MultiJoinOp)
        operator.load(self._below(top), go_on)

    def _make(self, at: Path) -> Operator:
        own = replace(self.builder, errors=self.builder.errors.of_operator())
        operator = own.operator(node_at(self.new, at))
        self.made[at] = operator, own.errors
        return operator

    def _below(self, at: Path) -> list[Batch]:
        children = range(len(node_at(self.new, at).children))
        return [self._rows((*at, k)) for k in children]

    def _rows(self, at: Path) -> Batch:
        """What has come, and is alive, at that place of the new joins."""
        if at in self.places:
            return self.places[at].batch(self.query.clock)
        return self._make(at).step(self._below(at), self.query.clock)

    @property
    def nbytes(self) -> int:
        """Of the new joins' state."""
        return sum(operator.nbytes() for operator, _ in self.made.values())

    def take_place(self) -> None:
        """The new joins are those of the query from here on."""
        pipeline = self.query.pipeline
        first, last = _block(pipeline, self.path)
        blocks = {at: _block(pipeline, one.path) for at, one in self.places.items()}
        stages = pipeline.stages
        below = {at: stages[a : b + 1] for at, (a, b) in blocks.items()}
        moved = list(self._stages((), first, blocks, below))
        shift = len(moved) - (last + 1 - first)
        for stage in stages[last + 1 :]:
            stage.inputs = tuple(k if k < last else k + shift for k in stage.inputs)
        stages[first : last + 1] = moved
        self.query.phys = put_in(self.query.phys, self.path, self.new)

    def _stages(
        self,
        at: Path,
        first: int,
        blocks: dict[Path, tuple[int, int]],
        below: dict[Path, list[Stage]],
    ) -> Iterator[Stage]:
        """The stages at and below that place of the new joins; `first`: where they begin."""
        if at in below:
            yield from _moved(below[at], (*self.path, *at), self.places[at].path,
                              first - blocks[at][0])  # a call  # fmt: skip
            return
        tops, count = list[int](), 0
        for k in range(len(node_at(self.new, at).children)):
            some = list(self._stages((*at, k), first + count, blocks, below))
            yield from some
            count += len(some)
            tops.append(first + count - 1)
        operator, errors = self.made[at]
        yield Stage((*self.path, *at), operator, tuple(tops), errors=errors)


def _moved(stages: Sequence[Stage], to: Path, since: Path, shift: int) -> Sequence[Stage]:
    """Stages at and below a place, at another one."""
    for stage in stages:
        stage.path = (*to, *stage.path[len(since) :])
        stage.inputs = tuple(k + shift for k in stage.inputs)
        if isinstance(stage.operator, PartFeed):
            stage.operator.path = stage.path
    return stages


def _block(pipeline: Pipeline, path: Path) -> tuple[int, int]:
    """The first and the last of the stages at that place and below, which stand together."""
    found = [k for k, s in enumerate(pipeline.stages) if s.path[: len(path)] == path]
    return found[0], found[-1]


def _where(phys: Phys, wanted: Phys, path: Path) -> Iterator[Path]:
    if phys is wanted:
        yield path
        return
    for k, child in enumerate(phys.children):
        yield from _where(child, wanted, (*path, k))
