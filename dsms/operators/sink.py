"""The sink: deltas of the plan's root become numbered result rows, and the answer is stored where a
reader needs it.

Istream  what enters Q(τ);  Dstream  what leaves it;  Rstream  both: a materialized view.
View     Where the root announces every change itself (GROUP BY keeps what it has reported) its
         deltas pass as they are.
Order    instant, deletions first, then arrival numbers of the parts in FROM order (rows without
         parts: of the oldest live arrival of their group when the row entered).  So `seq` is a
         function of the input alone.
Netting  A row that leaves and an equal one that enters at one instant cancel: by identity (and
         values) for rows with parts, by value for rows without, and the older row's place in the
         order stays.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.api import Chunk
from dsms.operators.answers import Answer
from dsms.operators.basic import by_parts, sorted_by
from dsms.operators.pieces import finished
from dsms.plan.physical import Pattern, Phys, State
from dsms.sql.types import FOREVER, Schema, arrow_schema
from dsms.state.batch import Batch
from dsms.state.intern import Intern
from dsms.state.live import Events, LiveInput
from dsms.state.vec import Vec

FORGET_FROM = 65_536  # codes of cancelled rows


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """What the plan's root asks of its sink.

    kind     istream | dstream | rstream
    order    permutation of the id columns into FROM order
    by_value rows are identified by value
    cancels  a departure and an equal arrival may meet in one instant
    view     the live answer must be kept here: to know what leaves when, or what cancels
    """

    kind: str
    schema: Schema
    width: int
    order: tuple[int, ...]
    by_value: bool
    cancels: bool
    view: bool
    state: State
    strict: bool
    eager_instants: bool = False


def fitting_state(root: Phys) -> State:
    """How to keep the answer of a plan edge: by the way its rows leave."""
    if root.strategy == "nt":
        return State("hash")
    if root.strategy == "direct":
        return State("list")
    kinds = {Pattern.MON: State("grow"), Pattern.WKS: State("fifo")}
    return kinds.get(root.pattern, State("calendar"))


@dataclass(slots=True)
class Sink:
    """Takes the root's batch of each step and answers its result rows as a chunk."""

    spec: SinkSpec
    seq: int = 0
    kept: LiveInput | None = field(init=False)
    codes: Intern = field(init=False)
    columns: pa.Schema = field(init=False)
    row_bytes: int | None = field(init=False)  # of a result row; None: rows differ
    values: Intern = field(init=False)
    trace: list[Answer] | None = None  # what has come in, if it is wanted

    def __post_init__(self) -> None:
        s = self.spec
        self.columns = arrow_schema(s.schema)
        fixed = all(pa.types.is_primitive(t) for t in self.columns.types)
        self.row_bytes = 9 + sum(t.bit_width for t in self.columns.types) // 8 if fixed else None
        self.kept = None
        if s.view:
            self.kept = LiveInput(s.schema, s.width, s.state, s.strict, None, s.eager_instants)
            if s.by_value:
                self.kept.store.extra = {f"key{k}": Vec() for k in range(s.width)}
        self.codes, self.values = Intern(len(s.schema) + s.width), Intern(max(1, len(s.schema)))

    def step(self, rows: Batch, upto: int) -> Chunk:
        """Result rows of all instants <= upto not answered before."""
        if self.kept is not None:
            return self._view_step(self.kept, rows, upto)
        if self.spec.kind != "rstream" and rows.sign is not None:
            rows = rows.take(
                np.flatnonzero(rows.sign == (1 if self.spec.kind == "istream" else -1))
            )
        rows = by_parts(rows, self.spec.order)
        sign = rows.signs() if self.spec.kind == "rstream" else np.ones(len(rows), np.int8)
        return self._chunk(rows.ts, sign, rows.cols)

    def _view_step(self, kept: LiveInput, rows: Batch, upto: int) -> Chunk:
        slots, spoken = kept.arrive(rows)
        if self.spec.by_value:
            for k in range(self.spec.width):
                kept.store.extra[f"key{k}"].extend(kept.store.ids[k].view[slots])
        events = kept.depart(rows, spoken, upto)
        if self.spec.cancels:
            events = self._net(kept, events)
        if self.spec.kind != "rstream":
            wanted = 1 if self.spec.kind == "istream" else -1
            picked = np.flatnonzero(events.sign == wanted)
            events = Events(events.at[picked], events.sign[picked], events.slot[picked])
        keys = [events.at, events.sign, *(self._key(kept, k, events.slot) for k in self.spec.order)]
        slot = events.slot
        if not sorted_by(keys):
            order = np.lexsort(keys[::-1])
            events, slot = Events(events.at[order], events.sign[order], slot[order]), slot[order]
        if self.trace is not None:
            self._note(kept, events, slot)
        sign = events.sign if self.spec.kind == "rstream" else np.ones(len(events), np.int8)
        out = self._chunk(events.at, sign, kept.store.columns(slot))
        kept.settle()
        return out

    def _note(self, kept: LiveInput, events: Events, slot: np.ndarray) -> None:
        assert self.trace is not None
        came = slot[events.sign > 0]
        ids = (
            ()
            if self.spec.by_value
            else tuple(kept.store.ids[k].view[came] for k in self.spec.order)
        )
        self.trace.append(Answer(len(came), tuple(kept.store.columns(came)), ids))

    def _key(self, kept: LiveInput, k: int, slots: np.ndarray | slice) -> np.ndarray:
        vec = kept.store.extra[f"key{k}"] if self.spec.by_value else kept.store.ids[k]
        return vec.view[slots]

    def _net(self, kept: LiveInput, events: Events) -> Events:
        """Cancel departures against equal arrivals of the same instant."""
        mixed = _mixed_instants(events.at, events.sign)
        if not mixed.any():
            return events
        where = np.flatnonzero(mixed)
        slot = events.slot[where]
        same, equal = self._codes(kept, slot)
        keep = np.ones(len(where), np.bool_)
        keys = tuple(self._keys(kept))
        net(events.at[where], events.sign[where], slot, same, equal, keys, self.spec.by_value, keep)
        if keep.all():
            return events
        rest = np.ones(len(events), np.bool_)
        rest[where[~keep]] = False
        return Events(events.at[rest], events.sign[rest], events.slot[rest])

    def _codes(self, kept: LiveInput, slot: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Codes of rows by identity and value, and (for rows identified by value) by value
        alone."""
        cols = list(kept.store.columns(slot))
        ids = [pa.array(v.view[slot]) for v in kept.store.ids]
        if self.codes.size > FORGET_FROM:
            self.codes, self.values = Intern(self.codes.columns), Intern(max(1, len(cols)))
        same = self.codes.codes([*cols, *ids], len(slot))
        if not self.spec.by_value:
            return same, same
        return same, self.values.codes(cols, len(slot)) if cols else np.zeros(len(slot), np.int64)

    def _keys(self, kept: LiveInput) -> list[np.ndarray]:
        """Places in the order by slot, most significant first."""
        if self.spec.by_value:
            return [kept.store.extra[f"key{k}"].view for k in self.spec.order]
        return [kept.store.ids[k].view for k in self.spec.order]

    def _chunk(self, at: np.ndarray, sign: np.ndarray, cols: tuple[pa.Array, ...]) -> Chunk:
        data = pa.RecordBatch.from_arrays(list(cols), schema=self.columns)
        if not cols:
            data = pa.RecordBatch.from_struct_array(pa.array([{}] * len(at), pa.struct([])))
        chunk = Chunk(
            self.seq, sign, at, data, -1 if self.row_bytes is None else self.row_bytes * len(at)
        )
        self.seq += len(chunk)
        return chunk

    def snapshot(self, at_once: bool = False) -> pa.RecordBatch | None:
        """The live answer in order of entering, or None where no view is kept here.

        `at_once`: in the order of rows that enter together."""
        return finished(self.snapshotting(at_once))

    def snapshotting(self, at_once: bool = False) -> Generator[None, None, pa.RecordBatch | None]:
        """`snapshot`, piece by piece; meanwhile the answer must not change."""
        if self.kept is None:
            return None
        store = self.kept.store
        slots = np.flatnonzero(store.alive.view) if store.dead else np.arange(len(store))
        some = slots if store.dead else slice(None)  # no copies of what is all wanted
        keys = [self._key(self.kept, k, some) for k in self.spec.order]
        if not at_once:
            keys.insert(0, store.ts.view[some])
        if keys and not sorted_by(keys):
            yield
            slots = slots[np.lexsort(keys[::-1])]
        cols = yield from store.gathering(slots)
        return pa.RecordBatch.from_arrays(list(cols), schema=self.columns)

    def rows(self) -> Batch:
        """The live answer with the lifetimes and ids of its rows, as they came.  Only where a view
        is kept here."""
        assert self.kept is not None
        store = self.kept.store
        slots = np.flatnonzero(store.alive.view)
        return Batch(
            store.ts.view[slots],
            store.exp.view[slots],
            None,
            tuple(ids.view[slots] for ids in store.ids),
            tuple(store.columns(slots)),
            None if store.life is None else store.life.view[slots],
        )

    def answer(self) -> Answer:
        """The live answer in its fixed order (`dsms.operators.answers`).  Only where a view is kept
        here."""
        assert self.kept is not None
        store = self.kept.store
        slots = np.flatnonzero(store.alive.view) if store.dead else np.arange(len(store))
        some = slots if store.dead else slice(None)
        ids = () if self.spec.by_value else tuple(store.ids[k].view[some] for k in self.spec.order)
        return Answer(len(slots), tuple(store.columns(slots)), ids).in_order()

    def live(self) -> int:
        return self.kept.store.live if self.kept is not None else 0

    def nbytes(self) -> int:
        return self.kept.nbytes if self.kept is not None else 0

    def next_due(self) -> int:
        return self.kept.expiry.next_due() if self.kept is not None else FOREVER


@njit(cache=True, nogil=True)
def _mixed_instants(at, sign):
    """Rows of instants that hold both departures and arrivals (rows are in order of (at, sign))."""
    out = np.zeros(len(at), np.bool_)
    start = 0
    while start < len(at):
        stop = start
        while stop < len(at) and at[stop] == at[start]:
            stop += 1
        if sign[start] < 0 and sign[stop - 1] > 0:
            out[start:stop] = True
        start = stop
    return out


@njit(cache=True, nogil=True)
def _before(keys, a, b):
    """Whether slot a stands before slot b."""
    for key in keys:
        if key[a] != key[b]:
            return key[a] < key[b]
    return False


@njit(cache=True, nogil=True)
def _by_place(rows, slot, keys):
    """Sort the few rows in place by the places of their slots."""
    for i in range(1, len(rows)):
        row, j = rows[i], i
        while j > 0 and _before(keys, slot[row], slot[rows[j - 1]]):
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = row


@njit(cache=True, nogil=True)
def _cancel(rows, sign, slot, keys, hand_down, keep):
    """Of equal rows of one instant the k-th departure to go on cancels the k-th arrival, which
    takes its place."""
    deaths, births = rows[sign[rows] < 0], rows[sign[rows] > 0]
    pairs = min(len(deaths), len(births))
    if pairs == 0:
        return
    _by_place(deaths, slot, keys)
    _by_place(births, slot, keys)
    for k in range(pairs):
        # the first places leave, the last arrivals enter
        gone, born = deaths[len(deaths) - pairs + k], births[k]
        keep[gone] = keep[born] = False
        if hand_down:
            for key in keys:
                key[slot[born]] = key[slot[gone]]


@njit(cache=True, nogil=True)
def _cancel_groups(rows, code, sign, slot, keys, hand_down, keep):
    """`_cancel` for each code among the rows of one instant."""
    rows = rows[np.argsort(code[rows], kind="mergesort")]
    start = 0
    while start < len(rows):
        stop = start + 1
        while stop < len(rows) and code[rows[stop]] == code[rows[start]]:
            stop += 1
        if stop > start + 1:
            _cancel(rows[start:stop], sign, slot, keys, hand_down, keep)
        start = stop


@njit(cache=True, nogil=True)
def net(at, sign, slot, same, equal, keys, by_value, keep):
    """Instant by instant, departures cancel arrivals of the same identity and value, then
    (`by_value`) of equal value.

    keep[i] becomes False for what cancels.  keys[k][slot] are the places in the order, handed down
    by value."""
    start = 0
    while start < len(at):
        stop = start + 1
        while stop < len(at) and at[stop] == at[start]:
            stop += 1
        rows = np.arange(start, stop)
        _cancel_groups(rows, same, sign, slot, keys, by_value, keep)
        if by_value:
            _cancel_groups(rows[keep[start:stop]], equal, sign, slot, keys, True, keep)
        start = stop
