"""GROUP BY, HAVING and aggregates: everything above the grouping is an expression over its keys and
aggregates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

from dsms.sql import ast, functions
from dsms.sql.binder.aggregate_order import aggregate_order
from dsms.sql.binder.calls import call, function_error, is_grouping, stray_grouping
from dsms.sql.binder.expressions import Env, bind, bind_condition
from dsms.sql.binder.lists import aggregated
from dsms.sql.binder.samples import told_apart
from dsms.sql.binder.scalar_queries import scalar_queries
from dsms.sql.binder.scope import find
from dsms.sql.binder.structs import column_name
from dsms.sql.codes import error
from dsms.sql.expr import AggCall, Call, Col, Expr, Lit
from dsms.sql.functions import FunctionError
from dsms.sql.logical import GroupBy, Node, Project, Union
from dsms.sql.printer import to_sql
from dsms.sql.rewriting import replaced
from dsms.sql.transform.grouping_sets import MOST_SETS, too_many
from dsms.sql.types import INT, NULL, Field


def is_aggregate_call(node: ast.Node) -> bool:
    """A call of an aggregate (not of a scalar function of the same name)."""
    if not isinstance(node, ast.FuncCall):
        return False
    return functions.is_aggregate(node.name.text) and not functions.is_scalar(node.name.text)


def has_aggregate(node: ast.Node) -> bool:
    """Is there an aggregate in the expression, other than inside of its subqueries?"""
    return any(map(is_aggregate_call, _parts(node)))


def _parts(node: ast.Node) -> Iterator[ast.Node]:
    """The node and all below it, but not what is in its subqueries, nor what is OVER rows."""
    yield node
    if not isinstance(node, ast.Query | ast.Over):
        for child in ast.children(node):
            yield from _parts(child)


def aggregate_calls(node: ast.Node) -> Iterator[ast.Node]:
    """The outermost ones in the expression, other than inside of its subqueries and of OVER."""
    if is_aggregate_call(node):
        yield node
    elif not isinstance(node, ast.Query | ast.Over):
        for child in ast.children(node):
            yield from aggregate_calls(child)


@dataclass(slots=True)
class Grouping:
    """The grouping of one block while its expressions are bound: keys are fixed, aggregates are
    collected."""

    keys: list[Expr]
    names: list[str]
    # with GROUPING SETS of these keys: which of them each has
    sets: tuple[tuple[int, ...], ...] | None = None
    # what reads scalar subqueries in aggregates, which see the rows
    values: Mapping[ast.Expr, Expr] = field(default_factory=dict)
    aggs: list[AggCall] = field(default_factory=list)
    # where in `aggs` the same call is, whatever its name
    known: dict[AggCall, int] = field(default_factory=dict)

    def node(self, rows: Sequence[Node]) -> Node:
        """The GROUP BY over the block's rows, which are there once for each grouping set."""
        whole = range(len(self.keys))
        if self.sets is None:
            return self._grouped(rows[0], whole)
        inputs = tuple(self._one_set(r, s) for r, s in zip(rows, self.sets, strict=True))
        return inputs[0] if len(inputs) == 1 else Union(inputs, inputs[0].schema)

    def _grouped(self, child: Node, keys: Sequence[int]) -> GroupBy:
        fields = [Field(self.names[k], self.keys[k].type) for k in keys]
        fields += [Field(a.name, a.type) for a in self.aggs]
        exprs = tuple(self.keys[k] for k in keys)
        return GroupBy(child, exprs, tuple(self.aggs), tuple(fields))

    def _one_set(self, child: Node, keys: tuple[int, ...]) -> Project:
        """All keys, NULL those that the set has not got; which these are; aggregates."""
        node = self._grouped(child, keys)
        exprs: list[Expr] = []
        for k, key in enumerate(self.keys):
            at = keys.index(k) if k in keys else None
            exprs.append(Lit(None, key.type) if at is None else Col(at, key.type, self.names[k]))
        exprs += [Lit(int(k not in keys), INT) for k in range(len(self.keys))]
        exprs += [Col(len(keys) + n, a.type, a.name) for n, a in enumerate(self.aggs)]
        names = [*self.names, *(f"${n}" for n in self.names), *(a.name for a in self.aggs)]
        fields = (Field(n, e.type) for n, e in zip(names, exprs, strict=True))
        return Project(node, tuple(exprs), tuple(fields))

    @property
    def _before_aggregates(self) -> int:
        return len(self.keys) * (1 if self.sets is None else 2)

    def before(self, env: Env, node: ast.Expr) -> Expr | None:
        """What a node means above the grouping; None: look at its parts."""
        if is_aggregate_call(node):
            assert isinstance(node, ast.FuncCall)
            return self._aggregate(env, node)
        if is_grouping(node):
            assert isinstance(node, ast.FuncCall)
            return self._grouping(env, node)
        if has_aggregate(node) or isinstance(node, ast.WstreamArg) or scalar_queries([node]):
            return None
        if any(map(is_grouping, _parts(node))):
            return None
        if isinstance(
            node, ast.RowExpr | ast.InQuery | ast.Quantified | ast.Exists | ast.ScalarQuery
        ):
            return None
        bound = bind(env.plain(), node)
        if bound in self.keys:
            at = self.keys.index(bound)
            return Col(at, bound.type, self.names[at])
        if isinstance(node, ast.ColumnRef):
            if isinstance(bound, Call):  # a field
                return self.above(bound, node)
            raise self._ungrouped(env, node)
        return bound if isinstance(bound, Lit) else None

    def above(self, expr: Expr, at: ast.Node) -> Expr:
        """An expression over the rows, as one over the keys; DS303 where it reads anything else."""
        if expr in self.keys:
            k = self.keys.index(expr)
            return Col(k, expr.type, self.names[k])
        match expr:
            case Col(name=name):
                hint = "a subquery of a grouped query sees its keys alone"
                message = f"column `{name}` is no key of GROUP BY"
                raise error("DS303", message, at, hint)
            case Call(fn, args, type_, params):
                return Call(fn, tuple(self.above(a, at) for a in args), type_, params)
        return expr

    def _ungrouped(self, env: Env, node: ast.ColumnRef) -> Exception:
        name = find(env.scope, node).name.removeprefix("$")  # of a value over a step
        if self.keys:
            hint = (
                f"add {name} to GROUP BY ({', '.join(self.names)}), or aggregate it: "
                f"LAST({name}), COUNT({name})"
            )
        else:
            hint = f"add GROUP BY {name}, or aggregate it: LAST({name}), COUNT({name})"
        return error("DS303", f"column `{name}` is neither grouped nor aggregated", node, hint)

    def _aggregate(self, env: Env, node: ast.FuncCall) -> Col:
        found = agg_call(replace(env, values=self.values), node)
        place = self.known.setdefault(replace(found, name=""), len(self.aggs))
        if place == len(self.aggs):
            self.aggs.append(found)
        one = self.aggs[place]
        return Col(self._before_aggregates + place, one.type, one.name)

    def _grouping(self, env: Env, node: ast.FuncCall) -> Expr:
        """``GROUPING(a, b)``: a bit for each, 1 in rows that are not grouped by it."""
        if not node.args or node.star or node.distinct or node.filter is not None:
            raise stray_grouping(node)
        out: Expr = Lit(0, INT)
        for arg in node.args:
            bound = bind(env.plain(), arg)
            if bound not in self.keys:
                hint = f"it takes {', '.join(self.names)}" if self.keys else "add GROUP BY"
                raise error("DS359", f"GROUPING of `{to_sql(arg)}`, which is no key", arg, hint)
            k = self.keys.index(bound)
            bit: Expr = Lit(0, INT)
            if self.sets is not None:
                bit = Col(len(self.keys) + k, INT, f"${self.names[k]}")
            out = call("add", [call("mul", [out, Lit(2, INT)], node), bit], node)
        return out


