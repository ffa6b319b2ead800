"""Constant parts of a predicate are worked out before any row comes."""

from dsms.plan.exprs import total
from dsms.plan.rules.base import Context, select
from dsms.sql import logical as lp
from dsms.sql.expr import Call, Expr, Lit, conjuncts
from dsms.sql.types import BOOL


def simplify_predicate(node: lp.Node, ctx: Context) -> lp.Node:
    """Select(x, p AND TRUE) -> Select(x, p);  Select(x, TRUE) -> x;  p AND FALSE -> FALSE;  p AND p
    -> p;  and for OR.

    The predicate has the same value on every row, whenever it comes.  A selection that passes
    nothing stays: its input still moves time on.
    """
    if not isinstance(node, lp.Select):
        return node
    kept = list(dict.fromkeys(c for c in conjuncts(simplified(node.predicate)) if not _is(c, True)))
    out = select(node.child, kept)
    return out if out != node else node


def simplified(expr: Expr) -> Expr:
    """The boolean expression with AND, OR and NOT of constants worked out; the same object if there
    are none."""
    if not isinstance(expr, Call) or expr.fn not in ("and", "or", "not"):
        return expr
    args = tuple(simplified(a) for a in expr.args)
    if expr.fn == "not":
        return _negated(args[0]) or _rebuilt(expr, args)
    winner = expr.fn == "or"  # TRUE decides an OR, FALSE an AND
    if any(_is(a, winner) for a in args) and all(total(a) for a in args):
        return Lit(winner, BOOL)
    rest = tuple(dict.fromkeys(a for a in args if not _is(a, not winner)))
    if not rest:
        return Lit(not winner, BOOL)
    return rest[0] if len(rest) == 1 else _rebuilt(expr, rest)


def _negated(arg: Expr) -> Expr | None:
    if isinstance(arg, Lit) and isinstance(arg.value, bool):
        return Lit(not arg.value, BOOL)
    return arg.args[0] if isinstance(arg, Call) and arg.fn == "not" else None


def _rebuilt(expr: Call, args: tuple[Expr, ...]) -> Expr:
    return expr if args == expr.args else Call(expr.fn, args, expr.type, expr.params)


def _is(expr: Expr, value: bool) -> bool:
    return isinstance(expr, Lit) and expr.value is value
