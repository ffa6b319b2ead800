"""Join of three windows or more on any equalities, inner, inputs of any pattern: no plan is made
beforehand of which is joined with which (Works, Rundensteiner and Agu 2012).

Input    Each keeps its live rows in a STeM.  The new rows of a batch probe the others, one after
         the other, by whatever attributes are known by then: as partial results, which are slots
         of rows, values being gathered at the end.
Once     A result is made by that of its rows that came last, by (instant, input): a probe meets
         only rows before it.  So neither routes nor cuts change what comes out.
Lifetime That of a tree of joins of two.  Expired rows are passed over, and dropped by partitions.
         A deletion probes like an insertion, and takes results back; of several in one instant,
         that of the first input does.
Routes   by batch and origin, from what probes met (`routing`); now and then a few probes are asked
         of STeMs that would not be next, only to be counted.
Indices  (`stems`) a hash index for each attribute; or, if the query says how to tune it, one
         bit-address index, tuned as access patterns change (`tuning`).
Cost     O(partial results + rows looked at) a row.
Output   In pieces of about PART results.  More than `most` at one instant are refused (DS631).
Twin     the tree of joins (WITH (joins = tree)); tests/oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.operators.base import Builds
from dsms.operators.basic import filter_batch
from dsms.operators.join import PART
from dsms.operators.keyed_rows import codes_nbytes, shared_codes
from dsms.operators.not_coming import NotComing, Places, told
from dsms.operators.pieces import InPieces, Look, Piece, ResultPart, by_instants, go_on, stretches
from dsms.operators.routing import Router
from dsms.operators.stems import Stem
from dsms.operators.tuning import Tuner
from dsms.plan.identity import width
from dsms.plan.index_choice import IndexConfig
from dsms.plan.physical import Adaptive, Phys
from dsms.sql import logical as lp
from dsms.sql.types import FOREVER
from dsms.state.batch import Batch, concat, empty_batch, in_order
from dsms.state.bit_kernels import GONE
from dsms.state.bits import BitIndex, Probes

EXPLORE, SAMPLE = 8, 32  # each so many batches so many probes are asked of other STeMs
STRETCH = 1 << 14  # rows of an input that are taken in at a time, at most


@dataclass(frozen=True, slots=True)
class Partial:
    """Partial results: the slot of each input that is bound already, the instant and the sign.

    origin  the input whose rows they began with"""

    origin: int
    slots: dict[int, np.ndarray]
    when: np.ndarray
    sign: np.ndarray

    def __len__(self) -> int:
        return len(self.when)

    def take(self, at: np.ndarray) -> Partial:
        slots = {i: s[at] for i, s in self.slots.items()}
        return Partial(self.origin, slots, self.when[at], self.sign[at])

    def slice(self, low: int, high: int) -> Partial:
        slots = {i: s[low:high] for i, s in self.slots.items()}
        return Partial(self.origin, slots, self.when[low:high], self.sign[low:high])

    def with_input(self, j: int, at: np.ndarray, found: np.ndarray) -> Partial:
        """The rows `at` go on with rows of one more input."""
        more = self.take(at)
        more.slots[j] = found
        return more


@dataclass(slots=True)
class AdaptiveJoinOp(InPieces):
    """Inner join of many inputs.  `residual(cols, n)` answers which candidates match (None: all).

    most     results at one instant, at most
    at_once  rows that probe together: fewer where many results come of them
    batches  so far"""

    stems: list[Stem]
    residual: Callable[[Sequence[pa.Array], int], pa.BooleanArray] | None
    tuner: Tuner
    most: int = 1 << 22
    router: Router = field(init=False)
    at_once: int = STRETCH
    batches: int = 0
    away: NotComing = field(default_factory=NotComing)
    nothing: Batch = field(init=False)

    def __post_init__(self) -> None:
        self.router = Router(len(self.stems))
        schema = tuple(f for stem in self.stems for f in stem.schema)
        self.nothing = empty_batch(schema, sum(stem.width for stem in self.stems))

    def pieces(self, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        first = [len(stem.rows.store) for stem in self.stems]
        if not any(len(rows) for rows in inputs):
            yield self.nothing, upto
        else:
            rows = min(STRETCH, max(stem.partition for stem in self.stems))
            for given, until in stretches(inputs, upto, rows):
                yield from self._stretch(given, until, look)
        for j, stem in enumerate(self.stems):
            if self.away.sets:
                self._forget(j, np.arange(first[j], len(stem.rows.store)))
            stem.settle_index(upto)
        if self.away.sets:
            self._sweep(look=look)
        self._purge()

    def none_come(self, child: int, places: Places, values: Sequence[pa.Array]) -> None:
        """See `not_coming.Meets`."""
        self.away.add(child, places, values)
        self.away.sweep.promised(told(places, values), len(values[0]))
        self._sweep(len(values[0]))
        for stem in self.stems:
            stem.close_gaps()
        self._purge()

    def _sweep(self, many: int = 0, look: Look = go_on) -> None:
        for j, dead in self.away.swept(self.stems, many, look):
            self._let_go(j, dead)
        self.away.close(len(self.stems))

    def _forget(self, j: int, slots: np.ndarray) -> None:
        """Let go of those of these rows that are in no result to come."""
        self._let_go(j, self.away.dead(j, len(self.stems), self.stems[j], slots))

    def _let_go(self, j: int, dead: np.ndarray) -> None:
        self.stems[j].rows.store.bury(dead)
        self.stems[j].rows.store.extra["ends"].view[dead] = GONE

    def _stretch(self, inputs: Sequence[Batch], until: int, look: Look) -> Iterator[Piece]:
        """All results up to an instant; then rows that were deleted go, and indices are tuned."""
        origins, gone = list[Partial](), list[np.ndarray]()
        for i, (stem, rows) in enumerate(zip(self.stems, inputs, strict=True)):
            spoken, joins = stem.arrive(rows, look)
            signs = rows.signs()
            gone.append(spoken[(signs < 0) & (spoken >= 0)])
            for sign in (-1, 1):
                at = np.flatnonzero(joins & (signs == sign))
                if len(at):
                    origins.append(Partial(i, {i: spoken[at]}, rows.ts[at], signs[at]))
        yield from by_instants(self._parts(origins, until, look), self.most)
        for stem, slots in zip(self.stems, gone, strict=True):
            if len(slots):
                stem.rows.store.bury(slots)
        for j, stem in enumerate(self.stems):
            if stem.full():
                stem.seal(self.tuner.at_seal(j, stem))
        self.tuner.tune(self.stems)

    def _parts(self, origins: list[Partial], until: int, look: Look) -> Iterator[ResultPart]:
        """The results, slice by slice of instants; a slice that has too many is cut again."""
        todo = [origins]
        while todo:
            look()
            now = todo.pop()
            rows = sum(map(len, now))
            first = min((int(p.when[0]) for p in now if len(p)), default=until)
            last = max((int(p.when[-1]) for p in now if len(p)), default=until)
            reach = last if todo else until
            if first == last:
                for found in self._results_of(now, look):
                    yield self._gathered([found]), last, False
                yield self.nothing, reach, True
                continue
            made = None if rows > self.at_once else self._whole(now, look)
            if made is None:
                todo += _halves(now)
                continue
            yield made, reach, True

    def _whole(self, origins: list[Partial], look: Look) -> Batch | None:
        """All results of a slice, in order; None if they are too many to be held."""
        held, size, rows = list[Partial](), 0, sum(map(len, origins))
        for found in self._results_of(origins, look):
            held.append(found)
            size += len(found)
            if size > PART:
                self.at_once = max(1, rows // 2)
                return None
        if rows > self.at_once // 2 and size < PART // 4:
            self.at_once = min(STRETCH * len(self.stems), 2 * self.at_once)
        return self._gathered(held)

    def _results_of(self, origins: list[Partial], look: Look) -> Iterator[Partial]:
        """Full combinations of the rows that came, some at a time; deletions first."""
        self.batches += 1
        explores = self.batches % EXPLORE == 1 or self.router.curious
        for probes in sorted(origins, key=lambda p: int(p.sign[0]) if len(p) else 0):
            if len(probes):
                route = self.router.route(probes.origin, len(probes), self.stems)
                known = self._classes(probes.origin)
                yield from self._expand(probes, route, known, explores, look)

    def _classes(self, i: int) -> int:
        return sum(1 << c for c in self.stems[i].classes)

    def _expand(
        self, partial: Partial, route: Sequence[int], known: int, explores: bool, look: Look
    ) -> Iterator[Partial]:
        """Partial results through the STeMs that are left; depth first, so that few are held."""
        if not route:
            yield partial
            return
        if explores and len(route) > 1:
            self._explore(partial, route[1:], known)
        j, start = route[0], 0
        while start < len(partial):
            begin = start
            pattern, at, found, start = self._probe(partial, j, known, start, PART)
            self.tuner.count(j, pattern, start - begin)
            look()
            if len(found):
                more, also = partial.with_input(j, at, found), known | self._classes(j)
                yield from self._expand(more, route[1:], also, explores and not begin, look)

    def _probe(
        self, partial: Partial, j: int, known: int, start: int, enough: int
    ) -> tuple[int, np.ndarray, np.ndarray, int]:
        """(pattern, places of partial results, slots that match them, the next place)."""
        stem, seen = self.stems[j], np.zeros(3, np.int64)
        pattern = stem.pattern(known)
        # those of the origin's own instant come before it, by input; deletions the other way round
        tied = (j < partial.origin) == (partial.sign[0] > 0)
        keys = self._keys(partial, j, pattern)
        probes = Probes(keys, pattern, partial.when, partial.sign, tied)
        at, found, stop = stem.index.probe(stem.indexed, probes, start, enough, seen)
        first = len(partial.slots) == 1
        self.router.saw(j, pattern, stop - start, len(found), seen, first)
        return pattern, at, found, stop

    def _keys(self, partial: Partial, j: int, pattern: int) -> np.ndarray:
        """int64[n, attributes of STeM j]: the words that are given, each of any input that has
        it."""
        classes = self.stems[j].classes
        keys = np.empty((len(partial), len(classes)), np.int64)
        for a, c in enumerate(classes):
            if pattern >> a & 1:
                i = next(i for i in partial.slots if c in self.stems[i].classes)
                words = self.stems[i].rows.store.extra["words"].view
                keys[:, a] = words[partial.slots[i], self.stems[i].classes.index(c)]
        return keys

    def _explore(self, partial: Partial, others: Sequence[int], known: int) -> None:
        """Ask some of other STeMs, only to know what they would meet."""
        some = partial.take(np.arange(0, len(partial), max(1, len(partial) // SAMPLE)))
        for j in others:
            if self.stems[j].pattern(known):
                self._probe(some, j, known, 0, 64 * SAMPLE)

    def _gathered(self, found: Sequence[Partial]) -> Batch:
        """Their rows, in order of instants."""
        made = [self._rows(part) for part in found if len(part)]
        out = in_order(concat(made)) if made else self.nothing
        if self.residual is None or not len(out):
            return out
        return filter_batch(out, self.residual(out.cols, len(out)))

    def _rows(self, found: Partial) -> Batch:
        parts = [(stem.rows.store, found.slots[i]) for i, stem in enumerate(self.stems)]
        life = None
        if any(store.life is not None for store, _ in parts):
            life = np.minimum.reduce([(store.life or store.exp).view[at] for store, at in parts])
        return Batch(
            found.when,
            np.minimum.reduce([store.exp.view[at] for store, at in parts]),
            found.sign if any(stem.strict for stem in self.stems) else None,
            tuple(v.view[at] for store, at in parts for v in store.ids),
            tuple(column for store, at in parts for column in store.columns(at)),
            life,
        )

    def _purge(self) -> None:
        for c, intern in enumerate(self.stems[0].interns):
            members = [s for s in self.stems if c in s.classes]
            if intern is None or not intern.wants_purge(sum(s.rows.store.live for s in members)):
                continue
            used = np.zeros(intern.capacity, np.bool_)
            for stem in members:
                store = stem.rows.store
                words = store.extra["words"].view[:, stem.classes.index(c)]
                used[words[store.alive.view]] = True
            intern.purge(used)

    def live(self) -> int:
        return sum(stem.rows.store.live for stem in self.stems)

    def nbytes(self) -> int:
        codes = codes_nbytes(self.stems[0].interns) + self.away.nbytes
        return sum(stem.nbytes for stem in self.stems) + codes

    def next_due(self) -> int:
        return FOREVER

    def report(self) -> dict[str, list[Any]]:
        """What EXPLAIN ANALYZE says beside counts (`dsms.plan.explain_adaptive`)."""
        routes = [self.router.best(i, self.stems) for i in range(len(self.stems))]
        return {
            "routes": routes,
            "patterns": self.tuner.patterns,
            "indices": [_configs(s) for s in self.stems],
            "changes": self.tuner.changes,
            "moved": [self.tuner.moved],
        }


def _configs(stem: Stem) -> list[tuple[IndexConfig, int | None]]:
    """Of each partition, the open one last; none of hash indices."""
    index = stem.index
    return [*index.configs(), (index.config, None)] if isinstance(index, BitIndex) else []


def _halves(origins: list[Partial]) -> list[list[Partial]]:
    """The rows of later instants, and those of earlier ones, about as many; neither is none."""
    times = np.sort(np.concatenate([p.when for p in origins]))
    cut = int(times[(len(times) - 1) // 2])
    if cut == times[-1]:
        cut -= 1
    parts = [(p, int(np.searchsorted(p.when, cut, "right"))) for p in origins]
    later = [p.slice(k, len(p)) for p, k in parts]
    return [later, [p.slice(0, k) for p, k in parts]]


def adaptive_join_op(builder: Builds, phys: Phys, node: lp.MultiJoin) -> AdaptiveJoinOp:
    """The join of a node's inputs."""
    how = phys.order
    assert isinstance(how, Adaptive)
    interns = []
    for same in node.keys:
        first = next(e for e in same if e is not None)
        interns.append(shared_codes([first.type.arrow]))
    stems = []
    for k, child in enumerate(phys.children):
        mine = [(c, same[k]) for c, same in enumerate(node.keys)]
        attributes = [(c, builder.expr(e)) for c, e in mine if e is not None]
        stems.append(
            Stem(
                child.node.schema,
                width(child.node),
                phys.state(k),
                child.strict,
                [key for _, key in attributes],
                None,
                classes=tuple(c for c, _ in attributes),
                interns=interns,
                tuned=how.tuning is not None,
            )
        )
    matches = None if node.residual is None else builder.predicate(node.residual)
    tuner = Tuner(len(stems), how.tuning, how.migration or "nothing")
    return AdaptiveJoinOp(stems, matches, tuner, builder.step_rows)
