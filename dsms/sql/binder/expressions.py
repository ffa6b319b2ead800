"""Scalar expressions: names become columns, operators and functions become typed calls with their
casts written out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dsms.sql import ast, functions
from dsms.sql.binder import structs
from dsms.sql.binder.calls import BINARY, COMPARE, argument, call, fold, no_grouping
from dsms.sql.binder.constants import COMPARED, literal
from dsms.sql.binder.context import Context
from dsms.sql.binder.instants import INSTANT, instant_of
from dsms.sql.binder.no_value import no_value
from dsms.sql.binder.now import WORDS, now_call
from dsms.sql.binder.open_values import open_value
from dsms.sql.binder.python import python_call
from dsms.sql.binder.scope import Scope, find
from dsms.sql.binder.stamps import ENDS, is_stamp, misplaced
from dsms.sql.binder.typenames import type_of
from dsms.sql.catalog import Catalog
from dsms.sql.codes import error, suggest
from dsms.sql.expr import PYTHON, Call, Expr, Lit
from dsms.sql.foreign import instead
from dsms.sql.functions import FunctionError
from dsms.sql.looking import look
from dsms.sql.suggest import nearest
from dsms.sql.types import BOOL, NULL, STRING


@dataclass(frozen=True, slots=True)
class Env:
    """Where an expression stands: the names it sees, the clause (for messages), what comes before
    the usual meaning of a node, if anything does (grouping columns and aggregates), and what reads
    the value of each scalar subquery and of each OVER."""

    ctx: Context
    scope: Scope
    place: str
    before: Callable[[Env, ast.Expr], Expr | None] | None = None
    values: Mapping[ast.Expr, Expr] = field(default_factory=dict)

    def plain(self) -> Env:
        """The same without `before`."""
        return replace(self, before=None)


def bind(env: Env, node: ast.Expr) -> Expr:
    """The typed expression.  QueryError DS201-DS208, DS301, DS320, DS321."""
    look()
    if env.before is not None:
        found = env.before(env, node)
        if found is not None:
            return found
    return _bind(env, node)


def _bind(env: Env, node: ast.Expr) -> Expr:
    match node:
        case ast.ColumnRef():
            field = structs.member(env.scope, node)
            return find(env.scope, node).expr if field is None else bind(env, field)
        case ast.ScalarQuery() | ast.Over() if node in env.values:
            return env.values[node]
        case ast.Binary(op=op, left=left, right=right):
            return call(BINARY[op], [bind(env, left), bind(env, right)], node)
        case ast.Comparison(op=op, left=left, right=right):
            return call(COMPARE[op], _alike(env, [left, right]), node)
        case ast.IsDistinct(left=left, right=right):
            fn = "not_distinct_from" if node.negated else "distinct_from"
            return call(fn, _alike(env, [left, right]), node)
        case ast.And() | ast.Or() | ast.Not() | ast.IsNull() | ast.IsBool():
            return _logic(env, node)
        case ast.Between() | ast.InList() | ast.Like():
            return _predicate(env, node)
        case ast.Negate(operand=operand):
            return call("neg", [bind(env, operand)], node)
        case ast.Case():
            return _case(env, node)
        case ast.Parameter():
            return open_value(node, env.place, None)
        case ast.Cast(operand=ast.Parameter() as value):
            return open_value(value, env.place, type_of(node.type))
        case ast.Argument(operand=ast.Parameter() as value):
            return open_value(value, env.place, type_of(node.type))
        case ast.Argument(operand=operand, type=type_):
            return argument(bind(env, operand), type_of(type_), node, f"{node.function} takes")
        case ast.Cast(operand=operand):
            return _explicit_cast(bind(env, operand), node)
        case ast.FuncCall():
            return _function(env, node)
        case (
            ast.InQuery()
            | ast.Quantified()
            | ast.Exists()
            | ast.ScalarQuery()
            | ast.RowExpr()
            | ast.WstreamArg()
            | ast.Over()
        ):
            raise no_value(env.place, node)
        case _:
            return literal(node)


def _alike(env: Env, nodes: Sequence[ast.Expr]) -> list[Expr]:
    """Expressions that are compared: a parameter of LOOKUP has the type of the first other."""
    bound = [None if isinstance(n, ast.Parameter) else bind(env, n) for n in nodes]
    type_ = next((b.type for b in bound if b is not None and b.type != NULL), None)
    return [
        open_value(n, env.place, type_) if b is None else b
        for n, b in zip(nodes, bound, strict=True)
    ]


# ---------------------------------------------------------------- conditions


def condition(expr: Expr, at: ast.Node, place: str) -> Expr:
    """A BOOL (a bare NULL is one); DS209."""
    if expr.type == NULL:
        return Lit(None, BOOL)
    if expr.type != BOOL:
        hint = f"compare it with something, for example x {COMPARED[expr.type.kind]}"
        raise error("DS209", f"{place} expects a condition, and this is {expr.type}", at, hint)
    return expr


def bind_condition(env: Env, node: ast.Expr) -> Expr:
    """A BOOL expression for WHERE, ON, HAVING, FILTER."""
    return condition(bind(env, node), node, env.place)


def _logic(env: Env, node: ast.Expr) -> Expr:
    match node:
        case ast.And(operands=operands):
            return _chain("and", [condition(bind(env, o), o, "AND") for o in operands])
        case ast.Or(operands=operands):
            return _chain("or", [condition(bind(env, o), o, "OR") for o in operands])
        case ast.Not(operand=operand):
            return negation(condition(bind(env, operand), operand, "NOT"))
        case ast.IsNull(operand=operand, negated=negated):
            return call("is_not_null" if negated else "is_null", [bind(env, operand)], node)
        case ast.IsBool(operand=operand, value=None, negated=negated):
            tested = condition(bind(env, operand), operand, "IS UNKNOWN")
            return call("is_not_null" if negated else "is_null", [tested], node)
        case ast.IsBool(operand=operand, value=value, negated=negated):
            tested = condition(bind(env, operand), operand, "IS TRUE")
            found = call(
                "coalesce", [tested if value else negation(tested), Lit(False, BOOL)], node
            )
            return negation(found) if negated else found
    raise AssertionError(node)


def _chain(fn: str, parts: Sequence[Expr]) -> Expr:
    """AND and OR are flat: a chain inside of a chain is part of it."""
    flat = [a for p in parts for a in (p.args if isinstance(p, Call) and p.fn == fn else (p,))]
    return Call(fn, tuple(flat), BOOL)


def negation(expr: Expr) -> Expr:
    """NOT."""
    return Call("not", (expr,), BOOL)


def _predicate(env: Env, node: ast.Expr) -> Expr:
    match node:
        case ast.Between(operand=operand, low=low, high=high):
            x, least, most = _alike(env, [operand, low, high])
            found = _chain("and", [call("ge", [x, least], node), call("le", [x, most], node)])
        case ast.InList():
            found = _in_list(env, node)
        case ast.Like():
            found = _like(env, node)
        case _:
            raise AssertionError(node)
    return negation(found) if node.negated else found


def _like(env: Env, node: ast.Like) -> Expr:
    """``x ILIKE p`` is ``LOWER(x) LIKE LOWER(p)``."""
    sides = [bind(env, node.operand), bind(env, node.pattern)]
    params = () if node.escape is None else (_escape(node.escape, node.any_case),)
    found = call("like", sides, node, params)
    if not node.any_case:
        return found
    return call("like", [call("lower", [side], node) for side in sides], node, params)


def _escape(node: ast.Expr, any_case: bool) -> str:
    if not isinstance(node, ast.StringLit):
        hint = "write ESCAPE '\\'"
        raise error("DS207", "ESCAPE takes a constant of one character", node, hint)
    if any_case and (node.value.lower() != node.value or node.value.upper() != node.value):
        message = "ILIKE makes letters alike, so its ESCAPE can't be one"
        raise error("DS207", message, node, "write ESCAPE '\\'")
    return node.value


def _in_list(env: Env, node: ast.InList) -> Expr:
    if not isinstance(node.operand, ast.RowExpr):
        rows = [i for i in node.items if isinstance(i, ast.RowExpr)]
        if rows:
            raise error(
                "DS217",
                "IN compares one value with a row of several",
                rows[0],
                "write one value per item",
            )
        return call("in", _alike(env, [node.operand, *node.items]), node)
    left = [bind(env, x) for x in node.operand.items]
    options = [_row_equals(env, left, item) for item in node.items]
    return options[0] if len(options) == 1 else _chain("or", options)


def _row_equals(env: Env, left: list[Expr], item: ast.Expr) -> Expr:
    if not isinstance(item, ast.RowExpr) or len(item.items) != len(left):
        raise error(
            "DS217",
            f"IN expects rows of {len(left)} values here",
            item,
            "write (a, b) IN ((1, 2), (3, 4))",
        )
    return _chain(
        "and", [call("eq", [a, bind(env, b)], b) for a, b in zip(left, item.items, strict=True)]
    )


def _case(env: Env, node: ast.Case) -> Expr:
    operand = None if node.operand is None else bind(env, node.operand)
    args: list[Expr] = []
    for when in node.whens:
        test = bind(env, when.condition)
        if operand is None:
            args.append(condition(test, when.condition, "WHEN"))
        else:
            args.append(call("eq", [operand, test], when.condition))
        args.append(bind(env, when.result))
    args.append(Lit(None, NULL) if node.otherwise is None else bind(env, node.otherwise))
    return call("case", args, node)


# ---------------------------------------------------------------- functions


def _explicit_cast(operand: Expr, node: ast.Cast) -> Expr:
    target = type_of(node.type)
    try:
        return fold(functions.cast(operand, target))
    except FunctionError as failure:
        raise error(
            "DS208", failure.message, node, "cast by way of STRING, or use a function that converts"
        ) from None


def _function(env: Env, node: ast.FuncCall) -> Expr:
    name = node.name.text
    if functions.is_aggregate(name) and not functions.is_scalar(name):
        raise _stray_aggregate(env, node)
    if name.casefold() == "extract":
        return _extract(env, node)
    if name.casefold() == "current_user":
        return _current_user(env, node)
    if is_stamp(node):
        raise misplaced(node)
    if name.casefold() in WORDS:
        return now_call(env.ctx, node)
    if name.casefold() == INSTANT:
        _only_plain(node)
        return bind(env, instant_of(env.scope, node))
    if name.casefold() == PYTHON:
        return python_call(node, [bind(env, a) for a in node.args])
    if name.casefold() in (structs.NAMED, structs.EXTRACT):
        return _of_structs(env, node)
    no_grouping(node)
    if not functions.is_scalar(name) or functions.function(name).name in functions.SYNTAX_ONLY:
        raise _unknown_function(node, env.ctx.catalog)
    _only_plain(node)
    if node.to is not None:
        return _typed(env, node, node.to)
    return call(name, [bind(env, a) for a in node.args], node)


def _of_structs(env: Env, node: ast.FuncCall) -> Expr:
    _only_plain(node)
    if node.name.text.casefold() == structs.NAMED:
        return structs.value(lambda part: bind(env, part), node)
    if len(node.args) != 2:
        hint = "write s.a, or STRUCT_EXTRACT(s, 'a')"
        raise error("DS207", "STRUCT_EXTRACT takes a struct and the name of a field", node, hint)
    return structs.extracted(bind(env, node.args[0]), node.args[1], node)


def _typed(env: Env, node: ast.FuncCall, to: ast.TypeName) -> Expr:
    """``TRY_CAST(x AS type)``, or ``JSON_VALUE(j, path AS type)``."""
    name, target = node.name.text, type_of(to)
    if name.casefold() == "json_value":
        operand = call(name, [bind(env, a) for a in node.args], node)
    elif len(node.args) == 1:
        operand = bind(env, node.args[0])
    else:
        raise error("DS207", "TRY_CAST takes one value", node, "write TRY_CAST(x AS INT)")
    try:
        return functions.cast(operand, target, "try_cast")
    except FunctionError as failure:
        hint = "cast by way of STRING, or use a function that converts"
        raise error("DS208", failure.message, node, hint) from None


def _only_plain(node: ast.FuncCall) -> None:
    if what := node.odd:
        message = f"{node.name.text.upper()} is no aggregate, so {what} has no meaning in it"
        raise error("DS304", message, node, f"leave {what} out")


def _extract(env: Env, node: ast.FuncCall) -> Expr:
    """``EXTRACT(HOUR FROM t)`` is hour(t)."""
    _only_plain(node)
    field = node.args[0] if node.args else None
    if not isinstance(field, ast.StringLit) or len(node.args) < 2:
        raise error(
            "DS207", "EXTRACT expects a field and a value", node, "write EXTRACT(HOUR FROM t)"
        )
    name = field.value.casefold()
    if name not in functions.EXTRACT_FIELDS:
        hint = suggest(name, functions.EXTRACT_FIELDS, "fields") or ", ".join(
            functions.EXTRACT_FIELDS
        )
        raise error("DS206", f"EXTRACT knows no field `{field.value}`", field, hint)
    return call(name, [bind(env, a) for a in node.args[1:]], node)


def _current_user(env: Env, node: ast.FuncCall) -> Expr:
    """A constant: of a persistent query, whoever registers it."""
    _only_plain(node)
    if node.args:
        raise error("DS207", "CURRENT_USER takes no arguments", node, "write CURRENT_USER()")
    return Lit(env.ctx.catalog.user, STRING)


def _unknown_function(node: ast.FuncCall, catalog: Catalog) -> Exception:
    name = node.name.text
    known = [
        n.upper()
        for n in (
            *functions.scalar_names(operators=False),
            *functions.aggregate_names(),
            "current_user",
            *ENDS,
            INSTANT,
            "now",
            "count_if",
        )
    ]
    known += [own.name for own in catalog.functions.values()]
    hint = instead(name, "function", "bare")
    if hint is None:
        near = nearest(name, known)
        hint = (
            f"did you mean {near}?" if near else "SHOW FUNCTIONS lists the functions that there are"
        )
    return error("DS206", f"unknown function `{name}`", node.name, hint)


def _stray_aggregate(env: Env, node: ast.FuncCall) -> Exception:
    name = node.name.text.upper()
    if env.place.startswith("an aggregate"):
        hint = (
            "compute the inner one in a subquery: SELECT MAX(s) FROM (SELECT SUM(x) AS s FROM "
            "... GROUP BY k)"
        )
        return error("DS302", f"aggregate {name} stands inside of an aggregate", node, hint)
    hint = "filter groups with HAVING" if env.place == "WHERE" else "compute it in a subquery first"
    return error("DS301", f"aggregate {name} can't stand in {env.place}", node, hint)
