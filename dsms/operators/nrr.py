"""Join with a non-retroactive relation, ⋈NRR (Golab 2006, §3.3.1).

Each row looks up the relation as of its own timestamp, also where a window holds it back (`UNTIL
... AGO`); later changes of the relation touch no earlier row.
So nothing of the stream is kept, a result lives as long as its row, and the input's update pattern
passes through.  Over a strict input (the thesis has no such plan) the results of live rows are
kept, so that a deletion can take back what was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from dsms.operators.ages import Age
from dsms.operators.base import Stateless
from dsms.operators.pieces import InPieces, Look, Piece, ResultPart, by_instants, too_many
from dsms.plan.identity import width
from dsms.plan.physical import State
from dsms.sql import logical as lp
from dsms.sql.expr import Call, Col, Expr, conjunction, shift
from dsms.sql.types import BOOL, Schema
from dsms.state.batch import Batch, concat, in_order
from dsms.state.live import LiveInput
from dsms.state.rows import RowStore
from dsms.state.vec import Vec

PART = 1 << 18  # results handed on at once
Run = Callable[[Sequence[pa.Array], int], pa.Array]


def is_column(expr: Expr) -> bool:
    """Whether a table-side key is a bare column, by which the table can be indexed."""
    return isinstance(expr, Col)


def key_columns(node: lp.JoinNRR) -> tuple[int, ...]:
    """Table columns of the keys that are bare columns."""
    return tuple(right.index for _, right in node.keys if isinstance(right, Col))


def computed_keys(node: lp.JoinNRR) -> Expr | None:
    """Keys over computed table values, as a condition over both schemas."""
    n = len(node.child.schema)
    rest = [
        Call("eq", (left, shift(right, n)), BOOL)
        for left, right in node.keys
        if not is_column(right)
    ]
    return conjunction(rest)  # type: ignore[arg-type]


class Finds(Protocol):
    """How rows are joined with what is found for them."""

    def results(self, rows: Batch) -> Batch:
        """Join results of rows (all of sign +1), in their order; each with what it has found as
        last id."""
        ...

    def room(self, rows: int) -> int:
        """So many rows or fewer, if each of them finds very much."""
        ...


@dataclass(slots=True)
class Probe:
    """How a batch is joined with the relation: `relation` is a versioned table (`dsms.tables`),
    indexed by `columns`, whose row's version is the last id; `keys` compute the probing values;
    `conditions` filter pairs; `kind` is inner or left; `age` finds the timestamps of rows that
    enter later (None: they enter then)."""

    relation: Any
    columns: tuple[int, ...]
    keys: Sequence[Run]
    conditions: Sequence[Callable[[Sequence[pa.Array], int], pa.BooleanArray]]
    kind: str
    schema: Schema
    age: Age | None = None

    def results(self, rows: Batch) -> Batch:
        n = len(rows)
        probing = [k(rows.cols, n) for k in self.keys]
        at = rows.ts if self.age is None else self.age.instants(rows.ids)
        which, version = self.relation.probe(probing, self.columns, at)
        base = rows.take(which)
        cols = (*base.cols, *self.relation.gather(version))
        out = Batch(base.ts, base.exp, None, (*base.ids, version), cols, base.life)
        for condition in self.conditions:
            keep = np.asarray(condition(out.cols, len(out)).fill_null(False))
            out, which = out.take(np.flatnonzero(keep)), which[keep]
        return out if self.kind == "inner" else self._padded(rows, out, which)

    def room(self, rows: int) -> int:
        """So many rows or fewer, if each of them meets the whole relation."""
        return rows if self.columns else max(1, min(rows, PART // max(1, len(self.relation))))

    def _padded(self, rows: Batch, out: Batch, which: np.ndarray) -> Batch:
        lonely = np.setdiff1d(np.arange(len(rows)), which)
        if not len(lonely):
            return out
        base, n = rows.take(lonely), len(lonely)
        nulls = tuple(pa.nulls(n, f.type.arrow) for f in self.schema)
        pad = Batch(
            base.ts,
            base.exp,
            None,
            (*base.ids, np.full(n, -1, np.int64)),
            (*base.cols, *nulls),
            base.life,
        )
        both = concat([out, pad])
        return both.take(np.argsort(np.concatenate([which, lonely]), kind="stable"))


def next_room(room: int, made: int) -> int:
    """Rows for the next slice, when `room` of them have made so many results."""
    return max(1, min(2 * room, room * PART // max(1, made)))


@dataclass(slots=True)
class JoinNRROp(InPieces, Stateless):
    """Over an input without deletions.

    Rows are looked up in slices that make about PART results; more than `most` at one instant are
    refused."""

    probe: Probe
    most: int = 1 << 22
    room: int = 1 << 12  # rows of the next slice

    def pieces(self, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        yield from by_instants(self._parts(inputs[0], upto, look), self.most)

    def _parts(self, rows: Batch, upto: int, look: Look) -> Iterator[ResultPart]:
        start, self.room = 0, self.probe.room(self.room)
        while len(rows) - start > self.room:
            look()
            stop = start + self.room
            out = self.probe.results(rows.slice(start, stop))
            self.room = next_room(self.room, len(out))
            yield out, int(rows.ts[stop - 1]), bool(rows.ts[stop] > rows.ts[stop - 1])
            start = stop
        yield self.probe.results(rows.slice(start, len(rows))), upto, True


@dataclass(slots=True)
class StoredJoinNRROp(InPieces):
    """Over a strict input: the results of each live row are kept until it goes.

    Instants are worked on in stretches that make about PART results, as far as they can be cut
    there."""

    probe: Finds
    node: lp.JoinNRR | lp.AsofJoin
    state: State
    most: int = 1 << 22
    room: int = 1 << 12
    rows: LiveInput = field(init=False)
    out: RowStore = field(init=False)

    def __post_init__(self) -> None:
        child = lp.children(self.node)[0]
        self.rows = LiveInput(child.schema, width(child), self.state, True, ())
        self.rows.store.extra.update(first=Vec(), count=Vec())
        self.out = RowStore(self.node.schema, width(self.node))

    def pieces(self, inputs: Sequence[Batch], upto: int, look: Look) -> Iterator[Piece]:
        yield from by_instants(self._parts(inputs[0], upto, look), self.most)

    def _parts(self, rows: Batch, upto: int, look: Look) -> Iterator[ResultPart]:
        start, self.room = 0, self.probe.room(self.room)
        while len(rows) - start > self.room:
            stop = int(np.searchsorted(rows.ts, rows.ts[start + self.room], side="left"))
            if stop <= start:  # one instant has more rows than that
                stop = int(np.searchsorted(rows.ts, rows.ts[start], side="right"))
            if stop == len(rows):
                break
            look()
            yield (
                self._stretch(rows.slice(start, stop), int(rows.ts[stop - 1]), look),
                int(rows.ts[stop - 1]),
                True,
            )
            start = stop
        yield self._stretch(rows.slice(start, len(rows)), upto, look), upto, True

    def _stretch(self, rows: Batch, upto: int, look: Look) -> Batch:
        """All deltas up to `upto`."""
        born = rows if rows.sign is None else rows.take(np.flatnonzero(rows.sign > 0))
        results, count = self._looked_up(born, look)
        slots = self.out.append(results)
        _, spoken = self.rows.arrive(rows)
        extra = self.rows.store.extra
        extra["first"].extend((slots[0] if len(slots) else 0) + np.cumsum(count) - count)
        extra["count"].extend(count)
        events = self.rows.depart(rows, spoken, upto)
        out = self._taken_back(events.at, events.sign, events.slot)
        self._settle()
        return in_order(concat([results, out]))

    def _looked_up(self, born: Batch, look: Look) -> tuple[Batch, np.ndarray]:
        """Join results of new rows, in their order, and how many each has.  Raises DS631."""
        n, start, made = len(born), 0, 0
        found: list[Batch] = []
        tagged = Batch(
            born.ts, born.exp, None, (*born.ids, np.arange(n, dtype=np.int64)), born.cols, born.life
        )
        while start < n or not found:
            stop = min(n, start + self.room)
            found.append(self.probe.results(tagged.slice(start, stop)))
            self.room, start, made = (
                next_room(self.room, len(found[-1])),
                stop,
                made + len(found[-1]),
            )
            if made > self.most and born.ts[0] == born.ts[-1]:
                raise too_many(self.most)
            look()
        out = concat(found)
        count = np.bincount(out.ids[-2], minlength=n).astype(np.int64)
        return Batch(out.ts, out.exp, None, (*out.ids[:-2], out.ids[-1]), out.cols, out.life), count

    def _taken_back(self, at: np.ndarray, sign: np.ndarray, slot: np.ndarray) -> Batch:
        extra, store = self.rows.store.extra, self.rows.store
        gone = np.flatnonzero(sign < 0)
        at, slot = at[gone], slot[gone]
        count = extra["count"].view[slot]
        ends = np.cumsum(count)
        offset = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - count, count)
        dead = np.repeat(extra["first"].view[slot], count) + offset
        when = np.repeat(at, count)
        early = np.repeat(store.exp.view[slot] > at, count)
        out = self.out.batch(dead[early], when[early], np.full(int(early.sum()), -1, np.int8))
        self.out.bury(dead)
        return out

    def _settle(self) -> None:
        self.rows.settle()
        where = self.out.compact()
        if where is not None:
            extra = self.rows.store.extra
            full = (extra["count"].view > 0) & self.rows.store.alive.view
            extra["first"].view[full] = where[extra["first"].view[full]]

    def live(self) -> int:
        return self.rows.store.live + self.out.live

    def nbytes(self) -> int:
        return self.rows.nbytes + self.out.nbytes

    def next_due(self) -> int:
        return self.rows.expiry.next_due()
