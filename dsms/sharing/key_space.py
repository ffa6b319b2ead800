"""The groups of one stream by the same keys, numbered once for all feeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from dsms.operators.expressions import ErrorCounter, compile_expr
from dsms.operators.group_keys import GroupKeys
from dsms.sql.expr import Expr
from dsms.state.batch import Batch

LOOK_EVERY = 8  # times that groups may be forgotten, or when so many more are there
GROWN = 1.25

Exprs = Sequence[Callable[..., pa.Array]]


class Grouped(Protocol):
    """What holds cells of the groups."""

    def flush(self) -> None:
        """Lift what waits."""
        ...

    def present(self) -> np.ndarray:
        """bool[groups]: which groups have rows in what is held."""
        ...


@dataclass(slots=True)
class KeySpace:
    """Codes of the groups of one stream by the same keys; feeds with different conditions share
    it.

    working  pieces of work that have begun and not ended; they hold codes"""

    stream: str
    exprs: tuple[Expr, ...]
    keys: GroupKeys = field(init=False)
    compiled: Exprs = field(init=False)
    feeds: list[Grouped] = field(default_factory=list)
    # groups when it was last asked which of them live, and how often it was not since
    looked: int = 0
    unlooked: int = 0
    rank: np.ndarray | None = None  # codes in the order of their keys, while no key is new
    working: int = 0

    def __post_init__(self) -> None:
        self.keys = GroupKeys(tuple(e.type for e in self.exprs))
        self.compiled = [compile_expr(e) for e in self.exprs]

    def __getstate__(self) -> dict[str, Any]:
        """Not what is at work: nothing is where the state goes on."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "working"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.looked = self.unlooked = self.working = 0  # earlier versions have not all fields
        self.rank = None
        for name, value in state.items():
            setattr(self, name, value)

    @property
    def groups(self) -> int:
        """Codes are below this."""
        return max(1, self.keys.capacity)

    def codes(self, rows: Batch, errors: ErrorCounter) -> np.ndarray:
        """int64[n]: groups of the rows."""
        n = len(rows)
        if not self.exprs:
            return np.zeros(n, np.int64)
        before = self.keys.rows
        codes = self.keys.codes([e(rows.cols, n, errors) for e in self.compiled], n)
        if self.keys.rows != before:
            self.rank = None
        return codes

    def in_order(self) -> np.ndarray:
        """int64[g]: the codes in use, by their keys left to right, NULLs last."""
        from dsms.operators.sort import by_columns

        if self.rank is None or len(self.rank) > self.keys.rows:
            used = np.flatnonzero(self.keys.place.view[: self.keys.capacity] >= 0)
            self.rank = used[by_columns(self.keys.gather(used), len(used))]
        return self.rank

    def work(self, steps: Iterator[None]) -> Iterator[None]:
        """The steps, between which others may have turns: until the last, no group is let go of by
        others."""
        self.working += 1
        try:
            yield from steps
        finally:
            self.working -= 1
        if not self.working and self._due():  # it may have been put off
            self._forget()

    def forget(self, within: bool = False) -> None:
        """Let go of groups that no sub-window holds, or do so once nobody is in the middle of work.
        `within`: the caller is, and holds no codes."""
        self.unlooked += self._many
        if self.working <= within and self._due():
            self._forget()

    @property
    def _many(self) -> bool:
        return bool(self.exprs) and self.keys.rows >= 4096

    def _due(self) -> bool:
        often = self.unlooked >= LOOK_EVERY or self.keys.rows >= GROWN * self.looked
        return self._many and often

    def _forget(self) -> None:
        self.unlooked, self.looked = 0, self.keys.rows
        live = np.zeros(self.keys.capacity, np.bool_)
        for feed in self.feeds:
            feed.flush()
            live |= feed.present()[: self.keys.capacity]
        if self.keys.wants_purge(int(np.count_nonzero(live))):
            self.keys.purge(live)
            self.rank = None
