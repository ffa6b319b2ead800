"""Joins: from the items of FROM to a left-deep tree in the order written.

Binding a FROM clause goes in three steps.  `from_clause` numbers the columns of all leaves in FROM
order ("virtual" positions) and makes a `Group` of inner-joined items, in which an outer join is one
item with groups of its own.  WHERE is then bound over the virtual positions.  `build` lets every
conjunct sink to the lowest inner join that sees all its columns, makes the nodes, and says where
each virtual column ended up: a non-retroactive table that stands before the first stream is joined
after it (⋈NRR reads the table as of each stream row), so the order may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.binder.calls import cast
from dsms.sql.binder.context import Context
from dsms.sql.binder.properties import reads_stream
from dsms.sql.codes import error
from dsms.sql.expr import Call, Col, Expr, columns, conjunction, rewrite
from dsms.sql.functions import common_type
from dsms.sql.logical import Join, JoinNRR, Node, Select, TableScan
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
class Group:
    """Items joined by commas and inner joins; `conjuncts` come from the ONs of the latter."""

    items: list[Leaf | Outer] = field(default_factory=list)
    conjuncts: list[Expr] = field(default_factory=list)

    @property
    def virtual(self) -> tuple[int, ...]:
        return tuple(v for item in self.items for v in item.virtual)


def is_table(group: Group) -> bool:
    """Is the group nothing but a non-retroactive table?"""
    return len(group.items) == 1 and isinstance(group.items[0], Leaf) and group.items[0].table


# ---------------------------------------------------------------- tables and streams


def settle_tables(ctx: Context, group: Group) -> None:
    """Without a stream a one-time query reads non-retroactive tables as they stand; a persistent
    one can't (DS324)."""
    leaves = list(_leaves(group))
    if any(reads_stream(leaf.node) for leaf in leaves):
        return
    for leaf in leaves:
        if leaf.table and ctx.persistent:
            raise no_stream(leaf)
        leaf.table = False


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


def _leaves(group: Group) -> list[Leaf]:
    out: list[Leaf] = []
    for item in group.items:
        out += [item] if isinstance(item, Leaf) else _leaves(item.left) + _leaves(item.right)
    return out


# ---------------------------------------------------------------- leaves to joins


@dataclass(frozen=True, slots=True)
class Built:
    """A plan, and which virtual column stands at each of its positions."""

    node: Node
    layout: tuple[int, ...]

    def place(self) -> dict[int, int]:
        return {v: i for i, v in enumerate(self.layout)}


def build(group: Group, where: Sequence[Expr]) -> tuple[Built, list[Expr]]:
    """The join tree, with the conjuncts that found their join in it; and those left over (over
    virtual positions)."""
    pool: list[Expr] = []
    left_over: list[Expr] = []
    for conjunct in [*group.conjuncts, *where]:
        (pool if _spans(group, columns(conjunct)) else left_over).append(conjunct)
    sunk, pool = _sink(group, pool)
    built = _build_items(group, sunk, pool)
    return built, pool + left_over


def _spans(group: Group, used: set[int]) -> bool:
    """Does a conjunct over these columns join anything of the group (rather than filter one
    leaf)?"""
    return bool(used) and not any(used <= set(leaf.virtual) for leaf in _leaves(group))


def _sink(group: Group, pool: list[Expr]) -> tuple[dict[int, list[Expr]], list[Expr]]:
    """Conjuncts that lie within the preserved side of an outer join go down there, by item; the
    rest stays."""
    sunk: dict[int, list[Expr]] = {}
    rest: list[Expr] = []
    for conjunct in pool:
        for i, item in enumerate(group.items):
            if isinstance(item, Outer) and columns(conjunct) <= _preserved(item):
                sunk.setdefault(i, []).append(conjunct)
                break
        else:
            rest.append(conjunct)
    return sunk, rest


def _preserved(outer: Outer) -> set[int]:
    sides = {"left": outer.left, "right": outer.right}
    return set(sides[outer.kind].virtual) if outer.kind in sides else set()


