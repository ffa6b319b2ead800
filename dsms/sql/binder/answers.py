"""FROM q in a persistent query: the plan of query q stands in the plan of its reader, as that of a
subquery would.

What q reads, and what of it, was settled when q was registered, by the rights of its creator; so
its plan is taken as it runs, and not bound anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dsms.sql import ast
from dsms.sql.binder.context import Context, project
from dsms.sql.binder.windows import check_measure
from dsms.sql.catalog import Catalog, QueryDef
from dsms.sql.codes import error
from dsms.sql.expr import Col
from dsms.sql.logical import (
    Answer,
    Append,
    JoinNRR,
    Node,
    Output,
    Sort,
    StreamScan,
    TableScan,
    Window,
    children,
    leaves_of,
    nodes_of,
    with_children,
)
from dsms.sql.parser import parse_one
from dsms.sql.types import Field
from dsms.sql.window import UNBOUNDED, Slide, WindowSpec


def answer(ctx: Context, query: QueryDef, ref: ast.TableRef) -> Answer:
    """The answer of a registered query, for a persistent one.

    Raises DS329 for a query ON LOOKUP, DS340 for one with LIMIT or OFFSET, DS341 where its plan has
    too many leaves, DS345 where it says its windows."""
    _check(query, ref)
    plan = _plan(ctx, query)
    if plan.stamps:
        message = f"{query.name} says its windows when it is answered, which a reader can't be told"
        hint = (
            f"leave WINDOW_START and WINDOW_END out of {query.name}, and select them in the reader"
        )
        raise error("DS345", message, ref.name, hint)
    child = without_dates(_unsorted(plan.child, query, ref))
    first = ctx.leaves
    child = shifted(child, first)
    ctx.leaves = 1 + max((leaf.leaf for leaf in leaves_of(child)), default=first - 1)
    if ctx.leaves > MOST:
        message = (
            f"with {query.name} this query reads {ctx.leaves} streams and tables, counted as often "
            f"as queries of queries read them; {MOST} is the limit"
        )
        hint = f"read a stream of it: CREATE STREAM name AS SELECT Istream(*) FROM {query.name}"
        raise error("DS341", message, ref.name, hint)
    _take_windows(ctx, child, plan.slide, ref)
    if plan.slide is not None and not plan.slide.by_rows:
        ctx.answered[query.home] = plan.slide
    alias = ref.alias.text if ref.alias else query.name
    fields = zip(query.schema, child.schema, strict=False)
    schema = tuple(Field(q.name, f.type, alias, f.nullable) for q, f in fields)
    return Answer(child, query.address, first, schema)


def _take_windows(ctx: Context, plan: Node, slide: Slide | None, ref: ast.TableRef) -> None:
    """The windows of the query are windows of its reader; they have the SLIDE that its EVERY is for
    them, and those of blocks that append go together."""
    timed = slide is not None and not slide.by_rows
    outer = list(_outside(plan)) or [UNBOUNDED] * timed  # what blocks append may have none
    for spec in outer:
        said = replace(spec, slide=slide) if timed and spec.slide is None else spec
        ctx.windows.append((said, ref))
    for block in (n for n in nodes_of(plan) if isinstance(n, Append) and not n.mixed):
        first = len(ctx.windows)
        ctx.windows += [(spec, ref) for spec in _outside(block.child)]
        ctx.appends(first)


def appending(ctx: Context, block: Append, first: int) -> Append:
    """A block that appends, and whose windows are those from place `first` on: it does so at the
    boundaries of the queries that it reads, where EVERY gives them these, as at those of a
    SLIDE."""
    ctx.appends(first)
    return replace(block, child=_answered(ctx, block.child))


def at_own(ctx: Context, bound: Node, first: int, slide: Slide, at: ast.Node) -> Node:
    """A subquery that is answered at these boundaries, and whose windows are those from place
    `first` on: its own have that SLIDE, those of blocks inside theirs."""
    appends = isinstance(bound, Append) and not bound.mixed
    block = ctx.blocks[-1] if appends else None
    inside = {at for other in ctx.blocks if other is not block for at in other}
    own = [k for k in range(first, len(ctx.windows)) if k not in inside]
    for k in own:
        spec, place = ctx.windows[k]
        check_measure(spec, slide, place, word="EVERY")
        ctx.windows[k] = replace(spec, slide=spec.slide or slide), place
    if all(ctx.windows[k][0].slide != slide for k in own):
        if block is not None:
            block.append(len(ctx.windows))
        ctx.windows.append((replace(UNBOUNDED, slide=slide), at))
    node = bound.child if isinstance(bound, Append) and appends else bound
    found = _sliding(node if any(_outside(node)) else _over_all(node), slide)
    return replace(bound, child=found) if isinstance(bound, Append) and appends else found


def answers_at_boundaries(ctx: Context, node: Node) -> bool:
    """Whether a window of it has a SLIDE, or it reads the answer of a query that is answered at
    boundaries, not by way of a block that appends.  A one-time query passes SLIDE over."""
    match node:
        case Append(mixed=False):
            return False
        case Window() if node.spec.slide is not None and ctx.persistent:
            return True
        case Answer() if Catalog.key(node.query) in ctx.answered:
            return True
    return any(answers_at_boundaries(ctx, child) for child in children(node))


def _answered(ctx: Context, node: Node) -> Node:
    match node:
        case Append(mixed=False):
            return node
        case Answer() if (slide := ctx.answered.get(Catalog.key(node.query))) is not None:
            found = _sliding(node, slide)
            return found if any(_outside(found)) else _sliding(_over_all(found), slide)
        case _:
            return with_children(node, tuple(_answered(ctx, child) for child in children(node)))


def _sliding(node: Node, slide: Slide) -> Node:
    """With that SLIDE on its windows, which may have it already."""
    if isinstance(node, Append) and not node.mixed:
        return node
    node = with_children(node, tuple(_sliding(child, slide) for child in children(node)))
    if isinstance(node, Window) and node.spec.slide is None:
        return replace(node, spec=replace(node.spec, slide=slide))
    return node


def _over_all(node: Node) -> Node:
    """With [RANGE UNBOUNDED] where a stream has no window."""
    if isinstance(node, StreamScan) or (isinstance(node, Append) and not node.mixed):
        return Window(node, UNBOUNDED, node.schema)
    return with_children(node, tuple(map(_over_all, children(node))))


def _outside(node: Node) -> Iterator[WindowSpec]:
    """Windows that are not those of a block that appends."""
    if isinstance(node, Append) and not node.mixed:
        return
    if isinstance(node, Window):
        yield node.spec
    for child in children(node):
        yield from _outside(child)


MOST = 64  # leaves of the plan of one query, by way of others


def _check(query: QueryDef, ref: ast.TableRef) -> None:
    if query.on_lookup:
        message = (
            f"{query.name} was registered ON LOOKUP: it has an answer when it is asked for one"
        )
        raise error("DS329", message, ref.name, f"LOOKUP {query.name}")


def _plan(ctx: Context, query: QueryDef) -> Output:
    known = ctx.catalog.plans.get(query.home)
    if isinstance(known, Output):
        return known
    statement = parse_one(query.sql)
    assert isinstance(statement, ast.CreateQuery)
    assert ctx.bind_whole is not None
    return ctx.bind_whole(statement, ctx.catalog)


def _unsorted(node: Node, query: QueryDef, ref: ast.TableRef) -> Node:
    """Its rows, in no order."""
    if not isinstance(node, Sort):
        return node
    if node.limit is not None or node.offset:
        message = (
            f"{query.name} has {'LIMIT' if node.limit is not None else 'OFFSET'}: which rows are "
            "in its answer is decided as it is given"
        )
        hint = (
            f"read a stream of it (CREATE STREAM name AS SELECT Istream(...) ... LIMIT n), or a "
            f"query like {query.name} without, and put ORDER BY and LIMIT into the reader"
        )
        raise error("DS340", message, ref.name, hint)
    shown = node.child.schema[: len(node.schema)]
    columns = [Col(i, f.type, f.name) for i, f in enumerate(shown)]
    if len(node.child.schema) == len(shown):
        return node.child
    return project(node.child, columns, [f.name for f in shown])


def shifted(node: Node, by: int) -> Node:
    """The plan with other numbers for its leaves."""
    match node:
        case StreamScan() | TableScan():
            return replace(node, leaf=node.leaf + by)
        case JoinNRR():
            table = replace(node.table, leaf=node.table.leaf + by)
            return replace(node, child=shifted(node.child, by), table=table)
        case Answer():
            return replace(node, child=shifted(node.child, by), first=node.first + by)
        case _:
            return with_children(node, tuple(shifted(child, by) for child in children(node)))


def without_dates(node: Node) -> Node:
    """The plan as it was bound: where timestamps are needed is found out again, by the planner."""
    match node:
        case StreamScan() | TableScan():
            return replace(node, dated=False) if node.dated else node
        case Append() if node.dated:
            return replace(node, child=without_dates(node.child), dated=False)
        case _:
            return with_children(node, tuple(map(without_dates, children(node))))
