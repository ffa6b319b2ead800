"""Semi joins and anti joins as plan nodes; against a non-retroactive table, which each row of a
stream reads by its key, they are joins with one row at most."""

from __future__ import annotations

from collections.abc import Sequence

from dsms.sql import ast
from dsms.sql.binder.groups import Leaf, no_stream, padded, split
from dsms.sql.codes import error
from dsms.sql.expr import Call, Col, Expr
from dsms.sql.logical import JoinNRR, Node, Project, Select, SemiJoin, TableScan
from dsms.sql.types import BOOL


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
