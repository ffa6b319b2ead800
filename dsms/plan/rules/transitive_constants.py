"""A comparison of one side's key of an equi-join with a constant is applied to the other side's key
too."""

from dataclasses import replace

from dsms.plan.exprs import COMPARISONS, MIRRORED, remap
from dsms.plan.rules.base import Context, select
from dsms.sql import logical as lp
from dsms.sql.expr import Call, Col, Expr, Lit, columns, conjuncts, shift


def transitive_constants(node: lp.Node, ctx: Context) -> lp.Node:
    """Join(Select(l, a = 5), r, keys (a, b)) -> Join(Select(l, a = 5), Select(r, b = 5), keys (a,
    b)); so for <, > ...

    A row of r that fails b = 5 equals no a that is shown, so it takes part in nothing at any
    instant.  It may be left out wherever a row without match is not shown: to the right of inner
    and left joins, of EXISTS and of negation (not of NOT IN), to the left of inner and right joins
    and of EXISTS.
    """
    match node:
        case lp.Join():
            to_right, to_left = node.kind in ("inner", "left"), node.kind in ("inner", "right")
        case lp.SemiJoin(null_aware=False):
            to_right, to_left = True, not node.anti
        case _:
            return node
    right = _implied(node.left, node.right, [(a, b) for a, b in node.keys]) if to_right else []
    left = _implied(node.right, node.left, [(b, a) for a, b in node.keys]) if to_left else []
    if not (left or right):
        return node
    return replace(node, left=select(node.left, left), right=select(node.right, right))


def _implied(source: lp.Node, target: lp.Node, keys: list[tuple[Expr, Expr]]) -> list[Expr]:
    """Comparisons with constants that hold on `target` because they hold on `source`, and are not
    known there yet."""
    known, there = facts(source), facts(target)
    found = []
    for a, b in keys:
        if isinstance(a, Col) and isinstance(b, Col):
            moved = [_about(f, target, b.index) for f in known if columns(f) == {a.index}]
            found += [f for f in moved if f not in there]
    return list(dict.fromkeys(found))


def facts(node: lp.Node) -> list[Expr]:
    """Comparisons `column op constant` that every row of the node is known to meet; columns named
    as in its schema."""
    match node:
        case lp.Select():
            found = _comparisons(node.predicate) + facts(node.child)
        case lp.Window() | lp.Over() | lp.Distinct() | lp.Sort() | lp.Append():
            found = facts(node.child)
        case lp.JoinNRR():
            found = facts(node.child) + (
                _comparisons(node.residual) if node.kind == "inner" else []
            )
        case lp.SemiJoin() | lp.SetOp() | lp.AsofJoin():
            found = facts(node.left)
        case lp.Project():
            found = _passed_on(node.exprs, node.child)
        case lp.GroupBy():
            found = _passed_on(node.keys, node.child)
        case lp.Union():
            first, *others = [facts(x) for x in node.inputs]
            found = [
                f
                for f in first
                if all(_about(f, x) in o for x, o in zip(node.inputs[1:], others, strict=True))
            ]
        case lp.Join():
            left = facts(node.left) if node.kind in ("inner", "left") else []
            right = facts(node.right) if node.kind in ("inner", "right") else []
            own = _comparisons(node.residual) if node.kind == "inner" else []
            found = own + left + [shift(f, len(node.left.schema)) for f in right]
        case _:
            found = []
    return list(dict.fromkeys(_about(f, node) for f in found))


def _passed_on(exprs: tuple[Expr, ...], child: lp.Node) -> list[Expr]:
    """Facts about the columns that are passed on as they are, at their new positions."""
    below = facts(child)
    bare = [(new, e.index) for new, e in enumerate(exprs) if isinstance(e, Col)]
    return [remap(f, {old: new}) for new, old in bare for f in below if columns(f) == {old}]


def _about(fact: Expr, node: lp.Node, index: int | None = None) -> Expr:
    """The fact as one about the node's column `index`, named as there, so that equal facts are
    equal expressions."""
    assert isinstance(fact, Call)
    at = next(iter(columns(fact))) if index is None else index
    column = Col(at, node.schema[at].type, node.schema[at].name)
    return Call(fact.fn, tuple(column if isinstance(x, Col) else x for x in fact.args), fact.type)


def _comparisons(predicate: Expr | None) -> list[Expr]:
    return [c for part in conjuncts(predicate) if (c := _comparison(part)) is not None]


def _comparison(part: Expr) -> Call | None:
    """`column op constant` (turned around if need be)."""
    if not isinstance(part, Call) or part.fn not in COMPARISONS:
        return None
    a, b = part.args
    if isinstance(a, Col) and isinstance(b, Lit):
        return part
    if isinstance(a, Lit) and isinstance(b, Col):
        return Call(MIRRORED[part.fn], (b, a), part.type)
    return None
