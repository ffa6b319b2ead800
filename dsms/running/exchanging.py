"""Joins at work that others take the place of, between two instants.

What lies below the joins goes on with its state, and so does what stands above: that has been told
all results so far, and is told the next ones as if nothing had happened.  The new joins are given
the rows that the old ones keep of their inputs, with the instants at which these came and will
leave; of what they make of them those that keep it are given it, and nobody is told.  For a row
that is dead by now nothing can come: so what is alive is all that they need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dsms.operators.adaptive_join import AdaptiveJoinOp
from dsms.operators.base import Operator
from dsms.operators.build import Builder
from dsms.operators.either_join import EitherJoinOp
from dsms.operators.expressions import ErrorCounter
from dsms.operators.join import JoinOp
from dsms.operators.multi_join import MultiJoinOp
from dsms.operators.pieces import Look, Pieces, looking
from dsms.plan.parts import node_at, streams_of
from dsms.plan.physical import Phys
from dsms.plan.rejoin import Unfit, id_columns, inputs, number, put_in
from dsms.running.part import Part, PartFeed, feeds_of, let_go
from dsms.running.pipeline import Path, Pipeline, Stage
from dsms.running.splitting import Unit, feeds_down, located, new_feed
from dsms.sql import logical as lp
from dsms.state.batch import Batch, concat, in_order
from dsms.state.live import LiveInput

Split = Callable[[Unit, Path], Part]


class Later(Unfit):
    """Joins that can't be exchanged as things are, but may be soon; says why."""


@dataclass(frozen=True, slots=True)
class JoinInput:
    """An input of joins at work.

    path    its place in the plan;  phys: its part of it;  number: see `dsms.plan.rejoin`
    stage   what gives its rows;  rows: what the join keeps of it
    home    whose operators that join and this stage are
    least   (id column, number): rows with less are not for these joins (`PartFeed`)"""

    path: Path
    phys: Phys
    number: int
    stage: Stage
    rows: LiveInput
    home: Unit
    least: tuple[tuple[int, int], ...] = ()

    def living(self, clock: int) -> np.ndarray:
        """Slots of the rows alive behind that instant, oldest first."""
        store = self.rows.store
        alive = store.alive.view & (store.exp.view > clock)
        for column, least in self.least:
            alive &= store.ids[column].view >= least
        return np.flatnonzero(alive)

    @property
    def waiting(self) -> Sequence[Batch]:
        """Rows of later instants that a part below has made already."""
        operator = self.stage.operator
        return tuple(operator.queue.batches) if isinstance(operator, PartFeed) else ()

    def batch(self, clock: int, look: Look) -> Batch:
        """Those rows."""
        store, slots = self.rows.store, self.living(clock)
        cols = looking(store.gathering(slots), look)
        look()
        return in_order(store.batch(slots, store.ts.view[slots], None, cols=cols))


def inputs_at(unit: Unit, path: Path) -> list[JoinInput]:
    """The inputs of the joins at that place of a plan, whoever runs them, left to right.  Raises
    Unfit where these are of another kind."""
    found = []
    for below, phys in inputs(node_at(unit.phys, path)):
        at = (*path, *below)
        home, place = located(unit, at[:-1])
        stages = {stage.path: stage for stage in home.pipeline.stages}
        kept = _kept(stages[place].operator, at[-1])
        k, stage = number(phys.node), stages[*place, at[-1]]
        found.append(JoinInput(at, phys, k, stage, kept, home, _least(unit, path, at[:-1], k)))
    return found


def _least(unit: Unit, path: Path, at: Path, k: int) -> tuple[tuple[int, int], ...]:
    """Which rows of the input of that number are not for the joins at `path`, where one at `at` is
    run by a part below these."""
    return tuple(
        (places[column][1], least)
        for feed, place in feeds_down(unit, at)
        if len(place) > len(path)
        for places in (id_columns(node_at(unit.phys, place)),)
        for column, least in feed.least
        if places[column][0] == k
    )


def shared_below(unit: Unit, path: Path) -> list[PartFeed]:
    """Where the joins at that place of a unit's own take up what other joins make, which run for
    others, too."""
    inside = {one.path for one in inputs_at(unit, path)}
    above = {at[:n] for at in inside for n in range(len(path) + 1, len(at))}
    return [feed for feed in feeds_of(unit.pipeline) if feed.path in above]


def _kept(operator: Operator, k: int) -> LiveInput:
    match operator:
        case JoinOp() if operator.gone:
            raise Unfit("rows that nothing more could meet are gone (PUNCTUATE)")
        case JoinOp():
            return (operator.left, operator.right)[k].rows
        case MultiJoinOp():
            return operator.inputs[k].rows
        case AdaptiveJoinOp():
            raise Unfit("its joins find their routes as they go")
        case _:
            raise Unfit("its joins keep their rows otherwise")


@dataclass(frozen=True, slots=True)
class Block:
    """Stages at and below a place, which stand together from `first` on."""

    stages: list[Stage]
    path: Path
    first: int

    def moved(self, to: Path, first: int) -> list[Stage]:
        """The same at another place, which stand from there on."""
        for stage in self.stages:
            stage.path = (*to, *stage.path[len(self.path) :])
            stage.inputs = tuple(k + first - self.first for k in stage.inputs)
            if isinstance(stage.operator, PartFeed):
                stage.operator.path = stage.path
        return self.stages


