"""Objects within objects: ``user.name`` is the key `name` of what `user` holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

LINES = 200  # that are looked at for names
DEPTH = 8


def names_of(first: dict[str, Any], more: Iterable[bytes | str]) -> list[str]:
    """The keys of the first object, those of the next ones that are called otherwise, and the
    paths to what lies within."""
    found: dict[str, str] = {key.casefold(): key for key in first}
    objects = [first]
    for number, line in enumerate(more):
        if number == LINES:
            break
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            objects.append(value)
    for one in objects:
        for key in (*one, *_paths(one, "", DEPTH)):
            found.setdefault(key.casefold(), key)
    return list(found.values())


def _paths(value: dict[str, Any], before: str, depth: int) -> Iterator[str]:
    for key, inner in value.items():
        if isinstance(inner, dict) and depth:
            for name in inner:
                yield f"{before}{key}.{name}"
            yield from _paths(inner, f"{before}{key}.", depth - 1)


def value(pairs: list[tuple[str, Any]], path: str) -> Any:
    """What stands at the path, the last of several; None if nothing does.  A key may itself have
    points in it."""
    found = None
    for key, inner in pairs:
        if key == path:
            found = inner
        elif path.startswith(f"{key}.") and isinstance(inner, list) and _is_object(inner):
            found = value(inner, path[len(key) + 1 :])
    return found


def _is_object(inner: list[Any]) -> bool:
    return type(inner) is not list


def schema(paths: Sequence[str], types: Sequence[pa.DataType]) -> pa.Schema | None:
    """What Arrow reads where these columns are, as objects within objects; None if one of them
    would be a value and an object, too."""
    fields: dict[str, Any] = {}
    for path, kind in zip(paths, types, strict=True):
        *above, last = path.split(".")
        place = fields
        for key in above:
            place = place.setdefault(key, {})
            if not isinstance(place, dict):
                return None
        if not all((*above, last)) or last in place:
            return None
        place[last] = kind
    return pa.schema(_fields(fields))


def _fields(found: dict[str, Any]) -> list[tuple[str, pa.DataType]]:
    return [
        (key, pa.struct(_fields(kind)) if isinstance(kind, dict) else kind)
        for key, kind in found.items()
    ]


def column(table: pa.Table, path: str) -> pa.Array:
    """What stands at the path in each row."""
    top, *rest = path.split(".")
    array = table.column(top).combine_chunks()
    return pc.struct_field(array, rest) if rest else array


def joined(paths: Iterable[str]) -> set[str]:
    """Keys with points that a part of one of the paths could be as well, in small letters."""
    found: set[str] = set()
    for path in paths:
        keys = path.lower().split(".")
        for first in range(len(keys)):
            found.update(".".join(keys[first:last]) for last in range(first + 2, len(keys) + 1))
    return found
