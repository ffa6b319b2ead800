"""Functions in Python, as calls of them are kept: PYTHON('module:name', 'type', arguments)."""

from __future__ import annotations

from collections.abc import Sequence

from dsms.sql import ast
from dsms.sql.codes import error
from dsms.sql.expr import PYTHON, Call, Expr, Lit
from dsms.sql.types import Type
from dsms.sql.types import named as type_named

FORM = "write PYTHON('module:name', 'FLOAT', x), or CREATE FUNCTION f(x FLOAT) RETURNS FLOAT AS ..."


def python_call(node: ast.FuncCall, args: Sequence[Expr]) -> Expr:
    """The call of a function in Python.  Raises DS207, DS304."""
    if node.odd:
        raise error("DS304", "PYTHON is no aggregate", node, f"leave {node.odd} out")
    match args:
        case [Lit(str() as place, _), Lit(str() as result, _), _, *_]:
            return Call(PYTHON, tuple(args[2:]), _type(result, node), (place,))
    raise error("DS207", "PYTHON takes its place, a type and arguments", node, FORM)


def _type(text: str, at: ast.Node) -> Type:
    found = type_named(text)
    if found is None:
        raise error("DS207", f"PYTHON gives a type, and `{text}` is none", at, FORM)
    return found


def kept_call(place: str, result: Type, names: Sequence[str], aggregate: bool) -> ast.FuncCall:
    """A call over parameters."""
    said = (ast.StringLit(place), ast.StringLit(str(result)))
    takes = tuple(ast.ColumnRef(ast.Ident(name)) for name in names)
    if aggregate:
        return ast.FuncCall(ast.Ident("PYTHON_AGGREGATE"), (*takes, *said))
    return ast.FuncCall(ast.Ident("PYTHON"), (*said, *takes))
