"""What FROM joins: its items, and groups of items that are inner-joined.

A `Group` has the items between the commas and inner joins of FROM; an outer join, a semi join or an
ASOF JOIN is one item, with groups of its own, and so is a MATCH, with its steps.  Columns have
"virtual" positions, in the order of FROM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.binder.calls import cast
from dsms.sql.binder.scope import Scope
from dsms.sql.codes import error
from dsms.sql.expr import AggCall, Call, Col, Expr, columns, conjunction, rewrite
from dsms.sql.functions import common_type
from dsms.sql.logical import Node, TableScan
from dsms.sql.types import BOOL, Schema


@dataclass(slots=True)
class Leaf:
    """One FROM item that is not a join.  `virtual`: the positions of its columns.  `table`:
    non-retroactive."""

    node: Node
    virtual: tuple[int, ...]
    at: ast.Node
    table: bool = False


@dataclass(slots=True)
class Outer:
    """An outer join: `on` are the conjuncts of its ON, which stay with it."""

    kind: str
    left: Group
    right: Group
    on: list[Expr]
    at: ast.Node

    @property
    def virtual(self) -> tuple[int, ...]:
        return self.left.virtual + self.right.virtual


@dataclass(slots=True)
class Semi:
    """A semi join, or an anti join: the rows of `left` that have a match in `right`, or none.
    Nothing else sees the columns of `right`."""

    anti: bool
    left: Group
    right: Group
    on: list[Expr]
    at: ast.Node

    @property
    def virtual(self) -> tuple[int, ...]:
        return self.left.virtual


@dataclass(slots=True)
class Asof:
    """An ASOF JOIN: `on` are the conjuncts of its ON.  `span`: µs after which a row of `right` is
    no longer found; None: it always is."""

    kind: str
    left: Group
    right: Group
    on: list[Expr]
    span: int | None
    at: ast.Node

    @property
    def virtual(self) -> tuple[int, ...]:
        return self.left.virtual + self.right.virtual


@dataclass(slots=True)
class Pattern:
    """A MATCH: its steps in order, each with its leaf, and what its names mean (`scopes`).

    keys        for each column of PER the expression of each step, over virtual positions
    conditions  what WHERE says of its rows
    aggs        over rows of steps that take many: (step, call, its virtual position)"""

    steps: list[tuple[ast.MatchStep, Leaf]]
    keys: tuple[tuple[Expr, ...], ...]
    at: ast.Match
    scopes: list[Scope]
    conditions: list[Expr] = field(default_factory=list)
    aggs: list[tuple[int, AggCall, int]] = field(default_factory=list)

    @property
    def virtual(self) -> tuple[int, ...]:
        """Columns of the rows that a match is made of, and of aggregates over its other rows."""
        parts = (leaf for step, leaf in self.steps if step.kind is ast.StepKind.ONE)
        return (*(v for leaf in parts for v in leaf.virtual), *(at for _, _, at in self.aggs))

    @property
    def every(self) -> tuple[int, ...]:
        """Columns of all steps, and the aggregates, which its conditions may name."""
        columns = (v for _, leaf in self.steps for v in leaf.virtual)
        return (*columns, *(at for _, _, at in self.aggs))

    def named(self, used: set[int]) -> list[int]:
        """Which steps columns belong to, ascending.  An aggregate stands with the row behind the
        rows that it goes over."""
        found = {k for k, (_, leaf) in enumerate(self.steps) if used & set(leaf.virtual)}
        return sorted(found | {k + 1 for k, _, at in self.aggs if at in used})


@dataclass(slots=True)
class Opened:
    """UNNEST: the items of the list `items` of each row of `left`, in the columns `made`; `on` are
    the conjuncts of an ON, which pick items."""

    kind: Literal["inner", "left"]
    left: Group
    items: Expr
    made: Schema
    first: int
    on: list[Expr]
    at: ast.Node

    @property
    def virtual(self) -> tuple[int, ...]:
        return (*self.left.virtual, *range(self.first, self.first + len(self.made)))


Item = Leaf | Outer | Semi | Asof | Pattern | Opened


@dataclass(slots=True)
class Group:
    """Items joined by commas and inner joins; `conjuncts` come from the ONs of the latter."""

    items: list[Item] = field(default_factory=list)
    conjuncts: list[Expr] = field(default_factory=list)

    @property
    def virtual(self) -> tuple[int, ...]:
        return tuple(v for item in self.items for v in item.virtual)


@dataclass(frozen=True, slots=True)
class Beside:
    """What a LATERAL subquery puts beside the rows before it.

    group   its rows;  names  its columns, over theirs and those of the rows
    on      which of them go with which row;  padded  rows without stay
    where   what is asked of both"""

    group: Group
    names: Scope
    padded: bool
    on: list[Expr] = field(default_factory=list)
    where: list[Expr] = field(default_factory=list)

    def joined(self, left: Group, at: ast.Node) -> Group:
        """The rows with it."""
        if self.padded:
            return Group([Outer("left", left, self.group, self.on, at)], self.where)
        found = [*left.conjuncts, *self.group.conjuncts, *self.on, *self.where]
        return Group(left.items + self.group.items, found)


def is_table(group: Group) -> bool:
    """Is the group nothing but a non-retroactive table?"""
    return len(group.items) == 1 and isinstance(group.items[0], Leaf) and group.items[0].table


def leaves(group: Group) -> list[Leaf]:
    """Those whose rows go into the group's."""
    out: list[Leaf] = []
    for item in group.items:
        match item:
            case Leaf():
                out.append(item)
            case Outer(left=left, right=right) | Asof(left=left, right=right):
                out += leaves(left) + leaves(right)
            case Semi(left=left) | Opened(left=left):
                out += leaves(left)
            case Pattern(steps=steps):
                out += [leaf for _, leaf in steps]
    return out