def agg_call(env: Env, node: ast.FuncCall) -> AggCall:
    """The typed call of an aggregate over the rows of `env`.  QueryError DS207, DS302, DS304."""
    name = node.name.text
    inside = replace(env.plain(), place=f"an aggregate ({name.upper()})")
    if node.star and (name.casefold() != "count" or node.distinct):
        shown = "DISTINCT *" if node.distinct else "*"
        raise error(
            "DS304",
            f"{name.upper()} does not take {shown}",
            node,
            "only COUNT(*) counts rows; name a column",
        )
    values, params = _arguments(inside, node)
    if functions.aggregate(name).drawn and len(values) == 1:
        values.append(call("hash", told_apart(env.scope, node), node))
    try:
        found = functions.resolve_aggregate(
            name, [v.type for v in values], distinct=node.distinct, params=params
        )
    except FunctionError as failure:
        raise function_error(failure, name, [v.type for v in values], node) from None
    aggregated(functions.aggregate(name), [v.type for v in values], node)
    args = tuple(
        v if to is None else functions.cast(v, to)
        for v, to in zip(values, found.casts, strict=True)
    )
    keys, how = aggregate_order(inside, node)
    where = (
        None
        if node.filter is None
        else bind_condition(replace(inside, place="an aggregate's FILTER"), node.filter)
    )
    if functions.aggregate(name).sampled:
        env.ctx.by_subwindow.append((name, node))
    said, given = (*found.params, *how), (*args, *keys)
    return AggCall(found.fn, given, found.type, node.distinct, where, said, to_sql(node))


