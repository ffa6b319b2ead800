"""Type names as written, and the types they mean."""

from __future__ import annotations

from dsms.sql import ast
from dsms.sql.binder.lists import nested
from dsms.sql.binder.structs import IN_STRUCT, made_of
from dsms.sql.codes import error, suggest
from dsms.sql.foreign import instead
from dsms.sql.types import (
    BOOL,
    BYTES,
    DATE,
    FLOAT,
    INT,
    INTERVAL,
    NESTED,
    NULL,
    STRING,
    TIME,
    TIMESTAMP,
    UUID,
    Kind,
    Type,
    decimal,
    list_of,
    struct_of,
)

MAX_DIGITS = 38

TYPE_NAMES: dict[str, Type] = {
    "BOOL": BOOL, "BOOLEAN": BOOL,
    "INT": INT, "INTEGER": INT, "BIGINT": INT, "SMALLINT": INT, "INT64": INT,
    "FLOAT": FLOAT, "DOUBLE": FLOAT, "DOUBLE PRECISION": FLOAT, "REAL": FLOAT, "FLOAT64": FLOAT,
    "STRING": STRING, "TEXT": STRING, "VARCHAR": STRING, "CHAR": STRING,
    "BYTES": BYTES, "BLOB": BYTES, "BINARY": BYTES, "VARBINARY": BYTES,
    "TIMESTAMP": TIMESTAMP,
    "INTERVAL": INTERVAL,
    "DATE": DATE, "TIME": TIME, "UUID": UUID,
}  # a table  # fmt: skip
_LISTED = ("BOOL", "INT", "FLOAT", "DECIMAL(p,s)", "STRING", "BYTES", "TIMESTAMP", "INTERVAL",
           "DATE", "TIME", "UUID", "LIST(T)", "STRUCT(a T)")  # a table  # fmt: skip
LISTS = ("LIST", "ARRAY")
_LENGTH_IGNORED = ("VARCHAR", "CHAR")


def type_of(name: ast.TypeName) -> Type:
    """The type that a name means; DS210 for an unknown one, DS211 for wrong arguments, DS354 for a
    list of lists."""
    if name.name in LISTS:
        return _list(name)
    if name.name == "STRUCT":
        return _struct(name)
    if name.fields:
        message = f"{name.name} takes no fields"
        raise error("DS211", message, name, "a value with fields is a STRUCT(a INT, b STRING)")
    if name.item is not None:
        message = f"{name.name} takes no type in brackets"
        raise error("DS211", message, name, f"a list of {name.item.name} is LIST({name.item.name})")
    if name.name in ("DECIMAL", "NUMERIC"):
        return _decimal(name)
    found = TYPE_NAMES.get(name.name)
    if found is None:
        hint = instead(name.name, "type") or suggest(name.name, _LISTED, "types")
        raise error("DS210", f"unknown type `{name.name}`", name, hint)
    if name.args and name.name not in _LENGTH_IGNORED:
        raise error("DS211", f"{name.name} takes no arguments", name, f"write {name.name}")
    return found


def _list(name: ast.TypeName) -> Type:
    if name.item is None:
        raise error("DS211", f"{name.name} needs the type of its items", name, "write LIST(INT)")
    item = type_of(name.item)
    if item.kind is Kind.STRUCT:
        raise nested(name, "a list can't hold structs")
    if item.kind is Kind.LIST:
        raise nested(name)
    return list_of(item)


def _struct(name: ast.TypeName) -> Type:
    if not name.fields:
        raise error("DS211", "STRUCT needs its fields", name, "write STRUCT(a INT, b STRING)")
    fields = [(field.name.text, type_of(field.type)) for field in name.fields]
    for field, (_, type_) in zip(name.fields, fields, strict=True):
        if type_.kind in NESTED:
            raise nested(field, IN_STRUCT)
    return made_of(fields, [field.name for field in name.fields], name)


def _decimal(name: ast.TypeName) -> Type:
    precision, scale = {0: (MAX_DIGITS, 0), 1: (*name.args, 0), 2: name.args}.get(
        len(name.args), (0, 0)
    )
    if not (1 <= precision <= MAX_DIGITS and 0 <= scale <= precision):
        hint = f"write DECIMAL(p, s) with 1 <= p <= {MAX_DIGITS} and 0 <= s <= p"
        raise error("DS211", f"{name.name} does not exist with these arguments", name, hint)
    return decimal(precision, scale)


def default_type(type_: Type) -> Type:
    """The type of a column of nothing but NULLs."""
    if type_.item is not None:
        return list_of(default_type(type_.item))
    if type_.fields:
        return struct_of((name, default_type(of)) for name, of in type_.fields)
    return STRING if type_ == NULL else type_