def _build_items(group: Group, sunk: dict[int, list[Expr]], pool: list[Expr]) -> Built:
    """Left-deep in FROM order, but tables that need a stream wait for the first one.  Takes what it
    uses from pool."""
    acc: Built | None = None
    waiting: list[Leaf] = []
    for i, item in enumerate(group.items):
        if isinstance(item, Leaf) and item.table and (acc is None or not reads_stream(acc.node)):
            waiting.append(item)
            continue
        next_ = (
            Built(item.node, item.virtual)
            if isinstance(item, Leaf)
            else _build_outer(item, sunk.get(i, []))
        )
        if acc is None:
            acc = next_
        elif isinstance(item, Leaf) and item.table:
            acc = _join_table(acc, item, "inner", _applicable(acc, item.virtual, pool))
        else:
            acc = _join("inner", acc, next_, _applicable(acc, next_.layout, pool))
        while waiting and reads_stream(acc.node):
            table = waiting.pop(0)
            acc = _join_table(acc, table, "inner", _applicable(acc, table.virtual, pool))
    if waiting or acc is None:
        raise no_stream(waiting[0])
    return acc


def _applicable(acc: Built, more: Sequence[int], pool: list[Expr]) -> list[Expr]:
    """Takes from the pool the conjuncts that the join of `acc` with the columns `more` sees
    whole."""
    seen = set(acc.layout) | set(more)
    found = [c for c in pool if columns(c) <= seen]
    pool[:] = [c for c in pool if not columns(c) <= seen]
    return found


def _build_outer(outer: Outer, sunk: list[Expr]) -> Built:
    """`sunk` are conjuncts of the enclosing group that lie within the preserved side."""
    left = _build_side(outer, outer.left, "left", sunk)
    right = _build_side(outer, outer.right, "right", sunk)
    if left is None:
        assert right is not None  # _check_preserved refuses two tables
        return _join_table(right, outer.left.items[0], "left", outer.on)
    if right is None:
        return _join_table(left, outer.right.items[0], "left", outer.on)
    return _join(outer.kind, left, right, outer.on)


def _build_side(outer: Outer, side: Group, name: str, sunk: list[Expr]) -> Built | None:
    """None: the side is a non-retroactive table."""
    if is_table(side):
        _check_preserved(outer, side, name)
        return None
    built, rest = build(side, sunk if outer.kind == name else [])
    return select_over(built, rest)


def _check_preserved(outer: Outer, side: Group, name: str) -> None:
    """A non-retroactive table may only be the side that gets padded: its rows alone make no
    results; DS323."""
    other = outer.right if name == "left" else outer.left
    if outer.kind in (name, "full") or is_table(other):
        leaf = side.items[0]
        assert isinstance(leaf, Leaf) and isinstance(leaf.node, TableScan)
        table = leaf.node.table.name
        message = (
            f"{outer.kind.upper()} JOIN would keep the rows of {table} without a match, but a "
            "non-retroactive table is only read when a stream row arrives"
        )
        hint = f"put the stream on the kept side, or declare {table} without NON RETROACTIVE"
        raise error("DS323", message, leaf.at, hint)


def select_over(built: Built, conditions: list[Expr]) -> Built:
    """The conjuncts (over virtual positions) as a Select on top."""
    if not conditions:
        return built
    place = built.place()
    predicate = conjunction([_moved(c, place) for c in conditions])
    assert predicate is not None
    return Built(Select(built.node, predicate, built.node.schema), built.layout)


def _moved(expr: Expr, place: dict[int, int]) -> Expr:
    return rewrite(expr, lambda c: Col(place[c.index], c.type, c.name))


def _join(kind: str, left: Built, right: Built, conditions: list[Expr]) -> Built:
    layout = left.layout + right.layout
    place = {v: i for i, v in enumerate(layout)}
    keys, residual = split([_moved(c, place) for c in conditions], len(left.layout))
    schema = padded(left.node.schema, kind in ("right", "full")) + padded(
        right.node.schema, kind in ("left", "full")
    )
    return Built(Join(left.node, right.node, kind, keys, residual, schema), layout)  # type: ignore[arg-type]


def padded(schema: Schema, pads: bool) -> Schema:
    """The columns of one side of a join, which may all be NULL if the join pads that side."""
    return tuple(replace(f, nullable=True) for f in schema) if pads else schema


def _join_table(child: Built, table: Leaf | Outer, kind: str, conditions: list[Expr]) -> Built:
    assert isinstance(table, Leaf) and isinstance(table.node, TableScan)
    layout = child.layout + table.virtual
    place = {v: i for i, v in enumerate(layout)}
    keys, residual = split([_moved(c, place) for c in conditions], len(child.layout))
    schema = child.node.schema + padded(table.node.schema, kind == "left")
    return Built(JoinNRR(child.node, table.node, kind, keys, residual, schema), layout)  # type: ignore[arg-type]


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