def no_stream(leaf: Leaf) -> QueryError:
    """DS324: a non-retroactive table with no stream to join."""
    assert isinstance(leaf.node, TableScan)
    name = leaf.node.table.name
    message = (
        f"{name} is non-retroactive: it is read as of each stream row, and here is no "
        "stream to join it with"
    )
    hint = f"join a stream with {name} directly, or declare {name} without NON RETROACTIVE"
    return error("DS324", message, leaf.at, hint)


# ---------------------------------------------------------------- conditions and columns of a join


def padded(schema: Schema, pads: bool) -> Schema:
    """The columns of one side of a join, which may all be NULL if the join pads that side."""
    return tuple(replace(f, nullable=True) for f in schema) if pads else schema


def split(
    conditions: Sequence[Expr], width: int
) -> tuple[tuple[tuple[Expr, Expr], ...], Expr | None]:
    """Conjuncts over left ++ right (`width`: columns of left) as keys, each over its own side, and
    a residual."""
    keys, rest = [], []
    for condition in conditions:
        key = _key(condition, width)
        if key is None:
            rest.append(condition)
        else:
            keys.append(key)
    return tuple(keys), conjunction(rest)


def _key(condition: Expr, width: int) -> tuple[Expr, Expr] | None:
    if not (isinstance(condition, Call) and condition.fn == "eq" and condition.type == BOOL):
        return None
    a, b = condition.args
    if _side(a, width) == 1 and _side(b, width) == 0:
        a, b = b, a
    if _side(a, width) != 0 or _side(b, width) != 1:
        return None
    common = common_type(a.type, b.type)
    if common is None:
        return None
    return cast(a, common), rewrite(cast(b, common), lambda c: Col(c.index - width, c.type, c.name))


def _side(expr: Expr, width: int) -> int | None:
    """0: reads the left side only, 1: the right side only, None: both or neither."""
    used = columns(expr)
    if not used:
        return None
    sides = {0 if i < width else 1 for i in used}
    return sides.pop() if len(sides) == 1 else None
