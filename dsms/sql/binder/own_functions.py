"""CREATE FUNCTION and CREATE AGGREGATE: expressions over parameters, checked with their types."""

from __future__ import annotations

from dataclasses import replace

from dsms.sql import ast, functions
from dsms.sql.binder.aggregates import Grouping, has_aggregate, is_aggregate_call
from dsms.sql.binder.calls import argument
from dsms.sql.binder.context import Context
from dsms.sql.binder.expansion import (
    BUILT_IN,
    LARGEST,
    Expansion,
    callable_in,
    is_own,
    settled,
)
from dsms.sql.binder.expressions import Env, bind
from dsms.sql.binder.instants import INSTANT
from dsms.sql.binder.now import WORDS
from dsms.sql.binder.python import kept_call
from dsms.sql.binder.scope import relation_scope
from dsms.sql.binder.select import bind_nested
from dsms.sql.binder.stamps import ENDS
from dsms.sql.binder.typenames import type_of
from dsms.sql.catalog import Catalog, FunctionDef
from dsms.sql.codes import error, suggest
from dsms.sql.expr import PYTHON, Expr
from dsms.sql.parser import check_depth
from dsms.sql.printer import to_sql
from dsms.sql.rewriting import replaced
from dsms.sql.types import FLOAT, INT, NULL, STRING, Field, Schema, Type
from dsms.sql.unbind import type_name

OTHERS = (
    "extract",
    "current_user",
    *ENDS,
    INSTANT,
    PYTHON,
    "grouping",
    "rollup",
    "cube",
    *BUILT_IN,
    *WORDS,
)  # functions that are none of the tables
SIMPLE = "write an expression over its parameters, constants and functions"


def bind_create_function(
    statement: ast.CreateFunction, catalog: Catalog, replaying: bool = False
) -> FunctionDef:
    """The function that the statement makes.  `replaying`: it was made before, maybe when nothing
    built in had its name.

    Raises QueryError DS240 to DS242, DS201, DS212, and what its text raises."""
    if not replaying:
        _check_name(statement)
    schema = _parameters(statement)
    if isinstance(statement.body, ast.PythonSource):
        return _python(statement, statement.body, schema)
    _check_parts(statement, schema)
    aggregate = statement.kind is ast.FunctionKind.AGGREGATE
    body: ast.Expr = Expansion(callable_in(catalog)).of(statement.body)
    check_depth(replace(statement, body=body))
    _check_aggregates(statement, body)
    bound = _bound(statement, body, schema, catalog)
    type_, body = _result(statement, bound, settled(body))
    text = to_sql(body if statement.returns is None else _cast(body, bound.type, type_))
    _check_size(statement, body)
    made = replace(statement, body=body, if_not_exists=False, or_replace=False)
    takes = tuple((f.name, f.type) for f in schema)
    return FunctionDef(statement.name.text, aggregate, takes, type_, text, to_sql(made))


def _python(statement: ast.CreateFunction, found: ast.PythonSource, schema: Schema) -> FunctionDef:
    """One in Python: whether it is there is no concern here."""
    name, aggregate = statement.name.text, statement.kind is ast.FunctionKind.AGGREGATE
    if statement.returns is None or not schema:
        message = f"{name} is in Python, so it needs {'RETURNS' if schema else 'a parameter'}"
        raise error("DS240", message, found, f"write {name}(x FLOAT) RETURNS FLOAT AS PYTHON ...")
    type_ = type_of(statement.returns)
    takes = tuple((f.name, f.type) for f in schema)
    call = kept_call(found.place, type_, [f.name for f in schema], aggregate)
    made = replace(statement, if_not_exists=False, or_replace=False)
    known = found.fingerprint or ""
    return FunctionDef(
        name, aggregate, takes, type_, to_sql(call), to_sql(made), found.place, known
    )


def _check_name(statement: ast.CreateFunction) -> None:
    name = statement.name.text
    if functions.is_scalar(name) or functions.is_aggregate(name) or name.casefold() in OTHERS:
        message = f"{name.upper()} is a function that is built in"
        raise error("DS241", message, statement.name, "choose another name")


def _parameters(statement: ast.CreateFunction) -> Schema:
    found: list[Field] = []
    for one in statement.parameters:
        if any(f.name.casefold() == one.name.text.casefold() for f in found):
            message = f"parameter `{one.name.text}` is declared twice"
            raise error("DS212", message, one.name, "rename one of them")
        found.append(Field(one.name.text, type_of(one.type)))
    return tuple(found)


