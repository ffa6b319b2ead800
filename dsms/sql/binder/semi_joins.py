"""Semi joins and anti joins as plan nodes; against a non-retroactive table, which each row of a
stream reads by its key, they are joins with one row at most."""

from __future__ import annotations

from collections.abc import Sequence

from dsms.sql import ast
from dsms.sql.binder.groups import Leaf, no_stream, padded, split
from dsms.sql.codes import error
from dsms.sql.expr import Call, Col, Expr, Lit, conjuncts, rewrite, shift
from dsms.sql.logical import JoinNRR, Node, Project, Select, SemiJoin, TableScan, Union
from dsms.sql.types import BOOL, INT, Field


def semi_join(
    left: Node, right: Node, anti: bool, conditions: Sequence[Expr], null_aware: bool = False
) -> SemiJoin:
    """The rows of `left` that have a match in `right`, or none; conditions over left ++ right."""
    keys, residual = split(conditions, len(left.schema))
    return SemiJoin(left, right, anti, keys, residual, null_aware, left.schema)


def table_test(
    left: Node,
    leaf: Leaf,
    conditions: Sequence[Expr],
    anti: bool,
    not_in: ast.Node | None = None,
) -> Node:
    """The same against a non-retroactive table: by its key one row at most is found, so it is a
    ⋈NRR, then the left columns again.  `not_in`: the NOT IN that asks.  Raises DS324 without the
    whole key."""
    scan = leaf.node
    assert isinstance(scan, TableScan)
    width = len(left.schema)
    keys, residual = split(conditions, width)
    found = {right.index for _, right in keys if isinstance(right, Col)}
    if not scan.table.key or not set(scan.table.key) <= found or not_in is not None:
        raise _needs_key(leaf, scan, not_in)
    schema = left.schema + padded(scan.schema, anti)
    node: Node = JoinNRR(left, scan, "left" if anti else "inner", keys, residual, schema)
    if anti:
        first = width + scan.table.key[0]
        key = Col(first, schema[first].type, schema[first].name)
        node = Select(node, Call("is_null", (key,), BOOL), schema)
    return Project(
        node, tuple(Col(i, f.type, f.name) for i, f in enumerate(left.schema)), left.schema
    )


def _needs_key(leaf: Leaf, scan: TableScan, not_in: ast.Node | None) -> Exception:
    name = scan.table.name
    if not_in is not None:
        word = "ALL" if isinstance(not_in, ast.Quantified) and not_in.all else "NOT IN"
        hint = f"write NOT EXISTS (SELECT * FROM {name} WHERE ...)"
        return error(
            "DS324",
            f"{word} can't be tested against the non-retroactive table {name}",
            not_in,
            hint,
        )
    plain = no_stream(leaf)
    hint = f"compare the whole primary key of {name}, or join it in FROM"
    return error("DS324", plain.message, leaf.at, hint)


def together(tests: Sequence[SemiJoin]) -> SemiJoin:
    """The rows that have a match by one of these semi joins of the same rows, as one semi join with
    all their right sides: by the keys, if they have no more and the same of the row; else each with
    each."""
    first = tests[0]
    mine = [a for a, _ in first.keys]
    alike = all(t.residual is None and [a for a, _ in t.keys] == mine for t in tests)
    return _by_keys(tests) if alike and mine else _by_each(tests)


def _by_keys(tests: Sequence[SemiJoin]) -> SemiJoin:
    first = tests[0]
    schema = tuple(Field(f"k{n}", mine.type) for n, (mine, _) in enumerate(first.keys))
    rights = tuple(Project(t.right, tuple(b for _, b in t.keys), schema) for t in tests)
    keys = tuple((a, Col(n, a.type, f"k{n}")) for n, (a, _) in enumerate(first.keys))
    return SemiJoin(first.left, Union(rights, schema), False, keys, None, False, first.schema)


def _by_each(tests: Sequence[SemiJoin]) -> SemiJoin:
    """Right rows bear the number of their test; the columns of others are NULL in them."""
    left = tests[0].left
    width = len(left.schema)
    sizes = [len(t.right.schema) for t in tests]
    starts = [1 + sum(sizes[:n]) for n in range(len(tests))]
    fields = [
        Field(f"c{n}", f.type) for n, f in enumerate(f for t in tests for f in t.right.schema)
    ]
    schema = (Field("test", INT), *fields)
    rights, passes = [], []
    for n, (test, start) in enumerate(zip(tests, starts, strict=True)):
        exprs: list[Expr] = [Lit(n, INT), *(Lit(None, f.type) for f in fields)]
        exprs[start : start + sizes[n]] = [
            Col(k, f.type, f.name) for k, f in enumerate(test.right.schema)
        ]
        rights.append(Project(test.right, tuple(exprs), schema))
        passes.append(_passes(test, n, width, start))
    residual = Call("or", tuple(passes), BOOL)
    return SemiJoin(left, Union(tuple(rights), schema), False, (), residual, False, left.schema)


def _passes(test: SemiJoin, number: int, width: int, start: int) -> Expr:
    """The condition of a test, over left ++ what `_by_each` makes of all right sides."""
    its = Call("eq", (Col(width, INT, "test"), Lit(number, INT)), BOOL)
    equal = [Call("eq", (a, shift(b, width + start)), BOOL) for a, b in test.keys]
    more = [
        rewrite(c, lambda c: c if c.index < width else Col(c.index + start, c.type, c.name))
        for c in conjuncts(test.residual)
    ]
    return Call("and", (its, *equal, *more), BOOL)