@dataclass(slots=True)
class Exchange:
    """The joins at `path` of a query, or of a part that several share, which stands where its clock
    is, and those that are to take their place: `new`, with operators of `builder`.

    Joins below that run for others, too, go on doing that; the new ones have rows of their own of
    what comes to these.  Raises Later where that can't be now."""

    unit: Unit
    path: Path
    new: Phys
    builder: Builder
    old: list[JoinInput] = field(init=False)
    places: dict[Path, JoinInput] = field(init=False)  # where the inputs come
    made: dict[Path, tuple[Operator, ErrorCounter]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.old = inputs_at(self.unit, self.path)
        for one in self.old:
            self._check(one)
        self.places = {
            at: one for one in self.old for at in _where(self.new, one.phys, ())
        }  # each once

    def _check(self, one: JoinInput) -> None:
        if self.unit.flow is not None or one.home.flow is not None:
            raise Later("its joins are midway in a step")
        if one.home is self.unit:
            return
        if one.home.clock != self.unit.clock:
            raise Later("joins that it shares stand at other instants")
        if not streams_of(one.phys.node):
            raise Unfit("joins that it shares look into a table")

    def fill(self, look: Look) -> None:
        """Make the operators, and give them what is alive.  `look` is called between stretches of
        work; meanwhile nothing may move."""
        top: Path = ()
        while isinstance(node_at(self.new, top).node, lp.Project):
            self._make(top)
            top = (*top, 0)
        self._make(top)
        operator, _ = self.made[top]
        assert isinstance(operator, JoinOp | EitherJoinOp | MultiJoinOp)
        operator.load(self._below(top, look), look)

    def _make(self, at: Path) -> Operator:
        own = replace(self.builder, errors=self.builder.errors.of_operator())
        operator = own.operator(node_at(self.new, at))
        self.made[at] = operator, own.errors
        return operator

    def _below(self, at: Path, look: Look) -> list[Batch]:
        children = range(len(node_at(self.new, at).children))
        return [self._rows((*at, k), look) for k in children]

    def _rows(self, at: Path, look: Look) -> Batch:
        """What has come, and is alive, at that place of the new joins."""
        if at in self.places:
            return self.places[at].batch(self.unit.clock, look)
        operator, given, upto = self._make(at), self._below(at, look), self.unit.clock
        if isinstance(operator, Pieces):
            return concat([rows for rows, _ in operator.pieces(given, upto, look)])
        return operator.step(given, upto)

    @property
    def nbytes(self) -> int:
        """Of the new joins' state."""
        return sum(operator.nbytes() for operator, _ in self.made.values())

    def take_place(self, split: Split) -> list[Part]:
        """The new joins are at work from here on; `split` makes a part of what a unit has at a
        place.  Which parts fed the old ones, and do not feed the new ones."""
        pipeline = self.unit.pipeline
        gone = shared_below(self.unit, self.path)
        blocks = self._blocks(split)
        for k in [k for k, s in pipeline.sources.items() if any(s is feed for feed in gone)]:
            del pipeline.sources[k]
        for feed in gone:
            let_go(feed)
        first, last = _block(pipeline, self.path)
        moved = list(self._stages((), first, blocks))
        shift = len(moved) - (last + 1 - first)
        stages = pipeline.stages
        for stage in stages[last + 1 :]:
            stage.inputs = tuple(k if k < last else k + shift for k in stage.inputs)
        stages[first : last + 1] = moved
        self.unit.promised.clear()  # what the old joins knew is to be told to the new ones
        self.unit.phys = put_in(self.unit.phys, self.path, self.new)
        return [feed.part for feed in gone]

    def _blocks(self, split: Split) -> dict[Path, Block]:
        """The stages of the inputs, by where these come.  Those of joins that others run become
        parts."""
        found, stages = {}, self.unit.pipeline.stages
        others = {at: one for at, one in self.places.items() if one.home is not self.unit}
        waiting = {at: one.waiting for at, one in others.items()}
        parts = {at: split(self.unit, one.path) for at, one in others.items()}
        for at, one in self.places.items():
            if at not in others:
                first, last = _block(self.unit.pipeline, one.path)
                found[at] = Block(stages[first : last + 1], one.path, first)
        for at, one in others.items():
            path = (*self.path, *at)
            feed = new_feed(self.unit, path, one.phys, parts[at], one.least)
            feed.catch_up(waiting[at])
            found[at] = Block([Stage(path, feed, ())], path, 0)
        return found

    def _stages(self, at: Path, first: int, blocks: dict[Path, Block]) -> Iterator[Stage]:
        """The stages at and below that place of the new joins; `first`: where they begin."""
        if at in blocks:
            yield from blocks[at].moved((*self.path, *at), first)
            return
        tops, count = list[int](), 0
        for k in range(len(node_at(self.new, at).children)):
            some = list(self._stages((*at, k), first + count, blocks))
            yield from some
            count += len(some)
            tops.append(first + count - 1)
        operator, errors = self.made[at]
        yield Stage((*self.path, *at), operator, tuple(tops), errors=errors)


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