def _check_parts(statement: ast.CreateFunction, schema: Schema) -> None:
    """What stands in its text may stand there.  Raises DS201, DS240, DS242."""
    itself = {statement.name.text.casefold(): None}
    names = [f.name for f in schema]
    for part in ast.walk(statement.body):
        match part:
            case ast.FuncCall() if is_own(part, itself):  # type: ignore[arg-type]
                message = f"{statement.name.text} stands in its own text"
                raise error("DS242", message, part, "a function is made of others alone")
            case ast.ColumnRef(name, table):
                if table is not None or not any(name.matches(n) for n in names):
                    hint = suggest(name.text, names, "parameters") or "it has none"
                    message = f"{statement.name.text} has no parameter `{to_sql(part)}`"
                    raise error("DS201", message, part, hint)
            case ast.ScalarQuery() | ast.InQuery() | ast.Quantified() | ast.Exists():
                raise error("DS240", "a query can't stand in the text of a function", part, SIMPLE)
            case ast.WstreamArg() | ast.Parameter():
                what = to_sql(part)
                message = f"{what} can't stand in the text of a function"
                raise error("DS240", message, part, SIMPLE)


def _check_aggregates(statement: ast.CreateFunction, body: ast.Expr) -> None:
    """Aggregates stand in the text of an aggregate alone, and in each.  Raises DS240."""
    name = statement.name.text
    if has_aggregate(body) == (statement.kind is ast.FunctionKind.AGGREGATE):
        return
    if statement.kind is ast.FunctionKind.FUNCTION:
        message = f"{name} is a function of values, and there is an aggregate in its text"
        raise error("DS240", message, statement.body, f"write CREATE AGGREGATE {name}")
    message = f"{name} is an aggregate, and there is none in its text"
    raise error("DS240", message, statement.body, f"write CREATE FUNCTION {name}")


def _bound(statement: ast.CreateFunction, body: ast.Expr, schema: Schema, catalog: Catalog) -> Expr:
    """The text with types: of columns that are its parameters."""
    grouping = Grouping([], [])

    def before(env: Env, node: ast.Expr) -> Expr | None:
        return grouping.before(env, node) if is_aggregate_call(node) else None

    ctx = Context(catalog, False, bind_nested, now=True)
    env = Env(ctx, relation_scope(schema, None), f"CREATE {statement.kind}", before)
    return bind(env, _with_constants(body, schema))


def _with_constants(body: ast.Expr, schema: Schema) -> ast.Expr:
    """The text with some constant for each parameter that stands where an aggregate takes nothing
    else: a share, a number, a word."""
    some: dict[Type, ast.Expr] = {
        FLOAT: ast.FloatLit(0.5),
        INT: ast.IntLit(8),
        STRING: ast.StringLit("linear"),
    }

    def constant(node: ast.Expr) -> ast.Expr:
        if isinstance(node, ast.Argument):
            return replace(node, operand=constant(node.operand))
        if not isinstance(node, ast.ColumnRef):
            return node
        type_ = next(f.type for f in schema if node.name.matches(f.name))
        return replace(some.get(type_, node), pos=node.pos)

    def put(node: ast.Node) -> ast.Node | None:
        if not is_aggregate_call(node):
            return None
        assert isinstance(node, ast.FuncCall)
        wanted = len(functions.aggregate_params(node.name.text))
        first = max(len(node.args) - wanted, min(len(node.args), 1))
        return replace(node, args=(*node.args[:first], *map(constant, node.args[first:])))

    made: ast.Expr = replaced(body, put)
    return made


def _result(statement: ast.CreateFunction, bound: Expr, body: ast.Expr) -> tuple[Type, ast.Expr]:
    if statement.returns is None:
        if bound.type == NULL:
            message = f"nothing tells the type of {statement.name.text}"
            raise error("DS240", message, statement.body, "say it: RETURNS FLOAT")
        return bound.type, body
    type_ = type_of(statement.returns)
    whole = ast.Argument(statement.body, statement.returns, "", ast.Given(), pos=statement.body.pos)
    argument(bound, type_, whole, f"{statement.name.text} returns")
    return type_, body


def _cast(body: ast.Expr, from_: Type, to: Type) -> ast.Expr:
    return body if from_ == to else ast.Cast(body, type_name(to))


def _check_size(statement: ast.CreateFunction, body: ast.Expr) -> None:
    if sum(1 for _ in ast.walk(body)) > LARGEST:
        message = f"{statement.name.text} stands for more than {LARGEST} nodes"
        raise error("DS245", message, statement.name, "make it of smaller ones")
