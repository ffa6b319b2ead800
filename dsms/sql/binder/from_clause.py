"""FROM: its items become leaves with numbered columns, its names a scope, its commas and JOINs a
`Group` to build."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dsms.sql import ast
from dsms.sql.binder import ageing, archives, asof, match, unnest
from dsms.sql.binder.answers import answer, at_own
from dsms.sql.binder.boundaries import every_of
from dsms.sql.binder.context import Block, BlockInput, Bound, Context, relabel
from dsms.sql.binder.expressions import Env, bind_condition
from dsms.sql.binder.groups import Asof, Beside, Group, Leaf, Outer, Pattern, Semi, is_table
from dsms.sql.binder.keyed import put_latest
from dsms.sql.binder.properties import append_only, reads_stream, strict
from dsms.sql.binder.samples import sampled
from dsms.sql.binder.scope import Scope, relation_scope, together, unknown_source
from dsms.sql.binder.using import common, using
from dsms.sql.binder.views import check_readable, restricted
from dsms.sql.binder.windowed import put_window
from dsms.sql.catalog import QueryDef, StreamDef, TableDef, View
from dsms.sql.codes import error
from dsms.sql.expr import Expr, conjuncts
from dsms.sql.logical import Archived, Node, StreamScan, TableScan, Values, Window
from dsms.sql.types import TIMESTAMP, Field, Schema
from dsms.sql.window import UNBOUNDED

AT = "$at"  # the column of a history that has the instants
Source = ast.TableRef | ast.SubqueryRef
Views = tuple[View, ...] | None  # what the user may read; None: everything


@dataclass(slots=True)
class From:
    """A bound FROM clause: a group, and what its names mean over virtual positions.  `inside`: to
    WHERE, which sees all steps of a MATCH."""

    group: Group
    scope: Scope
    width: int
    inside: Scope


# ---------------------------------------------------------------- names to leaves


def bind_from(ctx: Context, block: Block, select: ast.Select, beyond: tuple[Scope, ...]) -> From:
    """The FROM clause of a SELECT block; `beyond` are scopes it can't see but may name in
    errors."""
    binder = _FromBinder(ctx, block, select.window, beyond)
    group, scope = Group(), Scope(beyond=beyond)
    for item in select.from_:
        if isinstance(item, ast.UnnestRef):
            group, scope = binder.opened(item, group, scope)
            continue
        if isinstance(item, ast.SubqueryRef) and item.lateral:
            group, scope = binder.lateral(item, group, scope)
            continue
        side, names = binder.item(item)
        group.items += side.items
        group.conjuncts += side.conjuncts
        scope = together(scope, names, item)
    if select.window is not None and not binder.windowed:
        hint = "put a stream into FROM, or leave WINDOW out"
        raise error(
            "DS317",
            "WINDOW puts a window on every stream of FROM, and there is none",
            select.window,
            hint,
        )
    if not select.from_:
        group.items.append(Leaf(Values(((),), ()), (), select))
    inside = scope
    for hidden in binder.hidden:
        inside = inside.joined(hidden)
    return From(group, scope, binder.width, inside)


class _FromBinder:
    """Walks the items of one FROM clause and numbers their columns."""

    def __init__(
        self, ctx: Context, block: Block, window: ast.Window | None, beyond: tuple[Scope, ...]
    ) -> None:
        self.ctx, self.block, self.window, self.beyond = ctx, block, window, beyond
        self.width = 0
        self.windowed = 0
        self.hidden: list[Scope] = []  # of steps of a MATCH that are no part of its rows
        self.left: tuple[Scope, ...] = ()  # items so far, which a subquery in FROM does not see

    def item(self, item: ast.FromItem) -> tuple[Group, Scope]:
        match item:
            case ast.TableRef():
                return self._named(item)
            case ast.SubqueryRef():
                return self._subquery(item)
            case ast.Join():
                return self._join(item)
            case ast.Match():
                return self._match(item)
            case ast.UnnestRef():
                return self.opened(item, Group(), Scope())
        raise AssertionError(item)

    def opened(self, ref: ast.UnnestRef, left: Group, scope: Scope) -> tuple[Group, Scope]:
        """The items of a list of each row of `left`, beside the row."""
        seen = replace(scope, parent=None, beyond=(*self.left, *self.beyond))
        made, names = unnest.opened(self.ctx, ref, left, seen, self.width)
        self.width += len(made.made)
        self.left += (names,)
        return Group([made]), together(scope, names, ref)

    def lateral(
        self, ref: ast.SubqueryRef, left: Group, scope: Scope, join: ast.Join | None = None
    ) -> tuple[Group, Scope]:
        """What a subquery answers to each row of `left`, beside the row."""
        seen = replace(scope, parent=None, beyond=(*self.left, *self.beyond))
        assert self.ctx.bind_lateral is not None
        found: Beside = self.ctx.bind_lateral(
            self.ctx, self._subquery, self._names, ref, seen, join
        )
        if found.padded:
            self.block.negations.append(ref)
        self.left += (found.names,)
        return found.joined(left, ref), together(scope, found.names, ref)

    def _names(self, select: ast.Select) -> Scope:
        """What its FROM calls its columns."""
        return bind_from(self.ctx, Block(), select, (*self.left, *self.beyond)).scope

    def _leaf(
        self, node: Node, scope: Scope, at: Source, table: bool = False
    ) -> tuple[Group, Scope]:
        node = sampled(self.ctx, node, scope, at.sample)
        virtual = tuple(range(self.width, self.width + len(node.schema)))
        scope = scope.shifted(self.width)
        self.left += (scope,)
        self.width += len(node.schema)
        return Group([Leaf(node, virtual, at, table)]), scope

    def _named(self, ref: ast.TableRef) -> tuple[Group, Scope]:
        found = self.ctx.catalog.find(ref.name.text, ref.name.quoted)
        views = None if found is None else self.ctx.catalog.views(found, ref.name)
        hidden = views and all(view.where is not None for view in views)
        if found is not None and (hidden or self.ctx.catalog.seen_after(found)):
            self.ctx.filtered.append((found.name, ref))
        if ref.archive and found is not None:
            return self._stream(
                archives.rows_of(self.ctx, found, ref), ref, views, archives.alone(found)
            )
        match found:
            case StreamDef() if found.key:
                return self._keyed(found, ref, views)
            case StreamDef():
                return self._stream(found, ref, views)
            case TableDef():
                return self._table(found, ref, views)
            case QueryDef():
                return self._answer(found, ref, views)
        raise unknown_source(ref.name, self.ctx.catalog.names())

    def _stream(
        self, stream: StreamDef, ref: ast.TableRef, views: Views, archive: Archived | None = None
    ) -> tuple[Group, Scope]:
        alias = ref.alias.text if ref.alias else stream.name
        schema = _under(alias, stream.schema)
        window = self._window_of(ref, stream.name)
        if window is not None and window.archive and archive is None:
            archive = archives.beside_live(self.ctx, stream, window)
        scan = StreamScan(stream, schema, alias, self.ctx.next_leaf(), archive)
        rows = scan if views is None else restricted(self.ctx, scan, stream.name, views)
        scope = replace(
            relation_scope(rows.schema, alias, stream.name), stamps=(_stamp(stream, alias),)
        )
        self.windowed += 1
        if window is None:
            node = Window(rows, UNBOUNDED, rows.schema)
        else:
            node = put_window(self.ctx, rows, window, scope, rows.schema, self.block.internal)
        after = self.ctx.catalog.seen_after(stream)
        user, every = self.ctx.catalog.user, self.ctx.every
        node = ageing.late(node, after, window, stream.name, user, every)
        self._source(ref, node)
        return self._leaf(node, scope, ref)

    def _keyed(self, stream: StreamDef, ref: ast.TableRef, views: Views) -> tuple[Group, Scope]:
        """What a stream with KEY holds: all of it is the answer of its own query."""
        alias = ref.alias.text if ref.alias else stream.name
        window = self._window_of(ref, stream.name)
        whole = window is None or (window == ast.UnboundedWindow() and not self.ctx.persistent)
        current = self.ctx.catalog.current(stream) if whole else None
        node: Node
        if current is not None and self.ctx.persistent:
            node = answer(self.ctx, current, replace(ref, alias=ast.Ident(alias)))
        elif current is not None:
            schema = _under(alias, stream.shown)
            node = TableScan(TableDef(current.name, schema), schema, alias, self.ctx.next_leaf())
        else:
            schema = _under(alias, stream.schema)
            scan = StreamScan(stream, schema, alias, self.ctx.next_leaf())
            node = put_latest(self.ctx, scan, window, relation_scope(schema, alias, stream.name))
        if views is not None:
            node = restricted(self.ctx, node, stream.name, views)
        self.windowed += 1
        scope = relation_scope(node.schema, alias, stream.name)
        scope = replace(scope, stamps=(_stamp(stream, alias),))
        self._source(ref, node)
        return self._leaf(node, scope, ref)

    def _window_of(self, ref: ast.TableRef, name: str) -> ast.Window | None:
        if self.window is not None and ref.window is not None:
            hint = "leave one of the two out"
            message = (
                f"{name} has a window of its own, and the query's WINDOW would put another on it"
            )
            raise error("DS317", message, ref.window, hint)
        return ref.window or self.window

    def _table(self, table: TableDef, ref: ast.TableRef, views: Views) -> tuple[Group, Scope]:
        if ref.window is not None:
            hint = "leave the window out: a table is read as it stands"
            raise error(
                "DS305", f"{table.name} is a table, and windows are for streams", ref.window, hint
            )
        if ref.sample is not None and not table.retroactive:
            message = f"{table.name} is non-retroactive: it is read as of each stream row, whole"
            hint = "sample the stream that is joined with it, BY the same column"
            raise error("DS367", message, ref.sample, hint)
        alias = ref.alias.text if ref.alias else table.name
        schema = _under(alias, table.schema)
        scan = TableScan(table, schema, alias, self.ctx.next_leaf())
        rows = scan if views is None else restricted(self.ctx, scan, table.name, views)
        return self._leaf(
            rows, relation_scope(rows.schema, alias, table.name), ref, not table.retroactive
        )

    def _answer(self, query: QueryDef, ref: ast.TableRef, views: Views) -> tuple[Group, Scope]:
        """The answer of a persistent query, as it stands: to a one-time query it is a table."""
        if self.ctx.persistent:
            return self._view(query, ref, views)
        check_readable(query, ref)
        if ref.window is not None:
            return self._history(query, ref, views)
        return self._table(TableDef(query.name, query.schema), ref, views)

    def _history(self, query: QueryDef, ref: ast.TableRef, views: Views) -> tuple[Group, Scope]:
        """What a persistent query has told, to a one-time query: rows of a stream, whose last
        column, which only INSTANT names, has their instants."""
        assert ref.window is not None
        alias = ref.alias.text if ref.alias else query.name
        fields = (*query.schema, Field(AT, TIMESTAMP))
        schema = tuple(Field(f.name, f.type, alias, f.nullable) for f in fields)
        stream = StreamDef(query.name, fields)
        scan = StreamScan(stream, schema, alias, self.ctx.next_leaf(), history=True)
        rows: Node = scan
        if views is not None:
            shown = [replace(view, columns=(*view.columns, (AT, None))) for view in views]
            rows = restricted(self.ctx, scan, query.name, shown)
        scope = relation_scope(rows.schema, alias, query.name)
        *columns, at = scope.columns
        scope = replace(
            scope, columns=(*columns, replace(at, hidden=True)), stamps=((alias, AT, None),)
        )
        self.windowed += 1
        node = put_window(self.ctx, rows, ref.window, scope, rows.schema, self.block.internal)
        self._source(ref, node)
        return self._leaf(node, scope, ref)

    def _view(self, query: QueryDef, ref: ast.TableRef, views: Views) -> tuple[Group, Scope]:
        """The answer of a persistent query, to another one: as if its text stood here."""
        found = answer(self.ctx, query, ref)
        node: Node = found
        if views is not None:
            node = restricted(self.ctx, found, query.name, views)
        alias = ref.alias.text if ref.alias else query.name
        scope = relation_scope(node.schema, alias, query.name)
        window = self._window_of(ref, query.name)
        if window is not None:
            self.windowed += 1
            node = put_window(self.ctx, node, window, scope, node.schema, self.block.internal)
        self._source(ref, node)
        return self._leaf(node, scope, ref)

    def _subquery(self, ref: ast.SubqueryRef) -> tuple[Group, Scope]:
        bound = self._nested(ref)
        alias = ref.alias.text if ref.alias else None
        schema = bound.schema(alias)
        node = relabel(bound.node, schema)
        scope = relation_scope(schema, alias, also=bound.also)
        if ref.window is not None:
            node = put_window(
                self.ctx, node, ref.window, scope, schema, self.block.internal, ref.query
            )
        self._source(ref, node)
        return self._leaf(node, scope, ref)

    def _nested(self, ref: ast.SubqueryRef) -> Bound:
        """The subquery, at boundaries of its own where it has EVERY."""
        ctx, every, beyond = self.ctx, ref.query.every, (*self.left, *self.beyond)
        if every is None:
            return ctx.bind_query(ctx, ref.query, beyond=beyond)
        first, outer, slide = len(ctx.windows), ctx.every, every_of(every)
        ctx.every = every
        bound = ctx.bind_query(ctx, replace(ref.query, every=None), beyond=beyond, every=every)
        ctx.every = outer
        if ctx.persistent and not reads_stream(bound.node):
            message = "EVERY answers a subquery as its streams go on, and this one reads none"
            raise error("DS344", message, every, "leave EVERY out: a table is read as it stands")
        return replace(bound, node=at_own(ctx, bound.node, first, slide, ref))

    def _source(self, ref: Source, node: Node) -> None:
        internal = isinstance(node, Window) and node.spec.internal
        at = ref.window or ref
        self.block.sources.append(
            BlockInput(at, internal, not append_only(node), strict(node), reads_stream(node))
        )

    def _match(self, item: ast.Match) -> tuple[Group, Scope]:
        match.check_steps(item)
        window = match.window_of(item, self.window)
        outer, self.window = self.window, None
        steps, scopes = list[tuple[ast.MatchStep, Leaf]](), list[Scope]()
        for step in item.steps:
            match.check_source(step, self.ctx.catalog)
            group, scope = self.item(replace(step.source, window=window))
            steps.append((step, match.leaf_of(step, group)))
            scopes.append(scope)
        self.window = outer
        shown, named = Scope(), Scope()
        for step, scope in zip(item.steps, scopes, strict=True):
            named = together(named, scope, step.source)
            if step.kind is ast.StepKind.ONE:
                shown = shown.joined(scope)
            else:
                self.hidden.append(scope)
        self.windowed += 1
        keys = tuple(match.key(ref, scopes) for ref in item.per)
        return Group([Pattern(steps, keys, item, scopes)]), shown

    def _asof(self, join: ast.Join) -> tuple[Group, Scope]:
        assert join.on is not None
        left, left_names = self.item(join.left)
        item, span = asof.without_window(join, self.window)
        outer, self.window = self.window, None
        right, right_names = self.item(item)
        self.window = outer
        asof.check_tables(join, left, right)
        scope = together(left_names, right_names, join.right)
        on = self._on(join.on, scope)
        return Group([Asof(asof.KINDS[join.kind], left, right, on, span, join)]), scope

    def _on(self, condition: ast.Expr, scope: Scope) -> list[Expr]:
        env = Env(self.ctx, replace(scope, parent=None, beyond=self.beyond), "ON")
        return conjuncts(bind_condition(env, condition))

    def _join(self, join: ast.Join) -> tuple[Group, Scope]:
        if join.kind in asof.KINDS and not isinstance(join.right, ast.UnnestRef):
            return self._asof(join)
        left, left_names = self.item(join.left)
        if isinstance(join.right, ast.UnnestRef):
            unnest.check(join)
            group, scope = self.opened(join.right, left, left_names)
            picks = [] if join.on is None else self._on(join.on, scope)
            return unnest.joined(join, group, picks), scope
        if isinstance(join.right, ast.SubqueryRef) and join.right.lateral:
            return self.lateral(join.right, left, left_names, join)
        right, right_names = self.item(join.right)
        scope = together(left_names, right_names, join.right)
        on: list[Expr] = []
        if join.natural:
            join = replace(join, using=common(join, left_names, right_names))
        if join.using:
            scope, on = using(join, left_names, right_names)
        elif join.on is not None:
            on = self._on(join.on, scope)
        if join.kind in (ast.JoinKind.INNER, ast.JoinKind.CROSS):
            return Group(left.items + right.items, left.conjuncts + right.conjuncts + on), scope
        if join.kind in (ast.JoinKind.SEMI, ast.JoinKind.ANTI):
            anti = join.kind is ast.JoinKind.ANTI
            if anti:
                self.block.negations.append(join)
            return Group([Semi(anti, left, right, on, join)]), left_names
        if join.kind is ast.JoinKind.FULL or not is_table(
            right if join.kind is ast.JoinKind.LEFT else left
        ):
            self.block.negations.append(join)
        return Group([Outer(join.kind.value.lower(), left, right, on, join)]), scope


def _under(alias: str, schema: Schema) -> Schema:
    return tuple(Field(f.name, f.type, alias, f.nullable) for f in schema)


def _stamp(stream: StreamDef, alias: str) -> tuple[str, str | None, str | None]:
    """See `Scope.stamps`."""
    column = None if stream.timestamp is None else stream.schema[stream.timestamp].name
    return alias, column, stream.unit
