"""Structs as texts: how a STRUCT(name T, ...) is kept, and the way from there to Arrow's structs
and back.

A struct is kept as one text: a JSON object with all its fields, in the order of the type, each
value written as an item of a list is (`dsms.lists`), NULL as null; so two structs of a type are
equal exactly where their texts are.  A text from elsewhere may have blanks, its keys in any order,
and lack some, which are NULL; a key that the type does not have, or one twice, makes it no struct.

Types are given by their SQL names, ``STRUCT(a INT, "b c" STRING)``."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.lists import arrow_item, item_name, item_values, spelled_items
from dsms.lists.apart import BLANK, ITEM, Items, members
from dsms.lists.values import inexact, without

Fields = Sequence[tuple[str, str]]  # names and types
MOST = 256  # fields
_TEXT = pa.string()
_NAME = re.compile(r"STRUCT\s*\((.*)\)", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(
    r"""\s*(?:"((?:[^"]|"")*)"|([^\W\d]\w*))\s+([A-Z]+(?:\s*\([0-9, ]*\))?)\s*(,|$)""",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TYPES = frozenset(("TIMESTAMP", "DOUBLE"))  # names that open a type


def fields_of(sql: str) -> tuple[tuple[str, str], ...] | None:
    """The fields of ``STRUCT(a INT, b STRING)``; None: it is no type of structs."""
    found = _NAME.fullmatch(sql.strip())
    if found is None:
        return None
    fields, at = [], 0
    while at < len(found[1]):
        part = _FIELD.match(found[1], at)
        if part is None:
            return None
        name = part[2] if part[1] is None else part[1].replace('""', '"')
        fields.append((name, part[3].upper()))
        at = part.end()
    return tuple(fields)


def spelled_name(name: str) -> str:
    """The name of a field as a type has it: in quotes where it must be."""
    if _PLAIN.fullmatch(name) and name.upper() not in _TYPES:
        return name
    return '"' + name.replace('"', '""') + '"'


def spelled(fields: Fields) -> str:
    """The type of these fields."""
    return f"STRUCT({', '.join(f'{spelled_name(n)} {sql}' for n, sql in fields)})"


def keys_of(names: Sequence[str]) -> list[str]:
    """Names as JSON has them."""
    return [json.dumps(name, ensure_ascii=False) for name in names]


def example(fields: Fields) -> str:
    """What such a struct looks like, for messages."""
    return f"{{{keys_of([fields[0][0]])[0]}: ...}}"


# ---------------------------------------------------------------- texts -> values


def values(texts: pa.Array, fields: Fields) -> list[pa.Array]:
    """A column for each field, in its physical type, of structs as they are kept."""
    return [_spread(values_, texts) for values_, _ in _apart(texts, fields)]


def value(texts: pa.Array, fields: Fields, at: int) -> pa.Array:
    """The column of one field."""
    there = members(texts, keys_of([name for name, _ in fields]))
    found, _ = item_values(_field(there, at, len(fields)), fields[at][1])
    return _spread(found, texts)


def _apart(texts: pa.Array, fields: Fields) -> list[tuple[pa.Array, np.ndarray]]:
    """(values, bool: which are none) of each field, of the structs that are not NULL."""
    there, n = members(texts, keys_of([name for name, _ in fields])), len(fields)
    found = []
    for at, (_, sql) in enumerate(fields):
        part = _field(there, at, n)
        column, bad = item_values(part, sql)
        if sql == "FLOAT":
            bad = bad | inexact(part.texts, column)
        found.append((column, bad))
    return found


def _field(there: Items, at: int, n: int) -> Items:
    places = np.arange(at, len(there.quoted), n)
    return Items(places, there.texts.take(pa.array(places)), there.quoted[places])


def _spread(column: pa.Array, like: pa.Array) -> pa.Array:
    """Values of what is not NULL in `like`, beside NULLs for the rest."""
    if not like.null_count:
        return column
    here = like.is_valid().to_numpy(zero_copy_only=False)
    return column.take(pa.array(np.cumsum(here) - 1, mask=~here))


