"""What goes into the oracle (rows of streams, changes of tables) and what its answers are made of (facts)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from tests.oracle.values import Value, canons

Values = tuple[Value, ...]
Ident = tuple
Key = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """An accepted row of a stream: its timestamp (µs), its arrival number, its values in column order."""

    ts: int
    arrival: int
    values: Values


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a table at an instant.  `version` numbers the row: a deletion names the version it removes."""

    at: int
    kind: Literal["insert", "delete"]
    values: Values
    version: int


@dataclass(frozen=True, slots=True)
class Fact:
    """One row of an answer at one instant.

    ident  what makes it the same row at another instant: the arrivals of its parts; where it has none, its values
    key    its place among the rows that enter or leave at one instant: arrivals of its parts in FROM order (-1:
           padded), or of the oldest live row of its group when it entered
    ts     the largest timestamp of its parts
    birth  the instant at which it entered this answer
    parts  False if anything in it is a row without parts (aggregate, DISTINCT, set operation)
    held   the external window rows that it rests on: (window, ident)
    """

    values: Values
    ident: Ident
    key: Key
    ts: int
    birth: int = 0
    parts: bool = True
    held: frozenset = frozenset()

    def age(self) -> tuple:
        """Sorts the oldest first."""
        return (self.ts, self.key)


def since(previous: list[Fact], fresh: list[Fact], now: int) -> list[Fact]:
    """`fresh`, each with the instant at which it entered: `now` unless it was there already."""
    born = {f.ident: f.birth for f in previous}
    return [replace(f, birth=born.get(f.ident, now)) for f in fresh]


def settle(previous: list[Fact], fresh: list[Fact], now: int) -> list[Fact]:
    """Rows without parts stay by value: a value that was there already is the same row, with the key it entered with.

    Of equal rows those with the smaller keys leave first; those that enter have the keys of `fresh`.
    """
    kept: dict[Values, list[Fact]] = {}
    for fact in sorted(previous, key=lambda f: f.key):
        kept.setdefault(canons(fact.values), []).append(fact)
    out: list[Fact] = []
    for number, fact in enumerate(sorted(fresh, key=lambda f: f.key)):
        same = kept.get(canons(fact.values))
        if same:
            old = same.pop()
            out.append(replace(old, held=fact.held))
        else:
            ident = ("value", canons(fact.values), now, number)
            out.append(replace(fact, ident=ident, birth=now, parts=False))
    return out


def changed(previous: list[Fact], current: list[Fact]) -> tuple[list[Fact], list[Fact]]:
    """(what left, what entered) between two answers, by identity, each in order of its key."""
    before, after = {f.ident for f in previous}, {f.ident for f in current}
    left = [f for f in previous if f.ident not in after]
    entered = [f for f in current if f.ident not in before]
    return sorted(left, key=lambda f: f.key), sorted(entered, key=lambda f: f.key)


def net(left: list[Fact], entered: list[Fact]) -> tuple[list[Fact], list[Fact]]:
    """Cancel pairs of equal values; of several candidates to leave the smaller keys do leave."""
    going: dict[Values, list[Fact]] = {}
    for fact in left:
        going.setdefault(canons(fact.values), []).append(fact)
    coming = []
    for fact in entered:
        same = going.get(canons(fact.values))
        if same:
            same.pop()
        else:
            coming.append(fact)
    gone = {f.ident for same in going.values() for f in same}
    return [f for f in left if f.ident in gone], coming
