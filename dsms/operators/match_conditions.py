"""Conditions of MATCH between a row and the earlier rows of an attempt.

Comparisons of two numbers, each of one step, are asked by the kernel that looks for rows: both
sides become words that are in order as the values are.  What else a condition says is evaluated
over columns of the pairs that are left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from dsms.operators.expressions import ErrorCounter, compile_expr, compile_predicate
from dsms.operators.match_kernels import EQ, GE, GT, LE, LT, NE
from dsms.plan.exprs import MIRRORED, remap, total
from dsms.sql.expr import Call, Col, Expr, columns, conjunction, conjuncts
from dsms.sql.types import WHOLE, Kind
from dsms.state.columns import numpy_true, numpy_valid
from dsms.state.intern import word

_OPS = {"eq": EQ, "ne": NE, "lt": LT, "le": LE, "gt": GT, "ge": GE}
_WORDS = (*WHOLE, Kind.FLOAT, Kind.BOOL)
_NOT_SIGN = np.int64(0x7FFF_FFFF_FFFF_FFFF)


class Earlier(Protocol):
    """Columns of the rows that attempts have taken; behind the last step those are aggregates."""

    def __call__(self, step: int, column: int) -> pa.Array: ...


@dataclass(frozen=True, slots=True)
class Side:
    """An expression over some columns of one step."""

    step: int
    reads: tuple[int, ...]
    run: Any  # (columns that it reads, n, errors) -> array

    def words(self, cols: Sequence[pa.Array], n: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Its values as words in order, and where they are not NULL (None: nowhere NULL)."""
        found = self.run(cols, n, ErrorCounter())
        return in_order(found), numpy_valid(found)


@dataclass(frozen=True, slots=True)
class Term:
    """A comparison of the row with an earlier one."""

    op: int
    mine: Side
    theirs: Side


@dataclass(frozen=True, slots=True)
class Rest:
    """What else must be true.  `reads`: (step, column) of each column that it is evaluated over."""

    reads: tuple[tuple[int, int], ...]
    run: Any  # (columns, n, errors) -> mask

    def met(self, step: int, row: Mapping[int, pa.Array], earlier: Earlier, n: int) -> np.ndarray:
        """For n pairs: `row` has columns of the row, of step `step`.  A pair for which it fails
        does not meet it."""
        cols = [row[c] if s == step else earlier(s, c) for s, c in self.reads]
        return numpy_true(self.run(cols, n, ErrorCounter()))


@dataclass(frozen=True, slots=True)
class Condition:
    """Of one step."""

    terms: tuple[Term, ...]
    rest: Rest | None


NOTHING = Condition((), None)


def condition_of(expr: Expr | None, step: int, firsts: Sequence[int]) -> Condition:
    """The condition of step number `step`; `firsts`: where the columns of each step begin, and
    where those of the last one end."""
    terms, rest = [], []
    for part in conjuncts(expr):
        term = _term(part, step, firsts)
        if term is None:
            rest.append(part)
        else:
            terms.append(term)
    whole = conjunction(rest)
    return Condition(tuple(terms), None if whole is None else rest_of(whole, firsts))


def in_order(col: pa.Array) -> np.ndarray:
    """int64 words that compare as the values do (NaN is above all numbers); any where NULL."""
    words = word(col)
    assert words is not None
    if pa.types.is_floating(col.type):
        return words ^ ((words >> np.int64(63)) & _NOT_SIGN)
    return words


def _step(column: int, firsts: Sequence[int]) -> int:
    """The step that a column belongs to; behind the last one: it is an aggregate."""
    return int(np.searchsorted(firsts, column, "right")) - 1


def rest_of(expr: Expr, firsts: Sequence[int]) -> Rest:
    """A condition that is evaluated over pairs as a whole."""
    used = sorted(columns(expr))
    at = [(k := _step(c, firsts), c - firsts[k]) for c in used]
    run = compile_predicate(remap(expr, {c: i for i, c in enumerate(used)}))
    return Rest(tuple(at), run)


def _term(part: Expr, step: int, firsts: Sequence[int]) -> Term | None:
    """The conjunct as a comparison of two steps; None: it is no such."""
    if not isinstance(part, Call) or part.fn not in _OPS:
        return None
    a, b = part.args
    if a.type != b.type or a.type.kind not in _WORDS or not (total(a) and total(b)):
        return None
    steps = [{_step(c, firsts) for c in columns(e)} for e in (a, b)]
    if any(len(s) != 1 for s in steps) or steps[0] == steps[1]:
        return None
    if any(s == {len(firsts) - 1} for s in steps):
        return None  # an aggregate, which depends on the row in question
    (left,), (right,) = steps
    fn = part.fn
    if right == step:
        a, b, left, right, fn = b, a, right, left, MIRRORED[fn]
    return Term(_OPS[fn], _side(a, left, firsts), _side(b, right, firsts))


def _side(expr: Expr, step: int, firsts: Sequence[int]) -> Side:
    used = sorted(columns(expr))
    if isinstance(expr, Col):
        inner: Expr = Col(0, expr.type, expr.name)
    else:
        inner = remap(expr, {c: i for i, c in enumerate(used)})
    return Side(step, tuple(c - firsts[step] for c in used), compile_expr(inner))
