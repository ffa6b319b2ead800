"""Arrivals and departures of rows in groups whose rows leave in the order they came (WKS): a queue,
and no look-ups.

Input    WKS: `exp` never falls, no deletions.     State  arrays in arrival order with a head, per
         slot the expiry, the
group, a link to the group's next younger row, arrival numbers and words of the arguments.
Cost     one comparison and a few moves an event: arrivals and departures are merged as they are
         counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit

from dsms.aggregates.parts.base import Arg
from dsms.aggregates.parts.links import NIL, moved_links, renamed
from dsms.operators.group_args import ArgColumn
from dsms.operators.group_touch import Groups, Scratch, Touches
from dsms.sql.types import FOREVER
from dsms.state.batch import Batch
from dsms.state.lengthening import grown
from dsms.state.vec import Vec

DROP_FROM = 4096  # dead slots; fewer are left lying


@njit(cache=True, nogil=True)
def _merge(
    ts,
    first,
    exp,
    oldest,
    code_of,
    upto,
    count,
    head,
    tail,
    after,
    at,
    code,
    sign,
    slot,
    live,
    eldest,
):
    """Merge arrivals (slots from `first` on, at `ts`) with departures (slots from `oldest` on, at
    `exp`).

    Answers (events, departed, by how many groups more have rows)."""
    alive = n = 0
    coming, going = first, oldest
    stop = first + len(ts)
    keyed = len(code_of) > 0
    while True:
        now = ts[coming - first] if coming < stop else upto
        if going < coming and exp[going] <= now:
            s, now = going, exp[going]
            going += 1
            g = code_of[s] if keyed else 0
            head[g] = after[s] if keyed else (going if going < coming else NIL)
            count[g] -= 1
            alive -= count[g] == 0
            sign[n] = -1
        elif coming < stop:
            s = coming
            coming += 1
            g = code_of[s] if keyed else 0
            if count[g] == 0:
                head[g] = s
                alive += 1
            elif keyed:
                after[tail[g]] = s
            if keyed:
                after[s], tail[g] = NIL, s
            count[g] += 1
            sign[n] = 1
        else:
            break
        at[n], code[n], slot[n], live[n], eldest[n] = now, g, s, count[g], head[g]
        n += 1
    return n, going - oldest, alive


@dataclass(slots=True)
class FifoFeed:
    """Events of an input whose rows leave in the order they came; `keyed`: there is more than the
    one group."""

    width: int
    args: list[ArgColumn]
    keyed: bool
    groups: Groups = field(default_factory=Groups)
    exp: Vec = field(default_factory=Vec)  # by slot
    code: Vec = field(default_factory=Vec)  # by slot, unused without keys
    ids: list[Vec] = field(init=False)  # by slot
    # by slot, unused without keys
    after: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    # by group: head, tail
    ends: list[np.ndarray] = field(default_factory=lambda: [np.empty(0, np.int64)] * 2)
    oldest: int = 0  # slots before this are dead
    scratch: Scratch = field(default_factory=Scratch)

    def __post_init__(self) -> None:
        self.ids = [Vec() for _ in range(self.width)]

    def step(
        self,
        batch: Batch,
        codes: np.ndarray,
        lifted: list[Arg],
        capacity: int,
        upto: int,
        seed: bool,
    ) -> Touches:
        first = self.exp.n
        self._keep(batch, codes, lifted)
        self.groups.grow(capacity)
        self.ends = [grown(e, capacity, NIL) for e in self.ends]
        exp = self.exp.view
        due = int(np.searchsorted(exp[self.oldest :], upto, side="right"))
        most = len(batch) + due
        at, code, slot, live, oldest = self.scratch.ints(most, 5)
        sign = self.scratch.signs8(most)
        n, gone, alive = _merge(
            batch.ts,
            first,
            exp,
            self.oldest,
            self.code.view,
            upto,
            self.groups.count,
            *self.ends,
            self.after,
            at,
            code,
            sign,
            slot,
            live,
            oldest,
        )
        self.oldest += gone
        self.groups.alive += alive
        views = [a.view() for a in self.args]
        ids = tuple(v.view for v in self.ids)
        return self.groups.trace(
            at[:n], code[:n], sign[:n], slot[:n], live[:n], oldest[:n], capacity, seed, views, ids
        )

    def _keep(self, batch: Batch, codes: np.ndarray, lifted: list[Arg]) -> None:
        n = len(batch)
        if batch.exp is None:
            self.exp.extend_fill(n, FOREVER)
        else:
            self.exp.extend(batch.exp)
        if self.keyed:
            self.code.extend(codes)
            self.after = grown(self.after, self.code.n, NIL)
        for vec, ids in zip(self.ids, batch.ids, strict=True):
            vec.extend(ids)
        for arg, new in zip(self.args, lifted, strict=True):
            arg.keep(new, n)

    def settle(self) -> np.ndarray | None:
        dead, n = self.oldest, self.exp.n
        if dead < DROP_FROM or 2 * dead < n:
            return None
        kept = np.arange(dead, n, dtype=np.int64)
        where = np.arange(-dead, n - dead, dtype=np.int64)
        where[:dead] = NIL
        for vec in (self.exp, *self.ids, *([self.code] if self.keyed else [])):
            vec.keep(kept)
        for arg in self.args:
            arg.moved(kept)
        if self.keyed:
            self.after = moved_links(self.after, where, kept)
        self.ends = [renamed(e, where) for e in self.ends]
        self.oldest = 0
        return where

    def held(self, arg: int) -> np.ndarray:
        return self.args[arg].held(np.arange(self.exp.n) >= self.oldest)

    @property
    def live(self) -> int:
        return self.exp.n - self.oldest

    @property
    def slots(self) -> int:
        return self.exp.n

    def next_due(self) -> int:
        return int(self.exp.view[self.oldest]) if self.live else FOREVER

    @property
    def nbytes(self) -> int:
        own = sum(v.nbytes for v in (self.exp, self.code, *self.ids)) + self.after.nbytes
        own += sum(e.nbytes for e in self.ends) + self.groups.nbytes + self.scratch.nbytes
        return int(own + sum(a.nbytes for a in self.args))
