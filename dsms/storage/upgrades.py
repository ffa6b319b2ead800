"""How fields of earlier versions become those of the next one.

UPGRADES[tag, version] is given the fields of an object of that version, by name, and returns them
as version + 1 has them.  (Fields that come to have a default need none.)  Of a value, an object
that never changes, it may return another object instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _words(fields: dict[Any, Any]) -> dict[str, Any]:
    """Layout 4 had them as a pair."""
    return {"coding": fields[0], "columns": fields[1]} if 0 in fields else fields


def _without(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Fields that nothing read have gone."""
    return lambda fields: {name: value for name, value in fields.items() if name not in names}


UPGRADES: dict[tuple[str, int], Callable[[dict[str, Any]], Any]] = {
    ("archiving.archiving", 1): _without("landed_files"),
    ("shared.join_feed", 1): _without("last_born"),
    ("synopsis.coded.words", 1): _words,
}
