"""WHERE of SHOW: a condition over the columns of its answer."""

from __future__ import annotations

from dsms.sql import ast
from dsms.sql.binder.context import Context
from dsms.sql.binder.expressions import Env, bind_condition
from dsms.sql.binder.scope import relation_scope
from dsms.sql.binder.select import bind_nested
from dsms.sql.catalog import Catalog
from dsms.sql.expr import Expr
from dsms.sql.types import Field, Kind, Type


def bind_shown(
    where: ast.Expr, what: str, columns: list[tuple[str, str]], catalog: Catalog
) -> Expr:
    """`columns`: names and types (none has parameters) of what SHOW `what` answers."""
    schema = tuple(Field(name, Type(Kind(sql))) for name, sql in columns)
    env = Env(Context(catalog, False, bind_nested), relation_scope(schema, what.lower()), "WHERE")
    return bind_condition(env, where)
