"""Attempts of a MATCH that are under way, by slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dsms.operators.match_kernels import END, linked, unlinked
from dsms.sql.types import FOREVER
from dsms.state.vec import Matrix, Vec

NEW = -2  # a row of the stretch at place p is NEW - p among the rows of an attempt
NOT_YET = -1
CROWD = 4096  # attempts that are over, for which no one sweeps


@dataclass(slots=True)
class Attempts:
    """What is known of each attempt, and which wait for what.  Their slots are in the order of
    their first rows.

    code   of its key;  last: the timestamp of the row that it took last
    limit  the instant from which on no row is within the window of its first;  exp, life: of that
    refs   the rows that it has taken, by step: a slot of the rows that are kept, or a place in the
           stretch (NEW)
    waits  the step whose row it waits for, -1: it is over
    heads  by step the chains by code, linked by `link`;  waiters: how many wait there"""

    steps: int
    code: Vec = field(default_factory=Vec)
    last: Vec = field(default_factory=Vec)
    limit: Vec = field(default_factory=Vec)
    exp: Vec = field(default_factory=Vec)
    life: Vec = field(default_factory=Vec)
    waits: Vec = field(default_factory=Vec)
    link: Vec = field(default_factory=Vec)
    refs: Matrix = field(init=False)
    heads: list[Vec] = field(init=False)
    waiters: list[int] = field(init=False)
    dead: int = 0
    told: int = 0  # attempts before this slot do not wait for the end of their windows

    def __post_init__(self) -> None:
        self.refs = Matrix(width=self.steps)
        self.heads = [Vec() for _ in range(self.steps)]
        self.waiters = [0] * self.steps

    @property
    def n(self) -> int:
        """Slots in use."""
        return self.code.n

    @property
    def live(self) -> int:
        return self.n - self.dead

    def widen(self, capacity: int) -> None:
        """Room for so many codes."""
        for head in self.heads[1:]:
            head.extend_fill(max(0, capacity - head.n), END)

    def begin(
        self,
        ts: np.ndarray,
        code: np.ndarray,
        limit: np.ndarray,
        exp: np.ndarray,
        life: np.ndarray,
    ) -> np.ndarray:
        """An attempt for each row of the first step, by place; their slots."""
        first, n = self.n, len(ts)
        columns = (self.last, self.code, self.limit, self.exp, self.life)
        for vec, values in zip(columns, (ts, code, limit, exp, life), strict=True):
            vec.extend(values)
        self.waits.extend_fill(n, 0)
        self.link.extend_fill(n, END)
        refs = np.full((n, self.steps), NOT_YET, np.int64)
        refs[:, 0] = NEW - np.arange(n)
        self.refs.extend(refs)
        return np.arange(first, first + n, dtype=np.int64)

    def waiting(self, step: int, codes: Sequence[np.ndarray]) -> np.ndarray:
        """The attempts that wait for that step and have one of these keys; they do no longer."""
        out, n = np.empty(self.waiters[step], np.int64), 0
        if len(out):
            for some in codes:
                n = unlinked(self.heads[step].view, self.link.view, some, out, n)
        self.waiters[step] -= n
        return out[:n][self.waits.view[out[:n]] == step]

    def wait(self, step: int, slots: np.ndarray) -> None:
        """They wait for that step."""
        self.waits.view[slots] = step
        linked(self.heads[step].view, self.link.view, slots, self.code.view)
        self.waiters[step] += len(slots)

    def take(self, slots: np.ndarray, step: int, places: np.ndarray, ts: np.ndarray) -> None:
        """They take rows of the stretch."""
        self.refs.view[slots, step] = NEW - places
        self.last.view[slots] = ts

    def ready(self, step: int, upto: int) -> np.ndarray:
        """Those that wait there, whose windows are over at `upto`."""
        first, self.told = self.told, int(np.searchsorted(self.limit.view, upto, "right"))
        return first + np.flatnonzero(self.waits.view[first : self.told] == step)

    def next_end(self, step: int) -> int:
        """When the window of one that waits there may be over; FOREVER: none waits."""
        some = self.waiters[step] and self.told < self.n
        return int(self.limit.view[self.told]) if some else FOREVER

    def end(self, slots: np.ndarray) -> None:
        """They are over."""
        self.waits.view[slots] = -1
        self.dead += len(slots)

    def over_by(self, until: np.ndarray, span: int, step: int, codes: np.ndarray) -> None:
        """Of those that wait for a step and have one of these keys end the ones that began by the
        instant until[key]."""
        slots = self.waiting(step, [codes])
        began = self.limit.view[slots] - span
        late = began > until[self.code.view[slots]]
        self.end(slots[~late])
        self.wait(step, slots[late])

    def crowded(self) -> bool:
        """Whether so many are over that it pays to close the gaps."""
        return self.dead > max(CROWD, self.live, self.heads[-1].n // 4)

    def sweep(self, upto: int, silent: int) -> None:
        """Leave out those that are over, or come to nothing since their window is past; chains are
        made anew.  `silent`: the step at which attempts wait for that, -1: there is none."""
        waits, limit = self.waits.view, self.limit.view
        kept = np.flatnonzero((waits >= 0) & (limit > upto + (waits != silent)))
        for vec in self._vecs():
            vec.keep(kept)
        self.dead = self.told = 0
        for step in range(1, self.steps):
            self.heads[step].view[:] = END
            mine = np.flatnonzero(self.waits.view == step)
            self.waiters[step] = 0
            self.wait(step, mine)

    def moved(self, step: int, where: np.ndarray) -> None:
        """The kept rows of a step have other slots."""
        refs = self.refs.view[:, step]
        some = np.flatnonzero(refs >= 0)
        self.refs.view[some, step] = where[refs[some]]

    def _vecs(self) -> tuple[Vec, ...]:
        fixed = (self.code, self.last, self.limit, self.exp, self.life, self.waits, self.link)
        return (*fixed, self.refs)

    @property
    def nbytes(self) -> int:
        return sum(v.nbytes for v in (*self._vecs(), *self.heads))
