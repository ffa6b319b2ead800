"""Primary keys: which are taken, which may never come again, and whether a statement keeps to
that."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import pyarrow as pa

from dsms.errors import UsageError
from dsms.intake.values import shown
from dsms.sql.catalog import TableDef
from dsms.state.columns import Column, column_store
from dsms.state.intern import Intern
from dsms.state.vec import Vec

T = TypeVar("T")
FREE, TAKEN, DEAD = 0, 1, 2
UNKNOWN = -1
CODED = 1 << 14  # keys that are looked up in one go
SEEN = 1 << 16  # codes that are looked at in one go


@dataclass(frozen=True, slots=True)
class KeyCodes:
    """What was looked up of the keys of new rows, and of those that go: int64[n] codes, which hold
    as long as nothing has been `purged`."""

    codes: np.ndarray
    gone: np.ndarray
    purged: int


@dataclass(frozen=True, slots=True)
class KeyStage:
    """What becomes of keys by a change that is made ready: `Keys.state` and `version`, of which
    `places` are in use, and the values of keys that die."""

    state: np.ndarray
    version: np.ndarray
    places: int
    purged: int
    dying: list[Sequence[pa.Array]]


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
        _at_once(self.checking(cols, None, known))

    def check_update(
        self, old: Sequence[pa.Array], new: Sequence[pa.Array], known: KeyCodes | None = None
    ) -> None:
        """Rows that change from `old` to `new` at once.  Keys may be exchanged in a retroactive
        table only."""
        _at_once(self.checking(new, old, known))

    def checking(
        self,
        new: Sequence[pa.Array],
        old: Sequence[pa.Array] | None,
        known: KeyCodes | None = None,
    ) -> Generator[None, None, None]:
        """`check_insert`, or `check_update` where there are `old` rows, in pieces."""
        key = self._of(new)
        codes = self._known(key, known)
        repeated = yield from self.repeating(codes)
        self._refuse(repeated, key, "DS521", "would come twice", None)
        now = np.empty(len(codes), np.int8)
        for part in _parts(len(codes)):
            now[part] = self.state.view[codes[part]]
            yield
        taken, dead, hint = now == TAKEN, now == DEAD, "UPDATE it, or DELETE it first"
        if old is None:
            self._refuse(taken, key, "DS521", "is there already", hint)
        else:
            before = self._known(self._of(old), known, gone=True)
            changed = before != codes
            if self.definition.retroactive:
                left = np.zeros(self.intern.capacity, np.bool_)
                left[before] = True
                taken &= ~left[codes]
            self._refuse(changed & taken, key, "DS521", "is there already", None)
            dead &= changed
        self._refuse_dead(dead, key)

    def staging(
        self,
        known: KeyCodes,
        versions: np.ndarray,
        deleted: Callable[[int, int], Sequence[pa.Array]],
    ) -> Generator[None, None, KeyStage | None]:
        """What `apply` does to copies, in pieces; None: the codes are no longer those of the keys.

        deleted  gives the key columns of rows that go, from one of them to another"""
        if known.purged != self.purged:
            return None
        places = self.state.n
        state, version = np.empty_like(self.state.data), np.empty_like(self.version.data)
        for part in _parts(places):
            state[part], version[part] = self.state.data[part], self.version.data[part]
            yield
        for part in _parts(len(known.gone)):
            state[known.gone[part]] = FREE if self.definition.retroactive else DEAD
            yield
        for part in _parts(len(known.codes)):
            state[known.codes[part]] = TAKEN
            version[known.codes[part]] = versions[part]
            yield
        dying: list[Sequence[pa.Array]] = []
        for part in _parts(0 if self.definition.retroactive else len(known.gone)):
            mask = pa.array(state[known.gone[part]] == DEAD)
            dying.append([c.filter(mask) for c in deleted(part.start, part.stop)])
            yield
        return KeyStage(state, version, places, known.purged, dying)

    def install(self, stage: KeyStage) -> bool:
        """Put what `staging` gave in place; False where keys have come since, or codes gone."""
        if stage.places != self.state.n or stage.purged != self.purged:
            return False
        self.state.data, self.version.data = stage.state, stage.version
        for key in stage.dying:
            self._dig(key, np.ones(len(key[0]), np.bool_))
        self._purge()
        return True

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
        self._purge()

    def _purge(self) -> None:
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
        return _at_once(self.repeating(codes, last))

    def repeating(self, codes: np.ndarray, last: bool = False) -> Generator[None, None, np.ndarray]:
        """`repeats` in pieces."""
        out = np.empty(len(codes), np.bool_)
        stands = np.empty(self.intern.capacity, np.int64)
        way, parts = slice(None), list(_parts(len(codes)))
        if not last:
            way, parts = slice(None, None, -1), parts[::-1]
        for part in parts:  # of equal ones the last assignment stands
            stands[codes[part][way]] = np.arange(part.start, part.stop)[way]
            yield
        for part in parts:
            out[part] = stands[codes[part]] != np.arange(part.start, part.stop)
            yield
        return out

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


def _parts(count: int) -> Iterator[slice]:
    for start in range(0, count, SEEN):
        yield slice(start, min(count, start + SEEN))


def _at_once(pieces: Generator[None, None, T]) -> T:
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
