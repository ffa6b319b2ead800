"""Primary keys: which are taken, which may never come again, and whether a statement keeps to
that."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dsms.errors import UsageError
from dsms.intake.values import shown
from dsms.sql.catalog import TableDef
from dsms.state.columns import Column, column_store
from dsms.state.intern import Intern
from dsms.state.vec import Vec

FREE, TAKEN, DEAD = 0, 1, 2
UNKNOWN = -1
CODED = 1 << 14  # keys that are looked up in one go


@dataclass(frozen=True, slots=True)
class KeyCodes:
    """What was looked up of the keys of new rows, and of those that go: int64[n] codes, which hold
    as long as nothing has been `purged`."""

    codes: np.ndarray
    gone: np.ndarray
    purged: int


@dataclass(slots=True)
class Keys:
    """The state of every key value that is or was: one small number per interned code."""

    definition: TableDef
    intern: Intern = field(init=False)
    state: Vec = field(default_factory=lambda: Vec(np.int8))
    version: Vec = field(default_factory=Vec)  # of the row that has the key, if it is taken
    graves: list[Column] = field(init=False)  # the values of dead keys
    buried: int = 0
    purged: int = 0  # how often codes were taken from keys that nothing uses

    def __post_init__(self) -> None:
        self.intern = Intern(len(self.definition.key))
        self.graves = [
            column_store(self.definition.schema[i].type.arrow) for i in self.definition.key
        ]

    def coding(
        self, new: Sequence[pa.Array] | None, old: Sequence[pa.Array] | None = None
    ) -> Generator[None, None, KeyCodes]:
        """Look the keys of new and of old rows (all columns; None: there are none) up, CODED at a
        time."""
        while True:
            purged = self.purged
            come, gone = (yield from self._coded(new)), (yield from self._coded(old))
            if purged == self.purged:
                return KeyCodes(come, gone, purged)

    def _coded(self, cols: Sequence[pa.Array] | None) -> Generator[None, None, np.ndarray]:
        parts = [np.empty(0, np.int64)]
        key = [] if cols is None else self._of(cols)
        for first in range(0, len(key[0]) if key else 0, CODED):
            parts.append(self._codes([c.slice(first, CODED) for c in key]))
            yield
        return np.concatenate(parts)

    def check_insert(self, cols: Sequence[pa.Array], known: KeyCodes | None = None) -> None:
        """New rows (all columns): their keys must be free and different.  Raises UsageError DS521,
        DS522."""
        key = self._of(cols)
        codes = self._known(key, known)
        self._refuse_repeats(codes, key)
        now = self.state.view[codes]
        self._refuse(
            now == TAKEN, key, "DS521", "is there already", "UPDATE it, or DELETE it first"
        )
        self._refuse_dead(now == DEAD, key)

    def check_update(
        self, old: Sequence[pa.Array], new: Sequence[pa.Array], known: KeyCodes | None = None
    ) -> None:
        """Rows that change from `old` to `new` at once.  Keys may be exchanged in a retroactive
        table only."""
        key = self._of(new)
        before, after = self._known(self._of(old), known, gone=True), self._known(key, known)
        self._refuse_repeats(after, key)
        changed = before != after
        taken = self.state.view[after] == TAKEN
        if self.definition.retroactive:
            taken &= ~np.isin(after, before)
        self._refuse(changed & taken, key, "DS521", "is there already", None)
        self._refuse_dead(changed & (self.state.view[after] == DEAD), key)

    def apply(
        self,
        deleted: Sequence[pa.Array],
        inserted: Sequence[pa.Array],
        versions: np.ndarray,
        known: KeyCodes | None = None,
    ) -> None:
        """Rows with these keys (key columns) are gone and there, the latter as these `versions`.
        One that only went is dead if the table is non-retroactive."""
        gone, come = self._known(deleted, known, gone=True), self._known(inserted, known)
        self.state.view[gone] = FREE if self.definition.retroactive else DEAD
        self.state.view[come] = TAKEN
        self.version.view[come] = versions
        if not self.definition.retroactive:
            self._dig(deleted, self.state.view[gone] == DEAD)
        used = self.state.view != FREE
        if self.intern.wants_purge(int(np.count_nonzero(used))):
            self.intern.purge(used)
            self.purged += 1

    def bury(self, key: Sequence[pa.Array]) -> None:
        """Keys that died before (when a table is loaded)."""
        codes = self._codes(key)  # may replace what `view` shows
        self.state.view[codes] = DEAD
        self._dig(key, np.ones(len(key[0]), np.bool_))

    def dead(self) -> tuple[pa.Array, ...]:
        """The keys that may not come again, as key columns."""
        return tuple(g.gather(np.arange(self.buried)) for g in self.graves)

    def _dig(self, key: Sequence[pa.Array], which: np.ndarray) -> None:
        mask = pa.array(which)
        for grave, col in zip(self.graves, key, strict=True):
            grave.append(col.filter(mask))
        self.buried += int(np.count_nonzero(which))

    @property
    def nbytes(self) -> int:
        held = self.intern.nbytes + self.state.nbytes + self.version.nbytes
        return held + sum(g.nbytes for g in self.graves)

    def _of(self, cols: Sequence[pa.Array]) -> list[pa.Array]:
        return [cols[i] for i in self.definition.key]

    def _codes(self, key: Sequence[pa.Array]) -> np.ndarray:
        codes = self.intern.codes(key, len(key[0]))
        self.state.extend_fill(self.intern.capacity - self.state.n, FREE)
        self.version.extend_fill(self.intern.capacity - self.version.n, UNKNOWN)
        return codes

    def standing(
        self, cols: Sequence[pa.Array], known: KeyCodes | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of new rows (all columns): their codes, FREE, TAKEN or DEAD, and the versions that have
        their keys (UNKNOWN: none, or a state of earlier versions does not say)."""
        codes = self._known(self._of(cols), known)
        return codes, self.state.view[codes], self.version.view[codes]

    def refuse(self, repeated: np.ndarray, dead: np.ndarray, cols: Sequence[pa.Array]) -> None:
        """Raise DS521 for rows (masks) whose keys come twice, DS522 for those of dead keys."""
        key = self._of(cols)
        self._refuse(repeated, key, "DS521", "would come twice", None)
        self._refuse_dead(dead, key)

    def _known(
        self, key: Sequence[pa.Array], known: KeyCodes | None, gone: bool = False
    ) -> np.ndarray:
        if known is None or known.purged != self.purged:
            return self._codes(key)
        return known.gone if gone else known.codes

    def repeats(self, codes: np.ndarray, last: bool = False) -> np.ndarray:
        """bool[n]: which have the code of one before them; with `last`, of one behind them."""
        rows = np.arange(len(codes))
        stands = np.empty(self.intern.capacity, np.int64)
        way = slice(None) if last else slice(None, None, -1)
        stands[codes[way]] = rows[way]  # of equal ones the last assignment stands
        return stands[codes] != rows

    def _refuse_repeats(self, codes: np.ndarray, key: Sequence[pa.Array]) -> None:
        self._refuse(self.repeats(codes), key, "DS521", "would come twice", None)

    def _refuse_dead(self, dead: np.ndarray, key: Sequence[pa.Array]) -> None:
        hint = (
            "results that were joined with the old row may still be in use: take a new key, or "
            "declare the table without NON RETROACTIVE"
        )
        self._refuse(
            dead,
            key,
            "DS522",
            "was deleted, and a key of a NON RETROACTIVE table is never used again",
            hint,
        )

    def _refuse(
        self, bad: np.ndarray, key: Sequence[pa.Array], code: str, what: str, hint: str | None
    ) -> None:
        if not bad.any():
            return
        row = int(np.argmax(bad))
        names = ", ".join(self.definition.schema[i].name for i in self.definition.key)
        values = ", ".join(shown(col[row].as_py()) for col in key)
        more = f" (and {int(bad.sum()) - 1} more)" if bad.sum() > 1 else ""
        message = (
            f"table {self.definition.name}: key {names} = {values} {what}{more}; nothing "
            "was changed"
        )
        raise UsageError(code, message, hint=hint)