def at_edge(texts: pa.Array, fields: Fields) -> pa.StructArray:
    """Structs as they are kept, as others see them: instants, lengths, dates and times have types
    of their own."""
    columns = []
    for column, (_, sql) in zip(values(texts, fields), fields, strict=True):
        to = arrow_item(sql, edge=True)
        column = column.cast(pa.timestamp("us")) if sql == "DATE" else column
        columns.append(column if column.type == to else column.cast(to))
    kinds = [pa.field(name, column.type) for (name, _), column in zip(fields, columns, strict=True)]
    mask = texts.is_null() if texts.null_count else None
    return pa.StructArray.from_arrays(columns, fields=kinds, mask=mask)


# ---------------------------------------------------------------- values -> texts


def made(columns: Sequence[pa.Array], fields: Fields, valid: pa.Array | None = None) -> pa.Array:
    """Structs of columns of values (in their physical types); NULL where they are not `valid`."""
    spelled_ = [spelled_items(c, sql) for c, (_, sql) in zip(columns, fields, strict=True)]
    found = joined(spelled_, [name for name, _ in fields])
    return found if valid is None else pc.if_else(valid, found, pa.nulls(len(found), _TEXT))


def joined(spelled_: Sequence[pa.Array], names: Sequence[str]) -> pa.Array:
    """Structs of values that are spelled already."""
    parts: list[Any] = []
    for key, column in zip(keys_of(names), spelled_, strict=True):
        parts += [f"{', ' if parts else '{'}{key}: ", column]
    return pc.binary_join_element_wise(*parts, "}", "")


def from_edge(array: pa.StructArray) -> pa.Array:
    """Arrow's structs of whatever values an answer has, as texts."""
    columns, fields = [], []
    for column, field in zip(array.flatten(), array.type, strict=True):
        sql = item_name(field.type)
        fields.append((field.name, sql))
        column = column.cast(pa.timestamp("us")) if sql == "DATE" else column
        columns.append(column.cast(arrow_item(sql)))
    return made(columns, fields, array.is_valid() if array.null_count else None)


# ---------------------------------------------------------------- texts of others


def canonical(texts: pa.Array, fields: Fields) -> tuple[pa.Array, np.ndarray]:
    """JSON of structs in whatever way -> (the one way; NULL where it is none of that type, bool[n]
    where that is so)."""
    names = [name for name, _ in fields]
    formed = pc.match_substring_regex(texts, _form(names)).fill_null(True)
    odd = ~formed.to_numpy(zero_copy_only=False)
    wrong = np.zeros(len(texts), np.bool_)
    if odd.any():
        anew = [_ordered(t, names) for t in texts.filter(pa.array(odd)).to_pylist()]
        texts = pc.replace_with_mask(texts, pa.array(odd), pa.array(anew, _TEXT))
        wrong[odd] = [t is None for t in anew]
    columns = []
    here = np.flatnonzero(texts.is_valid().to_numpy(zero_copy_only=False))
    for column, bad in _apart(texts, fields):
        wrong[here[bad]] = True
        columns.append(_spread(column, texts))
    found = made(columns, fields, texts.is_valid() if texts.null_count else None)
    return (without(found, wrong) if wrong.any() else found), wrong


def _form(names: Sequence[str]) -> str:
    """What objects look like that have all keys in their order."""
    pairs = [f"{re.escape(key)}{BLANK}:{BLANK}{ITEM}{BLANK}" for key in keys_of(names)]
    return rf"^{BLANK}\{{{BLANK}{f',{BLANK}'.join(pairs)}\}}{BLANK}$"


class _Bare(str):
    """A number, as it stands there."""


def _ordered(text: str, names: Sequence[str]) -> str | None:
    """The object with all keys in their order; None if it is no object of such plain values."""
    try:
        pairs = json.loads(
            text,
            object_pairs_hook=list,
            parse_int=_Bare,
            parse_float=_Bare,
            parse_constant=_refused,
        )
    except (ValueError, RecursionError):
        return None
    if not text.lstrip(" \t\n\r").startswith("{"):
        return None
    found = dict(pairs)
    if len(found) != len(pairs) or not found.keys() <= set(names):
        return None
    written = [_written(found.get(name)) for name in names]
    if None in written:
        return None
    return "{" + ", ".join(f"{k}: {w}" for k, w in zip(keys_of(names), written, strict=True)) + "}"


def _refused(text: str) -> Any:
    raise ValueError(text)


def _written(value_: Any) -> str | None:
    """A plain value as it stood there; None for a list or an object."""
    if isinstance(value_, _Bare):
        return str(value_)
    if isinstance(value_, list):
        return None
    try:
        text = json.dumps(value_, ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError:  # half a character
        return None
    return text
