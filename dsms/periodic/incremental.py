"""IS, incremental scan: the operators of the continuous engine, moved from boundary to boundary
(Golab 2006, §7.2.1).

Only rows that have come or expired since the last boundary are touched.  Without restore, operators
see the state as of each boundary alone (`dsms.operators.periodic.LazyOp`, §5.2.2 Algorithm 4); with
restore they see every instant (Algorithm 5), and what lived in between is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from dsms.aggregates.cards import CARDS
from dsms.api import Cancel, Chunk
from dsms.operators.answers import Answer, concat, lost_rows, no_rows
from dsms.operators.passing import unpiped
from dsms.operators.window_lasting import LastingWindowOp
from dsms.periodic.counted import CountedSource, Numbers
from dsms.periodic.silence import matters_above
from dsms.plan import paths
from dsms.plan.boundaries import boundaries
from dsms.plan.identity import by_value, width
from dsms.plan.physical import Pattern, Phys
from dsms.plan.variants import block_slide
from dsms.running.late_reads import late_reads
from dsms.running.part import placed
from dsms.running.pipeline import Path
from dsms.running.query import RunningQuery
from dsms.running.results import ResultLog
from dsms.running.sources import StreamConsumer
from dsms.sql import logical as lp
from dsms.sql.types import ALWAYS
from dsms.sql.window import Lasting, Slide
from dsms.state.foretold import Foretold


@dataclass(slots=True)
class Collected(ResultLog):
    """Instead of a result log: the rows since the last boundary, if they are wanted."""

    wanted: bool = False
    kept: list[Chunk] = field(default_factory=list)

    def append(self, chunk: Chunk) -> None:
        self.next_seq = chunk.seq + len(chunk)
        if self.wanted:
            self.kept.append(chunk)


@dataclass(slots=True)
class Incremental:
    """`inner` is the query as a continuous one; `restore` what of Golab 2006, §3.3.4 is asked
    for."""

    inner: RunningQuery
    restore: bool
    deltas: bool = field(init=False)
    width: int = field(init=False)
    numbers: Numbers | None = None  # arrival numbers stand for instants
    slides: tuple[Slide, ...] = ()  # of blocks inside that append at boundaries of their own
    passed: int = ALWAYS  # these blocks have had their boundaries up to this instant
    path: paths.Kind = "IS"
    together: bool = False
    lasting: bool = field(init=False, default=False)  # windows say when rows leave them

    def __post_init__(self) -> None:
        output = self.inner.output
        self.lasting = any(
            isinstance(n, lp.Window) and isinstance(n.spec, Lasting) for n in lp.nodes_of(output)
        )
        self.deltas = output.kind == "istream"
        self.width = 0 if by_value(output.child) or self.deltas else width(output.child)
        assert isinstance(self.inner.log, Collected)
        self.inner.log.wanted = self.deltas
        if self.restore and not self.deltas:
            self.inner.sink.trace = []

    def seed(self, upto: int) -> None:
        self.inner.start()
        self.inner.advance(upto)
        self.inner.check()

    def passes(self, instant: int) -> None:
        """Blocks append nothing at boundaries up to there that they have not had."""
        self.passed = max(self.passed, instant)

    def evaluate(self, boundary: int, cancel: Cancel | None) -> Answer:
        if self.slides:
            for own in self._own(boundary):
                self.inner.advance(own - 1, cancel)
        self.inner.advance(boundary - 1, cancel)
        self.inner.check()
        if self.numbers is not None:
            self.numbers.forget(boundary - 1)
        return self.current_answer()

    def _own(self, boundary: int) -> list[int]:
        """The boundaries of blocks inside before that one of the query, ascending."""
        found = [boundaries(slide, self.passed, boundary) for slide in self.slides]
        self.passed = boundary
        own: list[int] = np.unique(np.concatenate(found)).tolist()
        return own

    def current_answer(self) -> Answer:
        """What the continuous query, as far as it got, makes a periodic one report."""
        if self.deltas:
            return self._taken()
        now = self._answer()
        trace = self.inner.sink.trace
        if trace is None:
            return now
        came = concat(trace) if trace else now.take(np.empty(0, np.int64))
        self.inner.sink.trace = []
        lost = lost_rows(came, now)
        return concat([now, lost]).in_order() if lost.n else now

    def tell_from(self, boundary: int) -> None:
        """What came before that boundary has been told.  Of boundaries between rows nothing is
        known."""
        assert isinstance(self.inner.log, Collected)
        kept = [] if self.numbers is not None else self.inner.log.kept
        cut = ((c, int(np.searchsorted(c.at, boundary))) for c in kept)
        self.inner.log.kept = [c.after(c.seq + n) for c, n in cut if n < len(c)]

    def _taken(self) -> Answer:
        """What has come since the last boundary, in the order in which it came."""
        assert isinstance(self.inner.log, Collected)
        chunks, self.inner.log.kept = self.inner.log.kept, []
        if self.inner.sink.trace is not None:
            self.inner.sink.trace = []
        schema = self.inner.output.schema
        parts = [Answer(len(c), tuple(c.data.columns)) for c in chunks]
        return concat(parts) if parts else no_rows(schema)

    def _answer(self) -> Answer:
        sink = self.inner.sink
        if sink.kept is not None:
            return sink.answer()
        rows = self.inner.pipeline.answer()
        assert rows is not None
        ids = () if sink.spec.by_value else tuple(rows.ids[k] for k in sink.spec.order)
        return Answer(len(rows), rows.cols, ids).in_order()

    def sources_of(self, stream: str) -> Iterator[StreamConsumer]:
        for leaf, key in self.inner.streams.items():
            if key == stream:
                yield from self.leaf_sources(leaf)

    def leaf_sources(self, leaf: int) -> Iterator[StreamConsumer]:
        source = self.inner.pipeline.sources[leaf]
        yield source if self.numbers is None else CountedSource(source, self.numbers)

    def next_due(self) -> int:
        return self.inner.pipeline.next_due()

    def read_tables(self, begun: int) -> int:
        return late_reads(self.inner.output, self.inner.pipeline, begun)

    def foretold(self) -> Sequence[tuple[Foretold, int]]:
        """When rows leave windows that say so themselves, and for how long these matter above."""
        if not self.lasting:
            return ()
        return [
            (op.foretold, matters_above(self.inner.phys, path))
            for path, operator in placed(self.inner.pipeline)
            for op in unpiped(operator)
            if isinstance(op, LastingWindowOp)
        ]

    def live(self) -> dict[Path, dict[str, float]]:
        return self.inner.live()

    def nbytes(self) -> int:
        return self.inner.nbytes()


def inner_output(output: lp.Output, monotonic: bool) -> lp.Output:
    """The continuous query whose answers the periodic one reports: without order, whole unless only
    what comes is asked for."""
    core = output.child.child if isinstance(output.child, lp.Sort) else output.child
    streams = output.kind == "istream" and (output.restore or monotonic)
    return lp.Output(
        core, "istream" if streams else "rstream", True, output.restore, None, core.schema
    )


def own_slides(node: lp.Node, slide: Slide) -> tuple[Slide, ...]:
    """The SLIDEs of blocks that append, other than that of the query."""
    found = [own for child in lp.children(node) for own in own_slides(child, slide)]
    if isinstance(node, lp.Append) and not node.mixed:
        own = block_slide(node.child)
        found += [own] if own is not None and own != slide else []
    return tuple(dict.fromkeys(found))


def lazily(phys: Phys, output: lp.Output) -> bool:
    """Whether operators may look at the ends of periods only.

    Not with restore; not where a row's own instant matters: under a non-retroactive join, an ASOF
    JOIN, OVER, in a MATCH, under an Append, or an aggregate that goes by (ts, arrival) over a join.
    Not where rows of several streams wait in one queue: those that come in one period leave in
    several, so it would have to keep the instants at which they came."""
    return not output.restore and _lazy(phys)


def _lazy(phys: Phys) -> bool:
    match phys.node:
        case lp.Append():
            return False
        case lp.JoinNRR() as node:
            return not any(isinstance(n, lp.Window) for n in _below(node.child))
        case lp.AsofJoin() | lp.Match() | lp.Over():
            return False
        case lp.GroupBy() as node if any(CARDS[a.fn].ordered for a in node.aggs):
            if sum(isinstance(n, lp.StreamScan | lp.TableScan) for n in _below(node)) > 1:
                return False
        case lp.Union() | lp.Window() as node if phys.pattern is Pattern.WKS:
            if any(isinstance(n, lp.Union) for n in _below(node)):
                return False
    return all(map(_lazy, phys.children))


def _below(node: lp.Node) -> Iterator[lp.Node]:
    yield node
    for child in lp.children(node):
        yield from _below(child)


def monotonic(phys: Phys) -> bool:
    """Whether no row of the answer ever leaves."""
    return phys.children[0].pattern is Pattern.MON