def _arguments(env: Env, node: ast.FuncCall) -> tuple[list[Expr], list[object]]:
    """The arguments, and the values of the trailing ones that must be constants."""
    wanted = functions.aggregate_params(node.name.text)
    bound = [bind(env, a) for a in node.args]
    split = max(len(bound) - len(wanted), min(len(bound), 1))
    params: list[object] = []
    for expr, at in zip(bound[split:], node.args[split:], strict=True):
        if not isinstance(expr, Lit):
            message = (
                f"{node.name.text.upper()} expects a constant "
                f"{', '.join(wanted) or 'argument'} here"
            )
            example = "a list such as [0, 10]" if "edges" in wanted else "a number such as 0.95"
            raise error("DS207", message, at, f"write {example}")
        params.append(expr.value)
    if not wanted:
        return bound, []
    return bound[:split], params


# ---------------------------------------------------------------- keys


def grouping(env: Env, select: ast.Select) -> Grouping:
    """The grouping expressions, what their columns are called, and which of them each grouping set
    has.  By expression, alias or position.  Raises DS358 for too many sets."""
    keys: list[Expr] = []
    names: list[str] = []
    parts = [n.sets if isinstance(n, ast.GroupingSets) else ((n,),) for n in select.group_by]
    count = prod(map(len, parts))
    if count > MOST_SETS:
        raise too_many(count, select.group_by[0].pos)
    for node in (node for part in parts for one in part for node in one):
        target = _key_target(env, select, node)
        expr = _typed(bind(env, target))
        if expr not in keys:
            keys.append(expr)
            names.append(column_name(env.scope, target) or to_sql(target))
    if not any(isinstance(n, ast.GroupingSets) for n in select.group_by):
        return Grouping(keys, names)

    def place(node: ast.Expr) -> int:
        return keys.index(_typed(bind(env, _key_target(env, select, node))))

    sets = tuple(
        tuple(dict.fromkeys(place(node) for part in one for node in part))
        for one in product(*parts)
    )
    return Grouping(keys, names, sets)


def _typed(expr: Expr) -> Expr:
    return Lit(None, INT) if expr.type == NULL else expr


def _key_target(env: Env, select: ast.Select, node: ast.Expr) -> ast.Expr:
    if isinstance(node, ast.IntLit):
        items = select.items
        if not 1 <= node.value <= len(items) or not isinstance(
            items[node.value - 1], ast.SelectItem
        ):
            raise position_error("GROUP BY", node, len(items))
        item = items[node.value - 1]
        assert isinstance(item, ast.SelectItem)
        return item.expr
    return (_aliased(env, select, node) if isinstance(node, ast.ColumnRef) else None) or node


def position_error(clause: str, node: ast.IntLit, count: int) -> Exception:
    hint = f"write a position from 1 to {count}, or a column"
    return error("DS219", f"{clause} {node.value}: the select list has {count} columns", node, hint)


def without_aliases(env: Env, select: ast.Select, node: ast.Expr) -> ast.Expr:
    """HAVING or ORDER BY with aliases of the select list spelled out; columns of FROM come before
    aliases."""

    def swap(part: ast.Node) -> ast.Node | None:
        return _aliased(env, select, part) if isinstance(part, ast.ColumnRef) else None

    return replaced(node, swap)


def _aliased(env: Env, select: ast.Select, node: ast.ColumnRef) -> ast.Expr | None:
    if node.table is not None or env.scope.matching(node):
        return None
    for item in select.items:
        if (
            isinstance(item, ast.SelectItem)
            and item.alias is not None
            and node.name.matches(item.alias.text)
        ):
            return item.expr
    return None
