"""What goes into the oracle (rows of streams, changes of tables) and what its answers are made of
(facts)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from tests.oracle.keys import Key
from tests.oracle.values import Value, canons, order_key

Values = tuple[Value, ...]
Ident = tuple


@dataclass(frozen=True, slots=True)
class Row:
    """An accepted row of a stream: its timestamp (µs), its arrival number, its values in column
    order."""

    ts: int
    arrival: int
    values: Values


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a table at an instant.  `version` numbers the row: a deletion names the version
    it removes."""

    at: int
    kind: Literal["insert", "delete"]
    values: Values
    version: int


@dataclass(frozen=True, slots=True)
class Fact:
    """One row of an answer at one instant.

    ident  what makes it the same row at another instant: the arrivals of its parts; where it has
           none, its values
    key    its place among the rows that enter or leave at one instant (`keys`); for a row without
           parts that of the oldest live row of its group when it entered
    ts     the largest timestamp of its parts; of a row without parts the instant at which it
           entered
    birth  the instant at which it entered this answer
    held   the external window rows that it rests on: (window, ident)
    """

    values: Values
    ident: Ident
    key: Key
    ts: int
    birth: int = 0
    held: frozenset = frozenset()

    def age(self) -> tuple:
        """Sorts the oldest first."""
        return (self.ts, self.key)


def since(previous: list[Fact], fresh: list[Fact], now: int) -> list[Fact]:
    """`fresh`, each with the instant at which it entered: `now` unless it was there already."""
    born = {f.ident: f.birth for f in previous}
    dated = ((f, born.get(f.ident, now)) for f in fresh)
    return [f if f.birth == birth else replace(f, birth=birth) for f, birth in dated]


def settle(previous: list[Fact], fresh: list[Fact], now: int) -> list[Fact]:
    """Rows without parts stay by value: a value that was there already is the same row, with the
    key it entered with.

    Of equal rows those with the smaller keys leave first; those that enter have the keys of
    `fresh`.
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
            out.append(replace(fact, ident=ident, birth=now, ts=now))
    return out


def changed(previous: list[Fact], current: list[Fact]) -> tuple[list[Fact], list[Fact]]:
    """(what left, what entered) between two answers, by identity."""
    before, after = {f.ident for f in previous}, {f.ident for f in current}
    return [f for f in previous if f.ident not in after], [
        f for f in current if f.ident not in before
    ]


def in_order(facts: list[Fact]) -> list[Fact]:
    return sorted(facts, key=lambda f: f.key)


def by_columns(facts: list[Fact]) -> list[Fact]:
    """Rows by their columns from the left, NULLs last; equal ones stay in the order they are in."""
    return sorted(facts, key=lambda f: [order_key(v, False, False) for v in f.values])


def net(left: list[Fact], entered: list[Fact]) -> tuple[list[Fact], list[Fact], dict[Ident, Key]]:
    """What is reported of rows without parts: equal ones that leave and enter at one instant
    cancel.

    Of several that could leave those with the smallest keys do, of several that could enter those
    with the largest.  Also answers the keys that cancelled arrivals take over from the rows they
    stand in for.
    """
    going: dict[Values, list[Fact]] = {}
    coming: dict[Values, list[Fact]] = {}
    for facts, groups in ((left, going), (entered, coming)):
        for fact in sorted(facts, key=lambda f: f.key):
            groups.setdefault(canons(fact.values), []).append(fact)
    places: dict[Ident, Key] = {}
    for value in going.keys() & coming.keys():
        old, new = going[value], coming[value]
        pairs = min(len(old), len(new))
        places |= {
            b.ident: a.key for a, b in zip(old[len(old) - pairs :], new[:pairs], strict=True)
        }
        going[value], coming[value] = old[: len(old) - pairs], new[pairs:]
    return (
        [f for same in going.values() for f in same],
        [f for same in coming.values() for f in same],
        places,
    )
