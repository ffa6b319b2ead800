"""Structs: their types, made of values, and what `s.field` means."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from dsms import structs
from dsms.sql import ast
from dsms.sql.binder.lists import nested
from dsms.sql.binder.scope import Scope, find
from dsms.sql.codes import error, suggest
from dsms.sql.expr import Call, Expr, Lit
from dsms.sql.types import NESTED, Kind, Type, struct_of

NAMED, EXTRACT = "named_struct", "struct_extract"  # calls that signs stand for, too
IN_STRUCT = "a STRUCT can't hold lists or structs"
Bind = Callable[[ast.Expr], Expr]


def made_of(fields: Sequence[tuple[str, Type]], places: Sequence[ast.Node], at: ast.Node) -> Type:
    """The STRUCT of these fields; DS385 for a name that is there twice, or too many."""
    seen: set[str] = set()
    for (name, _), place in zip(fields, places, strict=True):
        if name.casefold() in seen:
            raise error("DS385", f"field `{name}` is there twice", place, "name each field once")
        seen.add(name.casefold())
    if len(fields) > structs.MOST:
        raise error("DS385", f"a STRUCT has at most {structs.MOST} fields", at, "use fewer")
    return struct_of(fields)


def value(bind: Bind, node: ast.FuncCall) -> Expr:
    """``{'a': x, ...}``, or NAMED_STRUCT('a', x, ...)."""
    names = node.args[::2]
    if not node.args or len(node.args) % 2:
        hint = "write {'a': 1}, or NAMED_STRUCT('a', 1)"
        raise error("DS207", "NAMED_STRUCT takes names and values by turns", node, hint)
    values = [bind(part) for part in node.args[1::2]]
    for part, found in zip(node.args[1::2], values, strict=True):
        if found.type.kind in NESTED:
            raise nested(part, IN_STRUCT)
    fields = list(zip(map(_name, names), (v.type for v in values), strict=True))
    type_ = made_of(fields, names, node)
    return made(values, type_) or Call(NAMED, tuple(values), type_)


def _name(node: ast.Expr) -> str:
    if isinstance(node, ast.StringLit) and "\0" not in node.value:
        return node.value
    raise error("DS207", "the name of a field is a text", node, "write {'a': 1}")


def made(values: Sequence[Expr], type_: Type) -> Lit | None:
    """The struct of constants as one; None if one of them is none."""
    constants = [v.value for v in values if isinstance(v, Lit)]
    if len(constants) < len(values):
        return None
    types = [t.arrow for _, t in type_.fields]
    columns = [pa.array([v], t) for v, t in zip(constants, types, strict=True)]
    return Lit(structs.made(columns, type_.spelled_fields)[0].as_py(), type_)


def read(text: str, type_: Type) -> Lit | None:
    """A text as the struct that it is, if it is one."""
    found, bad = structs.canonical(pa.array([text], pa.string()), type_.spelled_fields)
    return None if bad.any() else Lit(found[0].as_py(), type_)


def extracted(of: Expr, name: ast.Expr, at: ast.Node) -> Expr:
    """``(s).name``, or STRUCT_EXTRACT(s, 'name'); DS384 for what has no such field."""
    if not isinstance(name, ast.StringLit):
        raise error("DS207", "the name of a field is a text", name, "write STRUCT_EXTRACT(s, 'a')")
    if of.type.kind is not Kind.STRUCT:
        message = f"a value of {of.type} has no field `{name.value}`"
        raise error(
            "DS384", message, at, "a STRUCT(a INT) has fields; JSON_VALUE(j, '$.a') reads JSON"
        )
    names = [field for field, _ in of.type.fields]
    known = [n for n in names if n == name.value] or [
        n for n in names if n.casefold() == name.value.casefold()
    ]
    if not known:
        hint = suggest(name.value, names, "fields")
        raise error("DS384", f"{of.type} has no field `{name.value}`", at, hint)
    place = names.index(known[0])
    return Call(EXTRACT, (of,), of.type.fields[place][1], (known[0],))


def member(scope: Scope, ref: ast.ColumnRef) -> ast.FuncCall | None:
    """``s.a`` where s is no name of FROM but a STRUCT column: the call that it is."""
    if ref.table is None:
        return None
    level: Scope | None = scope
    while level is not None:
        if level.knows(ref.table):
            return None
        column = ast.ColumnRef(ref.table, pos=ref.pos)
        found = level.matching(column)
        if len(found) == 1 and found[0].type.kind is Kind.STRUCT:
            field = ast.StringLit(ref.name.text, pos=ref.name.pos)
            name = ast.Ident(EXTRACT.upper(), pos=ref.pos)
            return ast.FuncCall(name, (column, field), pos=ref.pos)
        level = level.parent
    return None


def column_name(scope: Scope, node: ast.Expr) -> str | None:
    """What a column is called that is a column or a field; None: it is something else."""
    match node:
        case ast.ColumnRef():
            field = member(scope, node)
            return find(scope, node).name if field is None else node.name.text
        case ast.FuncCall(ast.Ident(text, False), (_, ast.StringLit(field))):
            return field if text.casefold() == EXTRACT else None
    return None
