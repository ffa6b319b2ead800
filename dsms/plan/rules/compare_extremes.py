"""What is compared with all rows of a subquery is compared with its smallest or largest value."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dsms.plan.exprs import MIRRORED, total, within
from dsms.plan.patterns import pattern_of
from dsms.plan.rules.base import Context
from dsms.sql import logical as lp
from dsms.sql.episodes import at_close
from dsms.sql.expr import AggCall, Call, Col, Expr, Lit, columns, conjunction, conjuncts, shift
from dsms.sql.types import BOOL, Field, Kind

_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne"}
_EXTREMES = {"lt": ("max",), "le": ("max",), "gt": ("min",), "ge": ("min",), "ne": ("min", "max")}
_ORDERED = frozenset(
    {Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.STRING, Kind.TIMESTAMP, Kind.INTERVAL}
)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """`mine` stands to `theirs` as `fn` says; `unknown`: it counts as a match where that is
    NULL."""

    fn: str
    mine: Expr
    theirs: Expr
    unknown: bool = False


def compare_extremes(node: lp.Node, ctx: Context) -> lp.Node:
    """SemiJoin(a, r, x < y) -> SemiJoin(a, GroupBy(r; MAX(y)), x < max), anti or not; so for <=,
    for > and >= with MIN, for <> with both: some y is greater than x exactly if the greatest is,
    and NULL, among y or as the MAX of no rows, is greater than nothing.

    Where NULL counts as a match (ALL, NOT ANY), BOOL_OR(y IS NULL) stands beside: TRUE says that
    each row has a match, NULL that there are no rows, so that none has.  Each row of `a` meets one
    row instead of all of `r`, which changes only with the extreme, in the very instant in which `r`
    does; the matches of an instant are judged at its end, so its old row and its new one are one
    step.  Not by keys, where the matches of a row may be few; not over INTERNAL windows, of which
    an aggregate tells what has been; not if a side can fail, which would be worked out for rows
    that meet no partner.
    """
    match node:
        case lp.SemiJoin(keys=(), null_aware=False, right=right) if _lends_itself(right):
            width = len(node.left.schema)
            own, found = _parts(conjuncts(node.residual), width)
        case _:
            return node
    if found is None:
        return node
    row = _summed_up(right, found)
    match_ = conjunction([*own, *_residual(found, width)])
    new = replace(node, right=row, residual=match_)
    return node if pattern_of(new) > pattern_of(node) else new


def _lends_itself(right: lp.Node) -> bool:
    below = right
    while isinstance(below, lp.Select | lp.Project):
        below = below.child
    is_one_row = isinstance(below, lp.GroupBy) and not below.keys
    return not is_one_row and not at_close(right) and not _lasting(right)


def _lasting(node: lp.Node) -> bool:
    """Whether there is an INTERNAL window below, but in a block that appends."""
    if isinstance(node, lp.Append) and not node.mixed:
        return False
    internal = isinstance(node, lp.Window) and node.spec.internal
    return internal or any(map(_lasting, lp.children(node)))


def _parts(parts: list[Expr], width: int) -> tuple[list[Expr], _Comparison | None]:
    """Conditions over the left columns alone, and the one comparison beside them, if so."""
    own, found = list[Expr](), list[_Comparison | None]()
    for part in parts:
        if within(part, 0, width):
            own.append(part)
        else:
            found.append(_comparison(part, width))
    fits = len(found) == 1 and all(map(total, own))
    return own, found[0] if fits else None


def _comparison(part: Expr, width: int) -> _Comparison | None:
    match part:
        case Call(fn="coalesce", args=(inner, Lit(value=True))):
            found = _comparison(inner, width)
            return None if found is None else replace(found, unknown=True)
        case Call(fn="not", args=(Call(fn=fn, args=(a, b)),)) if fn in _OPPOSITE:
            return _comparison(Call(_OPPOSITE[fn], (a, b), BOOL), width)
        case Call(fn=fn, args=(a, b)) if fn in _EXTREMES and total(a) and total(b):
            return _sides(fn, a, b, width)
    return None


def _sides(fn: str, a: Expr, b: Expr, width: int) -> _Comparison | None:
    if not columns(a) or not columns(b):
        return None
    if min(columns(a)) >= width:
        fn, a, b = MIRRORED[fn], b, a
    if not within(a, 0, width) or min(columns(b)) < width or b.type.kind not in _ORDERED:
        return None
    return _Comparison(fn, a, shift(b, -width))


def _summed_up(right: lp.Node, found: _Comparison) -> lp.GroupBy:
    """The one row of all rows."""
    theirs = found.theirs
    aggs = [AggCall(fn, (theirs,), theirs.type, name=fn) for fn in _EXTREMES[found.fn]]
    if found.unknown:
        null = Call("is_null", (theirs,), BOOL)
        aggs.append(AggCall("bool_or", (null,), BOOL, name="unknown"))
    return lp.GroupBy(right, (), tuple(aggs), tuple(Field(a.name, a.type) for a in aggs))


def _residual(found: _Comparison, width: int) -> list[Expr]:
    """Whether a row has a match, over its columns and those of `_summed_up`."""
    extremes = _EXTREMES[found.fn]
    compared = [
        Call(found.fn, (found.mine, Col(width + k, found.theirs.type, name)), BOOL)
        for k, name in enumerate(extremes)
    ]
    said: Expr = compared[0] if len(compared) == 1 else Call("or", tuple(compared), BOOL)
    if not found.unknown:
        return [said]
    unknown = Col(width + len(extremes), BOOL, "unknown")
    either = Call("or", (unknown, Call("coalesce", (said, Lit(True, BOOL)), BOOL)), BOOL)
    return [Call("is_not_null", (unknown,), BOOL), either]
