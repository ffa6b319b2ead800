"""What WHERE asks, taken apart: plain conditions, tests by subquery, and choices between the two.

NOT goes down to what it negates, by De Morgan's laws, which hold of three values too.  A row passes
where all of WHERE is true, so behind that only what is true of it counts: of ``a OR EXISTS (...)``
whether `a` is, else whether there is a match.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dsms.sql import ast
from dsms.sql.binder.scalar_queries import scalar_queries


@dataclass(frozen=True, slots=True)
class Test:
    """A condition by subquery: `values` are the left side of IN, none for EXISTS.

    A row of the subquery is a match where each value stands to its column as `op` says, or, if
    `refuted`, where it is false that it does: x > ALL is that there is no row of which x > is
    false, or unknown."""

    query: ast.Query
    anti: bool
    values: tuple[ast.Expr, ...] | None
    at: ast.Node
    op: str = "="
    refuted: bool = False


def as_test(node: ast.Expr) -> Test | None:
    """The condition as a subquery test, if it is one."""
    match node:
        case ast.Exists(query=query):
            return Test(query, False, None, node)
        case ast.InQuery(operand=operand, query=query, negated=negated):
            values = operand.items if isinstance(operand, ast.RowExpr) else (operand,)
            return Test(query, negated, values, node)
        case ast.Quantified(op="<>", operand=operand, all=True, query=query):
            return Test(query, True, (operand,), node)
        case ast.Quantified(op=op, operand=operand, all=every, query=query):
            return Test(query, every, (operand,), node, op, refuted=every)
        case ast.Not(operand=operand):
            found = as_test(operand)
            return None if found is None else replace(found, anti=not found.anti, at=node)
    return None


@dataclass(frozen=True, slots=True)
class Choice:
    """An OR with tests in it: `plain` are its operands without, `others` those with some."""

    plain: tuple[ast.Expr, ...]
    others: tuple[ast.Expr, ...]
    at: ast.Node


def parts(where: ast.Expr | None) -> tuple[list[ast.Expr], list[Test | Choice]]:
    """The conditions of a WHERE: plain ones, and those with subqueries to test, each in the order
    written."""
    plain: list[ast.Expr] = []
    tests: list[Test | Choice] = []
    for node in _flat(where):
        test = as_test(node)
        if test is not None:
            tests.append(test)
        elif isinstance(node, ast.Or) and has_test(node):
            with_tests = tuple(o for o in node.operands if has_test(o))
            others = tuple(o for o in node.operands if not has_test(o))
            tests.append(Choice(others, with_tests, node))
        else:
            plain.append(node)
    return plain, tests


def values_in(plain: list[ast.Expr], tests: list[Test | Choice]) -> list[ast.ScalarQuery]:
    """The subqueries for a value in these conditions, but not in the subqueries that are tested."""
    return scalar_queries([*plain, *(t.at for t in tests if isinstance(t, Choice))])


def has_test(node: ast.Node) -> bool:
    """Whether a subquery is tested anywhere in it."""
    if isinstance(node, ast.Exists | ast.InQuery | ast.Quantified):
        return True
    return not isinstance(node, ast.Query) and any(map(has_test, ast.children(node)))


def _flat(where: ast.Expr | None) -> Iterator[ast.Expr]:
    if where is None:
        return
    node = _pushed(where, False) if has_test(where) else where
    if not isinstance(node, ast.And):
        yield node
        return
    for operand in node.operands:
        yield from _flat(operand)


def _pushed(node: ast.Expr, negated: bool) -> ast.Expr:
    """The node, or its negation, with NOT only around what is no AND, OR or NOT."""
    match node:
        case ast.Not(operand=operand) if has_test(node):
            found = _pushed(operand, not negated)
            return replace(found, pos=node.pos) if isinstance(found, ast.Not) else found
        case ast.And(operands=operands) | ast.Or(operands=operands) if has_test(node):
            chain = _chained(isinstance(node, ast.And) is not negated, operands, negated)
            return replace(chain, pos=node.pos)
        case _:
            return ast.Not(node, pos=node.pos) if negated else node


def _chained(all_: bool, operands: tuple[ast.Expr, ...], negated: bool) -> ast.And | ast.Or:
    """Flat, as the parser makes them."""
    kind = ast.And if all_ else ast.Or
    out: list[ast.Expr] = []
    for operand in operands:
        made = _pushed(operand, negated)
        out += made.operands if isinstance(made, kind) else (made,)
    return kind(tuple(out))
