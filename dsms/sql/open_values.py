"""Plans of queries ON LOOKUP with parameters: what is kept ready, and what is done to it when the
values are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dsms.sql.expr import PARAMETER, Call, Expr, Lit, walk
from dsms.sql.logical import Node, Project, Select
from dsms.sql.types import Type

Step = Select | Project


def parts(node: Node) -> tuple[Node, tuple[Step, ...]]:
    """(what is below the selections and projections on top, these, bottom up)."""
    above: list[Step] = []
    while isinstance(node, Select | Project):
        above.insert(0, node)
        node = node.child
    return node, tuple(above)


def expressions(above: Iterable[Step]) -> Iterator[Expr]:
    """All expressions of the steps."""
    for node in above:
        yield from (node.predicate,) if isinstance(node, Select) else node.exprs


def types_of(found: Iterable[Expr]) -> tuple[Type, ...]:
    """The types of the parameters in these expressions, in the order of their numbers."""
    known: dict[int, Type] = {}
    for expr in found:
        for e in walk(expr):
            match e:
                case Call(fn=fn, params=(int() as number,)) if fn == PARAMETER:
                    known[number] = e.type
    return tuple(known[number] for number in sorted(known))


def with_values(above: Sequence[Step], values: Sequence[Lit]) -> tuple[Step, ...]:
    """The steps with constants in place of their parameters."""
    return tuple(
        replace(node, predicate=_put(node.predicate, values))
        if isinstance(node, Select)
        else replace(node, exprs=tuple(_put(e, values) for e in node.exprs))
        for node in above
    )


def _put(expr: Expr, values: Sequence[Lit]) -> Expr:
    match expr:
        case Call(fn="parameter", params=(int() as number,)):
            return values[number - 1]
        case Call():
            return replace(expr, args=tuple(_put(a, values) for a in expr.args))
        case _:
            return expr
