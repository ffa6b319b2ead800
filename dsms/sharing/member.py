"""A query as a member of a group: which sub-windows it asks for, and what it makes of the
aggregates it gets."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from dsms.api import Cancel
from dsms.operators.answers import Answer
from dsms.operators.expressions import ErrorCounter, compile_expr, compile_predicate
from dsms.operators.pieces import finished
from dsms.periodic.counted import Numbers
from dsms.periodic.elastic import Backlog
from dsms.periodic.evaluated import EvaluatedQuery, Fed
from dsms.periodic.query import PeriodicQuery
from dsms.plan import paths
from dsms.running.sources import StreamConsumer
from dsms.sharing.answer_source import AnswerSource
from dsms.sharing.feed import GroupFeed, SingleFeed
from dsms.sharing.incremental import Answers
from dsms.sharing.request import Request, Wanted
from dsms.sharing.search import Search
from dsms.sharing.threshold import Seeking, Threshold
from dsms.sql import logical as lp
from dsms.sql.expr import AggCall, Col, columns, conjunction, conjuncts
from dsms.sql.types import Schema
from dsms.state.columns import numpy_true

# of global aggregates that are answered together
Kind = tuple[object, tuple[int, ...] | None, Schema, object]
Cells = tuple[list[pa.Array], np.ndarray, int]  # keys ++ aggregates, span of each row, rows
Step = tuple[Callable[..., pa.Array] | None, list[Callable[..., pa.Array]]]


@dataclass(slots=True)
class Above:
    """Selections and projections over keys ++ aggregates, on many rows at once."""

    nodes: tuple[lp.Select | lp.Project, ...]
    keys: int
    errors: ErrorCounter
    steps: list[Step] = field(init=False)
    # the columns, where that is all there is to do
    picks: tuple[int, ...] | None = field(init=False)
    # rows in the order of the keys are in the order of the answer
    by_keys: bool = field(init=False)

    def __post_init__(self) -> None:
        self.steps = []
        for node in self.nodes:
            if isinstance(node, lp.Select):
                self.steps.append((compile_predicate(node.predicate), []))
            else:
                self.steps.append((None, [compile_expr(e) for e in node.exprs]))
        only = [n for n in self.nodes if isinstance(n, lp.Project)]
        last = only[-1].exprs if len(only) == 1 else None
        plain = len(self.nodes) == 1 and last is not None and all(isinstance(e, Col) for e in last)
        self.picks = tuple(e.index for e in last or () if isinstance(e, Col)) if plain else None
        first = (
            None
            if last is None
            else [e.index if isinstance(e, Col) else -1 for e in last[: self.keys]]
        )
        self.by_keys = not only or first == list(range(self.keys))

    @property
    def reads(self) -> frozenset[int] | None:
        """Columns of keys ++ aggregates that something is made of; None: all."""
        out: set[int] = set()
        for node in self.nodes:
            if isinstance(node, lp.Project):
                return frozenset(out.union(*map(columns, node.exprs)))
            out |= columns(node.predicate)
        return None

    def run(self, cols: list[pa.Array], n: int) -> tuple[list[pa.Array], np.ndarray | None, int]:
        """(columns, which rows are left (None: all), how many)."""
        if self.picks is not None:
            return [cols[i] for i in self.picks], None, n
        left: np.ndarray | None = None
        for predicate, exprs in self.steps:
            if predicate is None:
                cols = [e(cols, n, self.errors) for e in exprs]
                continue
            kept = np.flatnonzero(numpy_true(predicate(cols, n, self.errors)))
            if len(kept) < n:
                index = pa.array(kept)
                cols, n = [c.take(index) for c in cols], len(kept)
                left = kept if left is None else left[kept]
        return cols, left, n


def loosened(above: Above, found: Threshold) -> Above:
    """Without the condition that an index has answered."""
    nodes: list[lp.Select | lp.Project] = []
    for i, node in enumerate(above.nodes):
        if not isinstance(node, lp.Select):
            nodes += above.nodes[i:]
            break
        rest = [c for c in conjuncts(node.predicate) if c != found.condition]
        if (predicate := conjunction(rest)) is not None:
            nodes.append(replace(node, predicate=predicate))
    return Above(tuple(nodes), above.keys, above.errors)


class Answering(Protocol):
    """A group, as its members and their readers know it (`group.Group`)."""

    name: str
    members: list[Member[Any]]
    numbers: Numbers | None  # where time is counted in rows
    backlog: Backlog | None  # where elastic members wait
    kinds: dict[Kind, Kind]

    @property
    def feed(self) -> GroupFeed:
        """What it answers from."""
        ...

    @property
    def sides(self) -> tuple[str, ...]:
        """Keys of the streams whose columns, one stream after the other, its aggregates are
        over."""
        ...

    @property
    def nbytes(self) -> int: ...

    def settled(self) -> None:
        """All that has been handed over is in the feed."""
        ...

    def refresh(self, names: tuple[str, ...]) -> None:
        """Answer those members as of the latest sub-window."""
        ...

    def cost(self, member: Member[Any]) -> float:
        """Cells that an evaluation of the member combines."""
        ...

    def latest(self, clock: int) -> int:
        """The newest boundary that is complete at `clock`."""
        ...

    def over(self, last_row: int) -> int:
        """The clock where no row follows the last one."""
        ...

    def asks(self, due: Sequence[Due[Any]]) -> tuple[np.ndarray, ...]:
        """What synopses are asked for each boundary."""
        ...

    def answers(self, due: Sequence[Due[Any]]) -> Generator[None, None, list[Cells]]:
        """For each member its answer rows over its boundaries."""
        ...

    def lowered(
        self, agg: AggCall, asked: tuple[np.ndarray, ...], view: AnswerSource | None
    ) -> pa.Array:
        """The answers of an aggregate, of all cells."""
        ...


R = TypeVar("R", bound=Wanted)


@dataclass(slots=True)
class Member(Fed, Generic[R]):
    """One query of a group.  It is also the query's evaluator."""

    request: R
    group: Answering
    above: Above
    query: EvaluatedQuery | None = None
    numbers: Numbers | None = None
    deltas: bool = False
    path: paths.Kind = "SS"
    together: bool = True
    kept: Answers | None = None  # ISS
    plain: Kind | None = None  # see `ungrouped.kind`
    view: AnswerSource | None = None  # None: columns of the group's feed (joins)
    seeking: Seeking = field(default_factory=Seeking)  # a collective index may find its groups
    own: Search | None = None  # by its own index
    # what it makes of its aggregates where groups may miss the threshold a little
    loose: Above | None = None
    same: int = 0  # members with the same one differ in nothing but their SLIDE; 0: like no other

    @property
    def sliding(self) -> PeriodicQuery | None:
        """Its query, if that has boundaries; one ON LOOKUP has none."""
        return self.query if isinstance(self.query, PeriodicQuery) else None

    def ask_above(self, nodes: tuple[lp.Select | lp.Project, ...]) -> None:
        """What a look-up makes of its aggregates, which depends on the values that it gives."""
        inside = self.request.above if isinstance(self.request, Request) else ()
        self.above = Above((*inside, *nodes), len(self.request.keys), self.above.errors)
        self.seeking.known = False

    def reads(self, feed: SingleFeed) -> bool:
        """Whether it is answered from that feed of its group."""
        return self.view is None or self.view.reads(feed)

    def looks_at(self, column: int) -> bool:
        """Whether it makes something of that column of keys ++ aggregates."""
        reads = None if self.loose is None else self.loose.reads
        return reads is None or column in reads

    def evaluate(self, boundary: int, cancel: Cancel | None) -> Answer:
        """The answer of one boundary."""
        at = np.array([boundary], np.int64)
        cols, _, _ = finished(self.group.answers([(self, at)]))[0]
        return Answer(len(cols[0]) if cols else 0, tuple(cols))

    def sources_of(self, stream: str) -> Iterator[StreamConsumer]:
        """None: the group's feed takes the rows."""
        return iter(())

    def cost(self) -> float:
        """Cells that an evaluation combines."""
        return self.group.cost(self)

    def nbytes(self) -> int:
        own = 0 if self.own is None else self.own.nbytes
        return own + self.group.nbytes // max(1, len(self.group.members))


Due = tuple[Member[R], np.ndarray]  # with the boundaries at which it is to be answered


def share_errors(feeds: Iterable[SingleFeed], members: Sequence[Member[Any]]) -> None:
    """Values that failed below count for every member that reads them."""
    for feed in feeds:
        failed = feed.errors
        if not failed.count:
            continue
        for member in [m for m in members if m.reads(feed)]:
            for code, rows in failed.by_code.items():
                member.above.errors.add(rows, code, (failed.first or "").partition(": ")[2])
        failed.count, failed.first, failed.by_code = 0, None, {}
