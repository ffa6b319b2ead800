"""The sink: deltas of the plan's root become numbered result rows, and the answer is kept where it must be.

Istream  what enters Q(τ);  Dstream  what leaves it;  Rstream  both: a materialized view.
View     Where the root announces every change itself (GROUP BY keeps what it has reported) its deltas pass as they are.
Order    instant, deletions first, then arrival numbers of the parts in FROM order (rows without parts: of the oldest
         live arrival of their group when the row entered).  So `seq` is a function of the input alone.
Netting  A row that leaves and an equal one that enters at one instant cancel: by identity (and values) for rows with
         parts, by value for rows without, and the older row's place in the order stays.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numba import njit

from dsms.api import Chunk
from dsms.operators.basic import by_parts, sorted_by
from dsms.plan.physical import Pattern, Phys, State
from dsms.sql.types import FOREVER, Schema, arrow_schema
from dsms.state.batch import Batch
from dsms.state.intern import Intern
from dsms.state.live import Events, LiveInput
from dsms.state.vec import Vec


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """What the plan's root asks of its sink.

    kind     istream | dstream | rstream
    order    permutation of the id columns into FROM order
    by_value rows are told apart by value
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

    def __post_init__(self) -> None:
        s = self.spec
        self.kept = None
        if s.view:
            self.kept = LiveInput(s.schema, s.width, s.state, s.strict, None, s.eager_instants)
            if s.by_value:
                self.kept.store.extra = {f"key{k}": Vec() for k in range(s.width)}
        self.codes = Intern(len(s.schema) + (0 if s.by_value else s.width))

    def step(self, rows: Batch, upto: int) -> Chunk:
        """Result rows of all instants <= upto not answered before."""
        if self.kept is not None:
            return self._view_step(self.kept, rows, upto)
        if self.spec.kind != "rstream" and rows.sign is not None:
            rows = rows.take(np.flatnonzero(rows.sign == (1 if self.spec.kind == "istream" else -1)))
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
        sign = events.sign if self.spec.kind == "rstream" else np.ones(len(events), np.int8)
        out = self._chunk(events.at, sign, kept.store.columns(slot))
        kept.settle()
        return out

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
        cols = list(kept.store.columns(slot))
        if not self.spec.by_value:
            cols += [pa.array(v.view[slot]) for v in kept.store.ids]
        code = self.codes.codes(cols, len(slot)) if cols else np.zeros(len(slot), np.int64)
        keys = [self._key(kept, k, slot) for k in self.spec.order]
        order = np.lexsort((*keys[::-1], events.sign[where], code, events.at[where]))
        partner = _partners(events.at[where][order], code[order], events.sign[where][order])
        if self.codes.size > 65536:
            self.codes = Intern(self.codes.columns)
        gone = partner >= 0
        if not gone.any():
            return events
        self._inherit(kept, slot[order], events.sign[where][order], partner)
        keep = np.ones(len(events), np.bool_)
        keep[where[order[gone]]] = False
        return Events(events.at[keep], events.sign[keep], events.slot[keep])

    def _inherit(self, kept: LiveInput, slot: np.ndarray, sign: np.ndarray, partner: np.ndarray) -> None:
        """A cancelled arrival takes the place in the order of the row whose departure it cancels.

        Chains (a place handed on at several instants of one step) are followed in instant order, which `slot` has."""
        if not self.spec.by_value:
            return
        young = np.flatnonzero((partner >= 0) & (sign > 0))
        for k in range(self.spec.width):
            _hand_down(kept.store.extra[f"key{k}"].view, slot[young], slot[partner[young]])

    def _chunk(self, at: np.ndarray, sign: np.ndarray, cols: tuple[pa.Array, ...]) -> Chunk:
        data = pa.RecordBatch.from_arrays(list(cols), schema=arrow_schema(self.spec.schema))
        if not cols:
            data = pa.RecordBatch.from_struct_array(pa.array([{}] * len(at), pa.struct([])))
        chunk = Chunk(self.seq, sign, at, data)
        self.seq += len(chunk)
        return chunk

    def snapshot(self) -> pa.RecordBatch | None:
        """The live answer in order of entering, or None where no view is kept here."""
        if self.kept is None:
            return None
        store = self.kept.store
        slots = np.flatnonzero(store.alive.view) if store.dead else np.arange(len(store))
        some = slots if store.dead else slice(None)  # no copies of what is all wanted
        keys = [store.ts.view[some], *(self._key(self.kept, k, some) for k in self.spec.order)]
        if not sorted_by(keys):
            slots = slots[np.lexsort(keys[::-1])]
        return pa.RecordBatch.from_arrays(list(store.columns(slots)), schema=arrow_schema(self.spec.schema))

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
def _partners(at, code, sign):
    """Rows sorted by (at, code, sign, place): which row each cancels against, or -1.

    The k-th departure cancels the k-th arrival of equal rows; so of the surplus the later in order remain."""
    out = np.full(len(at), -1, np.int64)
    start = 0
    while start < len(at):
        stop = start
        first_born = -1
        while stop < len(at) and at[stop] == at[start] and code[stop] == code[start]:
            if sign[stop] > 0 and first_born < 0:
                first_born = stop
            stop += 1
        if first_born > start:
            deaths, births = first_born - start, stop - first_born
            pairs = min(deaths, births)
            for k in range(pairs):
                gone = first_born - pairs + k  # the smallest places leave; the rest cancel
                out[gone], out[first_born + k] = first_born + k, gone
        start = stop
    return out


@njit(cache=True, nogil=True)
def _hand_down(key, young, old):
    for i in range(len(young)):
        key[young[i]] = key[old[i]]
