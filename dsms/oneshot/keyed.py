"""Which rows of a stream leaf a join leaves over: those whose key some row of another leaf has.

A leaf is reduced by the keys of another one (a semijoin) before anything is done to its rows.  As
with conditions on constants (`dsms.oneshot.pushdown`), that is done only where nothing between the
leaf and the join may fail in a row, so the answer does not change: a row without a partner fails
nowhere else.  What is said of the other leaf may be too much, never too little.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dsms.oneshot.pushdown import KINDS
from dsms.oneshot.relation import Op, Pick
from dsms.operators.expressions import can_fail
from dsms.plan import windows
from dsms.sql import logical as lp
from dsms.sql.expr import Col, Expr, columns, conjuncts, rewrite

Pairs = Sequence[tuple[Expr, Expr]]


@dataclass(frozen=True, slots=True)
class Source:
    """The values of a column of a leaf, in rows that meet all of `where` (which can't fail)."""

    leaf: int
    column: int
    where: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Drive:
    """Rows of stream leaf `leaf` matter only where `column` has a value that `by` has, too."""

    leaf: int
    column: int
    by: Source


Asked = tuple[tuple[Expr, Source], ...]


def drives(plan: lp.Node) -> list[Drive]:
    """All that a plan's joins say."""
    return list(dict.fromkeys(_drives(plan, ())))


def _drives(node: lp.Node, asked: Asked) -> Iterator[Drive]:
    """`asked` of the node's own rows by what stands above."""
    match node:
        case lp.StreamScan():
            for expr, source in asked:
                if isinstance(expr, Col) and expr.type.kind in KINDS and source.leaf != node.leaf:
                    yield Drive(node.leaf, expr.index, source)
        case lp.Select():
            yield from _drives(node.child, () if can_fail(node.predicate) else asked)
        case lp.Project():
            through = () if any(map(can_fail, node.exprs)) else asked
            yield from _drives(
                node.child,
                tuple((rewrite(e, lambda c: node.exprs[c.index]), s) for e, s in through),
            )
        case lp.Window():
            kept = tuple((e, s) for e, s in asked if windows.commutes(node.spec, columns(e)))
            yield from _drives(node.child, kept)
        case lp.Join():
            yield from _of_join(node, asked)
        case lp.JoinNRR():
            inner = node.kind == "inner"
            own = _sources(node.keys, node.table) if inner else ()
            yield from _drives(node.child, (*own, *_above(node, asked, 0, len(node.child.schema))))
        case lp.SemiJoin():
            yield from _of_semijoin(node, asked)
        case _:
            for child in lp.children(node):
                yield from _drives(child, ())


def _of_join(node: lp.Join, asked: Asked) -> Iterator[Drive]:
    n, m = len(node.left.schema), len(node.schema)
    left: Asked = _above(node, asked, 0, n) if node.kind in ("inner", "left") else ()
    right: Asked = _above(node, asked, n, m) if node.kind in ("inner", "right") else ()
    if node.kind in ("inner", "right"):
        left += _sources(node.keys, node.right)
    if node.kind in ("inner", "left"):
        right += _sources([(b, a) for a, b in node.keys], node.left)
    yield from _drives(node.left, left)
    yield from _drives(node.right, right)


def _of_semijoin(node: lp.SemiJoin, asked: Asked) -> Iterator[Drive]:
    left = _above(node, asked, 0, len(node.schema))
    if not node.anti:
        left += _sources(node.keys, node.right)
    hides = node.anti and node.null_aware  # a NULL on the right matters to all rows
    right = () if hides else _sources([(b, a) for a, b in node.keys], node.left)
    yield from _drives(node.left, left)
    yield from _drives(node.right, right)


def _above(node: lp.Join | lp.JoinNRR | lp.SemiJoin, asked: Asked, first: int, end: int) -> Asked:
    """What is asked of the columns from `first` to `end`, as seen by that input; nothing where a
    pair may fail in the join."""
    if _may_fail(node):
        return ()
    within = [(e, s) for e, s in asked if all(first <= k < end for k in columns(e))]
    return tuple((_shifted(e, first), s) for e, s in within)


def _may_fail(node: lp.Join | lp.JoinNRR | lp.SemiJoin) -> bool:
    more = [] if node.residual is None else [node.residual]
    return any(map(can_fail, [*(e for pair in node.keys for e in pair), *more]))


def _shifted(expr: Expr, by: int) -> Expr:
    return rewrite(expr, lambda c: Col(c.index - by, c.type, c.name)) if by else expr


def _sources(keys: Pairs, other: lp.Node) -> Asked:
    """Of each key the values that the other side has; nothing where one may fail in a row."""
    if any(can_fail(e) for pair in keys for e in pair):
        return ()
    found = [(a, _source(other, b, ())) for a, b in keys if a.type == b.type]
    return tuple((a, source) for a, source in found if source is not None)


def _source(node: lp.Node, expr: Expr, where: tuple[Expr, ...]) -> Source | None:
    """Where the values of a column come from; `where`: what its rows meet."""
    if not isinstance(expr, Col):
        return None
    match node:
        case lp.StreamScan() | lp.TableScan():
            sure = tuple(e for e in where if not can_fail(e))
            return Source(node.leaf, expr.index, sure)
        case lp.Select():
            return _source(node.child, expr, (*where, *conjuncts(node.predicate)))
        case lp.Project():
            below = [rewrite(e, lambda c: node.exprs[c.index]) for e in (expr, *where)]
            return _source(node.child, below[0], tuple(below[1:]))
        case lp.Window() | lp.Distinct():
            return _source(node.child, expr, where)
        case lp.SemiJoin():
            return _source(node.left, expr, where)
        case lp.Join():
            return _of_side(node.left, node.right, expr, where)
        case lp.JoinNRR():
            return _of_side(node.child, node.table, expr, where)
    return None


def _of_side(left: lp.Node, right: lp.Node, expr: Col, where: tuple[Expr, ...]) -> Source | None:
    """From one input of a join; a row that it pads has no key."""
    n = len(left.schema)
    if expr.index < n:
        return _source(left, expr, tuple(e for e in where if _within(e, 0, n)))
    own = tuple(_shifted(e, n) for e in where if _within(e, n, n + len(right.schema)))
    return _source(right, _shifted(expr, n), own)


def _within(expr: Expr, first: int, end: int) -> bool:
    """Whether it looks at some columns, and at those alone."""
    found = columns(expr)
    return bool(found) and all(first <= k < end for k in found)


def placed(source: Source, ops: Iterable[Op]) -> Source | None:
    """The same values in rows to which that has been done; None: they are not among them."""
    done = list(ops)
    if not done:
        return source
    shown: dict[int, int] | None = None  # columns as they were, by place; None: all are in place
    for op in done:
        if isinstance(op, Pick):
            cols = {k: e.index for k, e in enumerate(op.exprs) if isinstance(e, Col)}
            shown = cols if shown is None else {k: shown[i] for k, i in cols.items() if i in shown}
    if shown is None:
        return Source(source.leaf, source.column)
    found = [k for k, i in shown.items() if i == source.column]
    return Source(source.leaf, found[0]) if found else None
