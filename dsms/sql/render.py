"""A logical plan back to SQL: the text binds to an equal plan, up to names and numbers of leaves.

The plan becomes a syntax tree from the bottom up.  Each node extends the SELECT block of its child
where the binder would build the same plan from it; where it would not, the child becomes a subquery
in FROM.  Under `Append` (INTERNAL windows) a subquery would append on its own, so joins there are
flattened instead: equal answers, and an equal plan unless a rewrite rule moved selections or
projections below a join.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dsms.sql import ast, printer
from dsms.sql.expr import Col, Expr, columns, conjuncts
from dsms.sql.logical import (
    Answer,
    Append,
    AsofJoin,
    Distinct,
    GroupBy,
    Join,
    JoinNRR,
    Match,
    MultiJoin,
    Node,
    Output,
    Over,
    Project,
    Select,
    SemiJoin,
    SetOp,
    Sort,
    StreamScan,
    TableScan,
    TopN,
    Union,
    Unnest,
    Values,
    Window,
)
from dsms.sql.multi_joins import as_joins
from dsms.sql.plan_reads import unwindowed
from dsms.sql.render_asof import asof_block, equal
from dsms.sql.render_block import Block, Stage, all_of, with_output
from dsms.sql.render_match import Source, has_pattern, match_block
from dsms.sql.render_names import ident, names_of, unique
from dsms.sql.render_over import over_block, windowed
from dsms.sql.render_project import has_internal, is_exists, same_grouping
from dsms.sql.types import Schema
from dsms.sql.unbind import unbind, unbind_aggregate, window_syntax
from dsms.sql.window import UNBOUNDED, Latest, WindowSpec


def to_sql(plan: Node) -> str:
    """The plan as one SELECT."""
    return printer.to_sql(to_ast(plan))


def to_ast(plan: Node) -> ast.Query:
    """The plan as syntax.  Without an `Output` at its root, as a query whose output is the
    default."""
    renderer = _Renderer()
    query = renderer.ordered(
        plan.child if isinstance(plan, Output) else plan, names_of(plan.schema)
    )
    if not isinstance(plan, Output) or not plan.explicit:
        return query
    assert isinstance(query.body, ast.Select | ast.SetOp)
    output = ast.Output(ast.OutputKind[plan.kind.upper()], plan.restore)
    return replace(query, body=with_output(query.body, output))


class _Renderer:
    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._internal = False  # inside of an Append

    # ------------------------------------------------------------ queries

    def ordered(self, node: Node, names: Sequence[str]) -> ast.Query:
        """A whole query, with ORDER BY and LIMIT if it has them."""
        if not isinstance(node, Sort):
            return ast.Query(self.block(node).query(names))
        keep = len(node.schema)
        block = self.block(node.child)
        order = tuple(self._order_item(key, block, keep) for key in node.keys)
        block.items = block.items[:keep]
        return ast.Query(block.query(names), order, node.limit, node.offset or None)

    def _order_item(self, key: tuple[Expr, bool, bool], block: Block, keep: int) -> ast.OrderItem:
        expr, descending, nulls_first = key
        if isinstance(expr, Col) and expr.index < keep:
            target: ast.Expr = ast.IntLit(expr.index + 1)
        else:
            target = unbind(expr, block.items)
        return ast.OrderItem(target, descending, True if nulls_first else None)

    def _subquery(self, node: Node, block: Block, window: WindowSpec | None = None) -> Block:
        """The node, whose block this is, as a subquery in FROM."""
        names = unique(names_of(node.schema))
        body = block.query(names)
        alias = self._alias("q")
        items = [ast.ColumnRef(ident(n, names), alias) for n in names]
        written = None if window is None else window_syntax(window, items)
        return Block(ast.SubqueryRef(ast.Query(body), alias, written), list(items), [len(items)])

    def _top(self, node: TopN) -> Block:
        """A subquery that says ORDER BY, LIMIT and PER by positions."""
        block = self.block(node.child)
        if block.append:  # what is appended is ranked, not the other way round
            block = self._subquery(node.child, block)
        names = unique(names_of(node.schema))
        order = tuple(self._order_item(key, block, len(names)) for key in node.keys)
        per = ast.Per(tuple(ast.IntLit(e.index + 1) for e in node.by if isinstance(e, Col)))
        query = ast.Query(block.query(names), order, node.limit, per=per)
        alias = self._alias("q")
        items: list[ast.Expr] = [ast.ColumnRef(ident(n, names), alias) for n in names]
        return Block(ast.SubqueryRef(query, alias), items, [len(items)])

    def _alias(self, wanted: str) -> ast.Ident:
        name, n = wanted, 1
        while name.casefold() in self._taken:
            n += 1
            name = f"{wanted}_{n}"
        self._taken.add(name.casefold())
        return ast.Ident(name)

    # ------------------------------------------------------------ nodes

    def block(self, node: Node) -> Block:
        """The node as a block."""
        match node:
            case Window(child=Over() as over, spec=spec):
                return self._over(over, spec)
            case Over():
                return self._over(node, None)
            case StreamScan() | TableScan() | Window():
                return self._leaf(node)
            case Values():
                return Block(None, [])
            case Select():
                return self._select(node)
            case Project(child=JoinNRR() as found) if self._internal and is_exists(node, found):
                return self._table_test(found)
            case Project():
                block = self._upto(node.child, Stage.HAVING)
                if not same_grouping(node):
                    block = self._subquery(node.child, block)
                items = [unbind(e, block.items) for e in node.exprs]
                return replace(block, items=items, stage=Stage.PROJECT)
            case Join() | JoinNRR():
                return self._join(node)
            case MultiJoin():
                return self._join(as_joins(node))
            case AsofJoin():
                return self._asof_join(node)
            case Match():
                return self._match(node)
            case Unnest():
                return self._unnest(node)
            case SemiJoin():
                return self._semi_join(node)
            case GroupBy():
                return self._group_by(node)
            case Distinct() if isinstance(node.child, Union):
                return self._union(node.child, last_all=False)
            case Distinct():
                block = self._upto(node.child, Stage.PROJECT)
                return replace(block, distinct=True, stage=Stage.DISTINCT)
            case TopN():
                return self._top(node)
            case Union():
                return self._union(node, last_all=True)
            case SetOp():
                return self._set_op(node)
            case Append():
                return self._append(node)
            case Answer():
                return self.block(node.child)
        raise TypeError(f"{type(node).__name__} stands at the root only")

    def _upto(self, node: Node, stage: Stage) -> Block:
        """The node's block if it has come no further than `stage`, else a block over it as a
        subquery."""
        block = self._opened(node)
        return block if block.stage <= stage else self._subquery(node, block)

    def _opened(self, node: Node) -> Block:
        """The node's block, taken for a FROM with WHERE if its windows are INTERNAL and it has only
        these so far."""
        block = self.block(node)
        plain = block.from_ is not None and not block.grouped and block.stage <= Stage.PROJECT
        if self._internal and plain and has_internal(node):
            return replace(block, stage=Stage.WHERE)
        return block

    def _leaf(self, node: StreamScan | TableScan | Window) -> Block:
        match node:
            case Window(child=child, spec=Latest()):
                return self.block(child)
            case Window(child=StreamScan() as scan, spec=spec):
                return self._stream_leaf(scan, spec)
            case Window(child=child, spec=spec):
                return self._subquery(child, self.block(child), spec)
            case StreamScan():
                return self._stream_leaf(node, None)
            case TableScan():
                return self._named_leaf(node.table.name, node.table.schema, node.alias, None)

    def _over(self, node: Over, spec: WindowSpec | None) -> Block:
        """The rows of a window, or of an append-only input, and the calls of OVER."""
        child, where = node.child, conjuncts(node.predicate)
        while isinstance(child, Select) and spec is not None:
            where = [*conjuncts(child.predicate), *where]
            child = child.child
        if spec is None:
            block = self._upto(child, Stage.WHERE)
        elif (inside := windowed(child, spec)) is not None:
            block = self._subquery(inside, self.block(inside))
        else:
            block = self._leaf(Window(child, spec, child.schema))
        return over_block(node, block, where)

    def _stream_leaf(self, scan: StreamScan, spec: WindowSpec | None) -> Block:
        alone = scan.archive is not None and not scan.archive.live
        return self._named_leaf(scan.stream.name, scan.stream.schema, scan.alias, spec, alone)

    def _named_leaf(
        self, name: str, schema: Schema, wanted: str, spec: WindowSpec | None, archive: bool = False
    ) -> Block:
        alias = self._alias(wanted)
        names = names_of(schema)
        items = [ast.ColumnRef(ident(n, names), alias) for n in names]
        window = None if spec is None or spec == UNBOUNDED else window_syntax(spec, items)
        shown = None if alias.text == name else alias
        table = ast.TableRef(ast.Ident(name), shown, window, archive)
        return Block(table, list(items), [len(items)])

    def _select(self, node: Select) -> Block:
        match node.child:
            case Window(child=Over(predicate=asked)) if asked == node.predicate:
                return self.block(node.child)  # it is the WHERE of the same block
        block = self._upto(node.child, Stage.GROUP)
        if block.stage == Stage.TESTS:
            block = self._subquery(node.child, block)
        if block.stage == Stage.GROUP:
            return replace(block, having=unbind(node.predicate, block.items), stage=Stage.HAVING)
        parts = conjuncts(node.predicate)
        inner = self._internal and has_internal(node)
        alone = all(block.leaf_of(columns(p)) for p in parts) and not has_pattern(block.from_)
        if not inner and not alone:
            # else the binder would make it a condition of the join, or of the pattern
            block = self._subquery(node.child, block)
        where = [*block.where, *(unbind(p, block.items) for p in parts)]
        return replace(block, where=where, stage=Stage.WHERE)

    def _group_by(self, node: GroupBy) -> Block:
        block = self._upto(node.child, Stage.TESTS)
        keys = tuple(_not_a_position(unbind(k, block.items)) for k in node.keys)
        aggs = [unbind_aggregate(a, block.items) for a in node.aggs]
        return replace(block, items=[*keys, *aggs], group_by=keys, grouped=True, stage=Stage.GROUP)

    # ------------------------------------------------------------ joins

    def _join(self, node: Join | JoinNRR) -> Block:
        sides = (node.left, node.right) if isinstance(node, Join) else (node.child, node.table)
        left, right = self._side(sides[0], first=True), self._side(sides[1], first=False)
        items = [*left.items, *right.items]
        on = [equal(a, b, left.items, right.items) for a, b in node.keys]
        on += [unbind(c, items) for c in conjuncts(node.residual)]
        kind = ast.JoinKind[node.kind.upper()]
        if not on and kind is ast.JoinKind.INNER:
            kind = ast.JoinKind.CROSS
        elif not on and kind is not ast.JoinKind.CROSS:
            on = [ast.BoolLit(True)]
        assert left.from_ is not None and right.from_ is not None
        joined = ast.Join(kind, left.from_, right.from_, all_of(on))
        where = [*left.where, *right.where]
        stage = Stage.WHERE if where else Stage.FROM
        return Block(joined, items, left.leaves + right.leaves, stage, where)

    def _asof_join(self, node: AsofJoin) -> Block:
        left, right = self._side(node.left, first=True), self._side(node.right, first=False)
        return asof_block(node, left, right)

    def _match(self, node: Match) -> Block:
        outer, self._internal = self._internal, False
        sources = [self._source(n, name) for n, name in zip(node.inputs, node.names, strict=True)]
        self._internal = outer
        return match_block(node, sources)

    def _source(self, node: Node, name: str) -> Source:
        """The input of a step without its window, and its columns."""
        below, alias = unwindowed(node), self._alias(name)
        names = unique(names_of(below.schema))
        items: list[ast.Expr] = [ast.ColumnRef(ident(n, names), alias) for n in names]
        if isinstance(below, StreamScan):
            return ast.TableRef(ast.Ident(below.stream.name), alias), items
        return ast.SubqueryRef(ast.Query(self.block(below).query(names)), alias), items

    def _unnest(self, node: Unnest) -> Block:
        left = self._side(node.child, first=True)
        names, alias = names_of(node.schema[len(node.child.schema) :]), self._alias("items")
        columns = tuple(ident(n, names) for n in names)
        ref = ast.UnnestRef(unbind(node.items, left.items), node.ordinality, alias, columns)
        joined: ast.FromItem = ref
        if left.from_ is not None:
            kind = ast.JoinKind.CROSS if node.kind == "inner" else ast.JoinKind.LEFT
            on = None if node.kind == "inner" else ast.BoolLit(True)
            joined = ast.Join(kind, left.from_, ref, on)
        items = [*left.items, *(ast.ColumnRef(c, alias) for c in columns)]
        return replace(left, from_=joined, items=items, leaves=[*left.leaves, len(columns)])

    def _side(self, node: Node, first: bool) -> Block:
        """An input of a join: a chain of joins stays flat on the left; under INTERNAL windows all
        are flattened."""
        block = self._opened(node)
        if self._internal and has_internal(node) and block.stage <= Stage.WHERE:
            return block
        single = not isinstance(block.from_, ast.Join)
        if block.stage == Stage.FROM and block.from_ is not None and (first or single):
            return block
        return self._subquery(node, block)

    def _semi_join(self, node: SemiJoin) -> Block:
        left = self._upto(node.left, Stage.TESTS)
        right = self._upto(node.right, Stage.TESTS)
        on = [equal(a, b, left.items, right.items) for a, b in node.keys]
        on += [unbind(c, [*left.items, *right.items]) for c in conjuncts(node.residual)]
        test: ast.Expr
        if node.null_aware and len(node.keys) == 1 and node.residual is None:
            value, result = node.keys[0]
            inner = replace(right, items=[unbind(result, right.items)]).query(["v"])
            test = ast.InQuery(unbind(value, left.items), ast.Query(inner), node.anti)
        else:
            body = replace(right, items=[], where=[*right.where, *on]).query([])
            assert isinstance(body, ast.Select)
            exists = ast.Exists(ast.Query(replace(body, items=(ast.StarItem(),))))
            test = ast.Not(exists) if node.anti else exists
        return replace(left, where=[*left.where, test], stage=Stage.TESTS)

    def _table_test(self, node: JoinNRR) -> Block:
        """EXISTS against a non-retroactive table. As a join it could not keep its place among
        INTERNAL windows, where FROM and WHERE are one."""
        left, right = self._upto(node.child, Stage.TESTS), self.block(node.table)
        on = [equal(a, b, left.items, right.items) for a, b in node.keys]
        on += [unbind(c, [*left.items, *right.items]) for c in conjuncts(node.residual)]
        body = replace(right, items=[], where=on).query([])
        assert isinstance(body, ast.Select)
        exists = ast.Exists(ast.Query(replace(body, items=(ast.StarItem(),))))
        return replace(left, where=[*left.where, exists], stage=Stage.TESTS)

    # ------------------------------------------------------------ sets

    def _operand(self, node: Node, names: Sequence[str], first: bool) -> ast.Select | ast.SetOp:
        block = self.block(node)
        if block.append or (block.body is not None and not first and isinstance(node, Union)):
            block = self._subquery(node, block)
        return block.query(names)

    def _union(self, node: Union, last_all: bool) -> Block:
        names = names_of(node.schema)
        body: ast.Select | ast.SetOp = self._operand(node.inputs[0], names, first=True)
        for i, child in enumerate(node.inputs[1:], 2):
            operand = self._operand(child, names, first=False)
            keep_duplicates = last_all or i < len(node.inputs)
            body = ast.SetOp(ast.SetOpKind.UNION, body, operand, keep_duplicates)
        assert isinstance(body, ast.SetOp)
        return self._set_block(body, names)

    def _set_op(self, node: SetOp) -> Block:
        names = names_of(node.schema)
        left = self._operand(node.left, names, first=True)
        right = self._operand(node.right, names, first=False)
        body = ast.SetOp(ast.SetOpKind[node.op.upper()], left, right, node.all)
        return self._set_block(body, names)

    def _set_block(self, body: ast.SetOp, names: Sequence[str]) -> Block:
        items: list[ast.Expr] = [ast.ColumnRef(ast.Ident(n)) for n in names]
        return Block(None, items, stage=Stage.DONE, body=body)

    def _append(self, node: Append) -> Block:
        outer, self._internal = self._internal, True
        block = self.block(node.child)
        self._internal = outer
        append = None
        if node.departures:
            append = ast.OutputKind.DSTREAM
        elif node.entries or not has_internal(node.child):
            append = ast.OutputKind.ISTREAM
        return replace(block, stage=Stage.DONE, append=append)


# ---------------------------------------------------------------- small parts


def _not_a_position(expr: ast.Expr) -> ast.Expr:
    return ast.Cast(expr, ast.TypeName("INT")) if isinstance(expr, ast.IntLit) else expr
