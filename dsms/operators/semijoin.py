"""EXISTS / IN and the thesis's negation, NOT EXISTS / NOT IN, over equality keys (Golab 2006,
§2.2.2).

Input    Left rows are kept in a list per key, the right side is one counter per key; both are
         eager.
Output   A left row is in the answer while its key's counter is > 0 (or, for negation, 0).  Its
         natural death is known from `exp`; when the counter leaves or reaches 0 the key's rows are
         sent, or taken back, at once (STR).
Pieces   A key's rows may come and go at every instant: they are handed on about PART at a time.
Cost     O(1) an event, plus the rows of a key whose counter changes between 0 and more.
NOT IN   A NULL on the right hides every answer; a NULL on the left passes only while the right side
         is empty.
Other conditions than equality: `matching`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.operators.base import Builds
from dsms.operators.basic import by_parts
from dsms.operators.pieces import InPieces, Look, Piece
from dsms.operators.setops import both
from dsms.plan.identity import order, width
from dsms.plan.physical import Phys, State
from dsms.sql import logical as lp
from dsms.sql.expr import Call, Expr, conjunction, shift
from dsms.sql.types import BOOL
from dsms.state.batch import Batch
from dsms.state.columns import numpy_valid
from dsms.state.intern import Intern
from dsms.state.lists import Lists, cut, push
from dsms.state.live import Events, LiveInput
from dsms.state.vec import Vec

PART = 1 << 18  # rows handed on at once
Keys = Sequence[Callable[[Sequence[pa.Array], int], pa.Array]]


def keyed_semijoin(builder: Builds, phys: Phys, node: lp.SemiJoin) -> KeyedSemiJoinOp:
    """The operator of a SemiJoin whose only condition is equality."""
    keys = tuple([builder.expr(pair[k]) for pair in node.keys] for k in (0, 1))
    stricts = (phys.children[0].strict, phys.children[1].strict)
    return KeyedSemiJoinOp(
        node, keys, (phys.state(0), phys.state(1)), stricts, builder.eager_instants
    )


def null_aware_residual(node: lp.SemiJoin) -> tuple[tuple[tuple[Expr, Expr], ...], Expr | None]:
    """NOT IN as an anti-join that needs no NULL rule: keys, and a residual by which an unknown
    comparison matches.

    The first key is IN's own (the binder puts it there); the others are correlations, which compare
    as usual."""
    (left, right), *rest = node.keys
    n = len(node.left.schema)
    equal = Call("eq", (left, shift(right, n)), BOOL)
    maybe = Call("or", (equal, Call("is_null", (equal,), BOOL)), BOOL)
    return tuple(rest), conjunction([maybe, *([] if node.residual is None else [node.residual])])


@njit(cache=True, nogil=True)
def _semi(
    begin,
    enough,
    anti,
    strict,
    aware,
    null_code,
    at,
    sign,
    side,
    slot,
    code,
    exp,
    ts,
    head,
    tail,
    before,
    after,
    right,
    total,
    shown,
    inside,
    seen,
    out,
):
    """Events of both sides in order -> rows that enter (+slot) or are taken back: columns (at,
    sign, slot) of `out`.

    right[c] live right rows of a key, total[0] of all keys;  shown[c] whether the key's rows pass
    now inside[slot] whether the left row is in the answer.  Begins with event `begin`, ends behind
    the instant with which there are `enough` rows.  Answers `out` (grown), the number of its rows,
    and the event to go on with."""
    found, start = 0, begin
    touched = np.empty(len(at) + 1, np.int64)
    while start < len(at) and found < enough:
        stop, n, now = start, 0, at[start]
        any_before, null_before = total[0] > 0, aware and right[null_code] > 0
        while stop < len(at) and at[stop] == now:
            c = code[stop]
            if not seen[c]:
                seen[c] = True
                touched[n] = c
                n += 1
            if side[stop] == 1:
                right[c] += sign[stop]
                total[0] += sign[stop]
            elif sign[stop] > 0:
                push(head, tail, before, after, c, slot[stop])
                inside[slot[stop]] = False
            else:
                s = slot[stop]
                cut(head, tail, before, after, c, s)
                if inside[s] and (strict and exp[s] > now):
                    if found == len(out):
                        out = _more(out)
                    out[found, 0], out[found, 1], out[found, 2] = now, -1, s
                    found += 1
            stop += 1
        # speaks to all keys
        if aware and ((total[0] > 0) != any_before or (right[null_code] > 0) != null_before):
            for k in range(n):
                seen[touched[k]] = False
            touched = np.arange(len(head))
            n = len(head)
        for k in range(n):
            c = touched[k]
            seen[c] = False
            passes = right[c] > 0
            if anti:
                passes = not passes
            if aware and total[0] > 0:
                passes = passes and c != null_code and right[null_code] == 0
            s = tail[c]
            all_rows = passes != shown[c]
            shown[c] = passes
            while s >= 0 and (all_rows or ts[s] == now):
                if inside[s] != passes:
                    inside[s] = passes
                    if found == len(out):
                        out = _more(out)
                    out[found, 0], out[found, 1], out[found, 2] = now, 1 if passes else -1, s
                    found += 1
                s = before[s]
        start = stop
    return out, found, start


@njit(cache=True, nogil=True)
def _more(out):
    grown = np.empty((2 * len(out), 3), np.int64)
    grown[: len(out)] = out
    return grown


@dataclass(slots=True)
class KeyedSemiJoinOp(InPieces):
    """Semi-join or negation on equality keys."""

    node: lp.SemiJoin
    keys: tuple[Keys, ...]
    states: tuple[State, State]
    stricts: tuple[bool, bool]
    eager_instants: bool = False
    left: LiveInput = field(init=False)
    right: LiveInput = field(init=False)
    codes: Intern = field(init=False)
    lists: Lists = field(default_factory=Lists)
    counts: Vec = field(default_factory=Vec)
    shown: Vec = field(default_factory=lambda: Vec(np.bool_))
    total: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    null_code: int = -1

    def __post_init__(self) -> None:
        a, b = self.node.left, self.node.right
        self.left = LiveInput(
            a.schema, width(a), self.states[0], self.stricts[0], None, self.eager_instants
        )
        self.right = LiveInput(
            b.schema, width(b), self.states[1], self.stricts[1], (), self.eager_instants
        )
        self.left.store.extra.update(code=Vec(), inside=Vec(np.bool_))
        self.right.store.extra.update(code=Vec())
        self.codes = Intern(max(1, len(self.node.keys)))
        if self.node.null_aware:
            null = pa.array([None], self.node.keys[0][0].type.arrow)
            self.null_code = int(self.codes.codes([null], 1)[0])

    def pieces(self, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        left = self._events(self.left, 0, by_parts(inputs[0], order(self.node.left)), upto, look)
        right = self._events(self.right, 1, inputs[1], upto, look)
        events, side = both(left, right)
        code = np.empty(len(events), np.int64)
        for k, kept in enumerate((self.left, self.right)):
            code[side == k] = kept.store.extra["code"].view[events.slot[side == k]]
        yield from self._run(events, side, code, upto, look)
        self._settle()

    def _events(self, kept: LiveInput, k: int, rows: Batch, upto: int, look: Look) -> Events:
        born = rows if rows.sign is None else rows.take(np.flatnonzero(rows.sign > 0))
        _, spoken = kept.arrive(rows)
        kept.store.extra["code"].extend(self._codes(k, born, look))
        if k == 0:
            kept.store.extra["inside"].extend_fill(len(born), 0)
        return kept.depart(rows, spoken, upto)

    def _codes(self, k: int, rows: Batch, look: Look) -> np.ndarray:
        """Key codes.  Outside NOT IN a NULL key matches nothing: left and right NULLs get codes of
        their own (-1 - k would do, but codes index arrays), so each side's NULL rows are filed
        under a key the other never has."""
        n = len(rows)
        if not self.keys[k]:
            return self.codes.codes([pa.array(np.zeros(n, np.int64))], n)
        cols = [key(rows.cols, n) for key in self.keys[k]]
        codes = self.codes.codes(cols, n, look)
        if self.node.null_aware:
            return codes
        for col in cols:
            valid = numpy_valid(col)
            if valid is not None and k == 1:
                codes = np.where(valid, codes, self._nowhere())
        return codes

    def _nowhere(self) -> int:
        """A code for right rows whose key is NULL; no left row ever has it."""
        if self.null_code < 0:
            self.null_code = self.codes.reserve()
        return self.null_code

    def _run(
        self, events: Events, side: np.ndarray, code: np.ndarray, upto: int, look: Look
    ) -> Iterator[Piece]:
        size, store = self.codes.capacity, self.left.store
        links = self.lists.reserve(size, len(store))
        fresh = size - self.counts.n
        self.counts.extend_fill(fresh, 0)
        empty_passes = self.node.anti
        self.shown.extend_fill(fresh, empty_passes)
        if self.node.null_aware and fresh:
            self._show_fresh(size - fresh)
        seen = np.zeros(size, np.bool_)
        ready = 0
        while True:
            look()
            out, n, ready = _semi(
                ready,
                PART,
                self.node.anti,
                self.stricts[0],
                self.node.null_aware,
                self.null_code,
                events.at,
                events.sign,
                side,
                events.slot,
                code,
                store.exp.view,
                store.ts.view,
                links[0][:size],
                *links[1:],
                self.counts.data,
                self.total,
                self.shown.data,
                store.extra["inside"].data,
                seen,
                np.empty((min(len(events), PART) + 16, 3), np.int64),
            )
            at, sign, slot = out[:n, 0].copy(), out[:n, 1].astype(np.int8), out[:n, 2].copy()
            rows = by_parts(store.batch(slot, at, sign), order(self.node.left))
            if ready == len(events):
                yield rows, upto
                return
            yield rows, int(events.at[ready - 1])

    def _show_fresh(self, first: int) -> None:
        """A key never seen passes NOT IN if the right side holds no NULL."""
        hidden = self.total[0] > 0 and self.counts.view[self.null_code] > 0
        self.shown.view[first:] = not hidden

    def _settle(self) -> None:
        where = self.left.settle()
        if where is not None:
            self.lists.moved(where)
        self.right.settle()
        live = (self.counts.view > 0) | (self.lists.head.view[: self.counts.n] >= 0)
        if self.codes.wants_purge(int(np.count_nonzero(live))):
            if self.null_code >= 0:
                live[self.null_code] = True
            self.codes.purge(live)
            self.shown.view[~live] = self.node.anti
            if self.node.null_aware:
                self.shown.view[~live] = not (
                    self.total[0] > 0 and self.counts.view[self.null_code] > 0
                )

    def live(self) -> int:
        return self.left.store.live + self.right.store.live

    def nbytes(self) -> int:
        return (
            self.left.nbytes
            + self.right.nbytes
            + self.codes.nbytes
            + self.lists.nbytes
            + self.counts.nbytes
        )

    def next_due(self) -> int:
        return min(self.left.expiry.next_due(), self.right.expiry.next_due())
