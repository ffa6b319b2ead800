"""Joins: from the items of FROM to a left-deep tree in the order written.

Binding a FROM clause goes in three steps.  `from_clause` numbers the columns of all leaves in FROM
order ("virtual" positions) and makes a `Group` of them.  WHERE is then bound over the virtual
positions.  `build` lets every conjunct sink to the lowest inner join that sees all its columns,
makes the nodes, and says where each virtual column ended up: a non-retroactive table that stands
before the first stream is joined after it (⋈NRR reads the table as of each stream row), so the
order may differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dsms.sql.binder.asof import asof_join
from dsms.sql.binder.context import Context
from dsms.sql.binder.groups import (
    Asof,
    Group,
    Item,
    Leaf,
    Opened,
    Outer,
    Pattern,
    Semi,
    is_table,
    leaves,
    no_stream,
    padded,
    split,
)
from dsms.sql.binder.match import match_node
from dsms.sql.binder.properties import reads_stream
from dsms.sql.binder.semi_joins import semi_join, table_test
from dsms.sql.codes import error
from dsms.sql.expr import Col, Expr, columns, conjunction, rewrite
from dsms.sql.logical import Join, JoinNRR, Node, Select, TableScan, Unnest

# ---------------------------------------------------------------- tables and streams


def settle_tables(ctx: Context, group: Group) -> None:
    """Without a stream a one-time query reads non-retroactive tables as they stand; a persistent
    one can't (DS324)."""
    found = leaves(group)
    for semi in _semis(group):
        if not (is_table(semi.right) and _reads_stream(semi.left)):
            settle_tables(ctx, semi.right)
    if any(reads_stream(leaf.node) for leaf in found):
        return
    for leaf in found:
        if leaf.table and ctx.persistent:
            raise no_stream(leaf)
        leaf.table = False


def _semis(group: Group) -> Iterator[Semi]:
    """All but those in the right side of another."""
    for item in group.items:
        if isinstance(item, Outer | Asof):
            yield from _semis(item.right)
        if isinstance(item, Semi):
            yield item
        if not isinstance(item, Leaf | Pattern):
            yield from _semis(item.left)


def _reads_stream(group: Group) -> bool:
    return any(reads_stream(leaf.node) for leaf in leaves(group))


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
    return bool(used) and not any(used <= set(leaf.virtual) for leaf in leaves(group))


def _sink(group: Group, pool: list[Expr]) -> tuple[dict[int, list[Expr]], list[Expr]]:
    """Conjuncts that lie within the preserved side of an outer or semi join go down there, by item;
    the rest stays."""
    sunk: dict[int, list[Expr]] = {}
    rest: list[Expr] = []
    for conjunct in pool:
        for i, item in enumerate(group.items):
            if not isinstance(item, Leaf) and columns(conjunct) <= _preserved(item):
                sunk.setdefault(i, []).append(conjunct)
                break
        else:
            rest.append(conjunct)
    return sunk, rest


def _preserved(item: Outer | Semi | Asof | Pattern | Opened) -> set[int]:
    if isinstance(item, Pattern):
        return set()  # what is said of its rows in WHERE is in it already
    if isinstance(item, Semi):
        return set(item.virtual)
    if isinstance(item, Asof | Opened):
        return set(item.left.virtual)
    sides = {"left": item.left, "right": item.right}
    return set(sides[item.kind].virtual) if item.kind in sides else set()


def _build_items(group: Group, sunk: dict[int, list[Expr]], pool: list[Expr]) -> Built:
    """Left-deep in FROM order, but tables that need a stream wait for the first one.  Takes what it
    uses from pool."""
    acc: Built | None = None
    waiting: list[Leaf] = []
    for i, item in enumerate(group.items):
        if isinstance(item, Leaf) and item.table and (acc is None or not reads_stream(acc.node)):
            waiting.append(item)
            continue
        next_ = _build_item(item, sunk.get(i, []))
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


def _build_item(item: Item, sunk: list[Expr]) -> Built:
    match item:
        case Leaf():
            return Built(item.node, item.virtual)
        case Outer():
            return _build_outer(item, sunk)
        case Semi():
            return _build_semi(item, sunk)
        case Asof():
            return _build_asof(item, sunk)
        case Pattern():
            return Built(match_node(item), item.virtual)
        case Opened():
            return _build_opened(item, sunk)


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


def _build_semi(semi: Semi, sunk: list[Expr]) -> Built:
    """`sunk` are conjuncts of the enclosing group over its columns."""
    left = select_over(*build(semi.left, sunk))
    seen = set(semi.right.virtual)
    own = [c for c in semi.on if columns(c) and columns(c) <= seen]
    both = [c for c in semi.on if not (columns(c) and columns(c) <= seen)]
    if is_table(semi.right):  # its only leaf is read by each row of a stream on the left
        table = semi.right.items[0]
        assert isinstance(table, Leaf)
        place = {v: i for i, v in enumerate(left.layout + table.virtual)}
        on = [_moved(c, place) for c in semi.on]
        return Built(table_test(left.node, table, on, semi.anti), left.layout)
    right = select_over(*build(semi.right, own))
    place = {v: i for i, v in enumerate(left.layout + right.layout)}
    on = [_moved(c, place) for c in both]
    return Built(semi_join(left.node, right.node, semi.anti, on), left.layout)


def _build_asof(asof: Asof, sunk: list[Expr]) -> Built:
    """`sunk` are conjuncts of the enclosing group over columns of the left side: what its rows find
    does not depend on others."""
    left, right = select_over(*build(asof.left, sunk)), select_over(*build(asof.right, []))
    layout = left.layout + right.layout
    place = {v: i for i, v in enumerate(layout)}
    on = [_moved(c, place) for c in asof.on]
    return Built(asof_join(asof, left.node, right.node, on), layout)


def _build_opened(opened: Opened, sunk: list[Expr]) -> Built:
    """`sunk` are conjuncts of the enclosing group over columns of the rows whose lists it opens."""
    left = select_over(*build(opened.left, sunk))
    items = _moved(opened.items, left.place())
    schema = left.node.schema + padded(opened.made, opened.kind == "left")
    made = range(opened.first, opened.first + len(opened.made))
    ordinality = len(opened.made) > 1
    built = Built(Unnest(left.node, items, opened.kind, ordinality, schema), left.layout + (*made,))
    return select_over(built, opened.on)


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


def _join_table(child: Built, table: Item, kind: str, conditions: list[Expr]) -> Built:
    assert isinstance(table, Leaf) and isinstance(table.node, TableScan)
    layout = child.layout + table.virtual
    place = {v: i for i, v in enumerate(layout)}
    keys, residual = split([_moved(c, place) for c in conditions], len(child.layout))
    schema = child.node.schema + padded(table.node.schema, kind == "left")
    return Built(JoinNRR(child.node, table.node, kind, keys, residual, schema), layout)  # type: ignore[arg-type]
