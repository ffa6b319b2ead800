"""Objects within objects: ``user.name`` is the key `name` of what `user` holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

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
