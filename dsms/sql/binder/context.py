"""What the binder carries along: per statement (`Context`) and per SELECT block (`Block`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any

from dsms.sql import ast
from dsms.sql.catalog import Catalog
from dsms.sql.expr import Col, Expr
from dsms.sql.logical import Node, Output, Project
from dsms.sql.types import Field, Schema
from dsms.sql.window import Slide, WindowSpec


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound query below its output: the plan, what its columns are called (further columns are
    only for ORDER BY), where INTERNAL windows of its own block stand (if there are any), and second
    names of its columns."""

    node: Node
    names: tuple[str, ...]
    internal: ast.Node | None = None
    also: tuple[str | None, ...] = ()

    def schema(self, qualifier: str | None = None) -> Schema:
        """The columns as an enclosing FROM clause sees them."""
        fields = zip(self.names, self.node.schema, strict=False)
        return tuple(Field(name, f.type, qualifier, f.nullable) for name, f in fields)


@dataclass(frozen=True, slots=True)
class BlockInput:
    """Something a block reads: is its window INTERNAL, do its rows ever leave, do they leave
    unpredictably?"""

    at: ast.Node
    internal: bool = False
    leaves: bool = False
    strict: bool = False
    stream: bool = True


@dataclass(slots=True)
class Block:
    """One SELECT block (with the EXISTS/IN blocks it absorbs).  `internal`: Wstream asks for
    INTERNAL windows."""

    internal: bool = False
    sources: list[BlockInput] = field(default_factory=list)
    negations: list[ast.Node] = field(default_factory=list)  # NOT EXISTS, NOT IN, outer joins


@dataclass(frozen=True, slots=True)
class Value:
    """What a subquery that stands for a value answers: `read` finds the value in a row of `node`.

    keys  equalities of an expression over the row that asks with one over `node`; none: `node` has
          one row, which is that of all
    only  a condition over the row that asks, without which it finds no row"""

    node: Node
    read: Expr
    keys: tuple[tuple[Expr, Expr], ...] = ()
    only: Expr | None = None


@dataclass(slots=True)
class Context:
    """One statement: the catalog, whether the query persists, leaves, windows and such seen so far.

    `bind_query` binds a nested query (FROM subqueries, grouped IN subqueries), `bind_whole` one
    that is registered; they stand here so that the modules of the binder need not import each other
    in a circle.
    """

    catalog: Catalog
    persistent: bool
    bind_query: Callable[..., Bound]
    bind_whole: Callable[..., Output] | None = None  # only persistent queries read queries
    # binds a subquery that stands for a value (`dsms.sql.binder.correlated`)
    bind_value: Callable[..., Value] | None = None
    # binds a subquery that sees the rows before it (`dsms.sql.binder.lateral`)
    bind_lateral: Callable[..., Any] | None = None
    leaves: int = 0
    windows: list[tuple[WindowSpec, ast.Node]] = field(default_factory=list)
    every: ast.Slide | None = None  # EVERY of the whole query
    # of each block that appends its windows, as places in `windows`; those of blocks inside apart
    blocks: list[list[int]] = field(default_factory=list)
    # columns of the answer that are WINDOW_START() or WINDOW_END()
    stamps: list[tuple[int, ast.FuncCall]] = field(default_factory=list)
    # what the user sees some rows of
    filtered: list[tuple[str, ast.Node]] = field(default_factory=list)
    # when queries that it reads are answered, by key
    answered: dict[str, Slide] = field(default_factory=dict)
    # whether it is asked once, so that NOW() is known when it is answered
    now: bool = False
    # aggregates that need sub-windows
    by_subwindow: list[tuple[str, ast.Node]] = field(default_factory=list)

    def appends(self, first: int) -> None:
        """The windows from place `first` on are those of a block that appends."""
        inside = {at for block in self.blocks for at in block}
        self.blocks.append([at for at in range(first, len(self.windows)) if at not in inside])

    def seen(self) -> dict[str, object]:
        """What has been seen so far, for `go_back` to it."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        return {k: copy(v) if isinstance(v, list | dict) else v for k, v in found.items()}

    def go_back(self, seen: dict[str, object]) -> None:
        """As if nothing had been bound since."""
        for name, value in seen.items():
            setattr(self, name, value)

    def next_leaf(self) -> int:
        self.leaves += 1
        return self.leaves - 1


def relabel(node: Node, schema: Schema) -> Node:
    """The node with other names for its columns (types as before)."""
    return replace(node, schema=schema)


def project(node: Node, exprs: Sequence[Expr], names: Sequence[str]) -> Node:
    """The node with these columns; the node itself where they are its own, in order."""
    if list(exprs) == [Col(i, f.type, f.name) for i, f in enumerate(node.schema)] and exprs:
        return node
    same = len(exprs) == len(node.schema) and exprs
    if same and all(isinstance(e, Col) and e.index == i for i, e in enumerate(exprs)):
        return node
    nullable = [node.schema[e.index].nullable if isinstance(e, Col) else True for e in exprs]
    schema = tuple(
        Field(n, e.type, None, null) for n, e, null in zip(names, exprs, nullable, strict=True)
    )
    return Project(node, tuple(exprs), schema)
