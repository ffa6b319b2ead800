"""Predicate covers: a query answered from feeds with other predicates (Golab 2006, §8.3.3).

Predicates are disjunctions of atoms `column op constant`.  An atom is never true of NULL, so rows
with NULL are in no atom's set and disturb no disjointness.  For the rows of a query, the feeds
found are

    disjoint cover  its terms, each once, and no row in two feeds                  added     (any
                    exact aggregate)
    cover           its terms                                                      united (MIN, MAX,
                    DISTINCT)
    supercover      more terms than it has, less a disjoint cover of what is more  subtracted (SUM,
                    COUNT, counters)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dsms.sql.expr import Call, Col, Expr, Lit
from dsms.sql.types import WHOLE

Op = Literal["eq", "ne", "lt", "le", "gt", "ge"]
FLIPPED: dict[str, Op] = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
TRIES = 2000  # feeds looked at for one cover, so that a thousand predicates cost no more than a few
PARTS = 16  # feeds in one cover


@dataclass(frozen=True, slots=True)
class Atom:
    """`column op value`; ranges over whole numbers are written with le and ge alone."""

    column: int
    op: Op
    value: Any
    name: str = field(default="", compare=False)

    def disjoint(self, other: Atom) -> bool:
        """Whether no row satisfies both.  True only where that is sure."""
        if self.column != other.column:
            return False
        return not any(_meet(a, b) for a in self._ranges() for b in other._ranges())

    def _ranges(self) -> tuple[Range, ...]:
        v = self.value
        match self.op:
            case "eq":
                return (((v, True), (v, True)),)
            case "ne":
                return ((None, (v, False)), ((v, False), None))
            case "lt" | "le":
                return ((None, (v, self.op == "le")),)
        return (((v, self.op == "ge"), None),)


End = tuple[Any, bool] | None  # (constant, whether it belongs to the range); None: without end
Range = tuple[End, End]
Terms = frozenset[Atom]


def _meet(a: Range, b: Range) -> bool:
    """Whether two ranges may have a value in common."""
    return _before(a[0], b[1]) and _before(b[0], a[1])


def _before(low: End, high: End) -> bool:
    if low is None or high is None:
        return True
    return bool(low[0] < high[0] or (low[0] == high[0] and low[1] and high[1]))


def terms(where: Sequence[Expr]) -> Terms | None:
    """The terms of a predicate that is one disjunction of atoms, without repetitions; None if it is
    anything else."""
    if len(where) != 1:
        return None
    found = [_atom(t) for t in _disjuncts(where[0])]
    return None if None in found else frozenset(a for a in found if a is not None)


def _disjuncts(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, Call) and expr.fn == "or":
        for arg in expr.args:
            yield from _disjuncts(arg)
    elif isinstance(expr, Call) and expr.fn == "in":
        for value in expr.args[1:]:
            yield Call("eq", (expr.args[0], value), expr.type)
    else:
        yield expr


def _atom(expr: Expr) -> Atom | None:
    if not (isinstance(expr, Call) and expr.fn in FLIPPED and len(expr.args) == 2):
        return None
    (a, b), op = expr.args, expr.fn
    if isinstance(a, Lit):
        a, b, op = b, a, FLIPPED[op]
    if not (isinstance(a, Col) and isinstance(b, Lit)) or b.value is None or b.value != b.value:
        return None
    value: Any = b.value
    if a.type.kind in WHOLE and op in ("lt", "gt"):
        op, value = ("le", value - 1) if op == "lt" else ("ge", value + 1)
    return Atom(a.index, op, value, a.name)  # type: ignore[arg-type]


def apart(a: Iterable[Atom], b: Iterable[Atom]) -> bool:
    """Whether no row satisfies a term of either."""
    others = list(b)
    return all(x.disjoint(y) for x in a for y in others)


# ---------------------------------------------------------------- which feeds


@dataclass(frozen=True, slots=True)
class Cover:
    """How answers are combined, and the places (in what was offered) of the feeds: `plus`, and
    `less` to subtract."""

    how: Literal["added", "united", "subtracted"]
    plus: tuple[int, ...]
    less: tuple[int, ...] = ()


def cover(wanted: Terms, offered: Sequence[Terms], overlap: bool, subtract: bool) -> Cover | None:
    """The relevant feeds among those offered, by their terms; None if there are none.

    overlap: the aggregate is duplicate-insensitive;  subtract: it is subtractable"""
    search = _Search(offered)
    found = search.exact(wanted, disjoint=not overlap)
    if found is not None:
        return Cover("united" if overlap else "added", found)
    return search.supercover(wanted) if subtract else None


@dataclass(slots=True)
class _Search:
    offered: Sequence[Terms]
    tries: int = TRIES
    big: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.big = sorted(range(len(self.offered)), key=lambda i: -len(self.offered[i]))

    def exact(self, wanted: Terms, disjoint: bool) -> tuple[int, ...] | None:
        """Feeds whose terms together are those wanted; `disjoint`: no row in two of them."""
        fitting = [i for i in self.big if self.offered[i] and self.offered[i] <= wanted]
        return self._rest(wanted, fitting, (), disjoint)

    def _rest(
        self, open_: Terms, fitting: list[int], chosen: tuple[int, ...], disjoint: bool
    ) -> tuple[int, ...] | None:
        if not open_:
            return chosen
        if len(chosen) >= PARTS:
            return None
        first = min(open_, key=repr)
        for i in fitting:
            self.tries -= 1
            if self.tries < 0:
                return None
            mine = self.offered[i]
            if first not in mine or (
                disjoint and not all(apart(mine, self.offered[k]) for k in chosen)
            ):
                continue
            found = self._rest(open_ - mine, fitting, (*chosen, i), disjoint)
            if found is not None:
                return found
        return None

    def supercover(self, wanted: Terms) -> Cover | None:
        """A feed with more terms, less a disjoint cover of those that are too many; the smallest
        such feed."""
        for i in reversed(self.big):
            extra = self.offered[i] - wanted
            if wanted <= self.offered[i] and extra and apart(extra, wanted):
                less = self.exact(extra, disjoint=True)
                if less is not None:
                    return Cover("subtracted", (i,), less)
        return self._wide(wanted)

    def _wide(self, wanted: Terms) -> Cover | None:
        """Disjoint feeds with more terms together, less a disjoint cover of those that are too
        many."""
        touching = [i for i in self.big if self.offered[i] & wanted]
        for first in touching:
            chosen, left = [first], wanted - self.offered[first]
            for i in touching:
                if left & self.offered[i] and all(
                    apart(self.offered[i], self.offered[k]) for k in chosen
                ):
                    chosen.append(i)
                    left -= self.offered[i]
            if left or len(chosen) < 2:
                continue
            extra = frozenset(t for i in chosen for t in self.offered[i]) - wanted
            less = self.exact(extra, disjoint=True) if apart(extra, wanted) else None
            if less:
                return Cover("subtracted", tuple(chosen), less)
        return None
