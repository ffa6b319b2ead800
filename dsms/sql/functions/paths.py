"""Paths into JSON: ``$.a."b c"[0]``, those of SQL:2016 without wildcards and filters."""

from __future__ import annotations

import json
import re

LONGEST = 1000  # characters of a path
_STEP = re.compile(
    r"""\.(?P<name>[^\W\d]\w*)|\.(?P<quoted>"(?:[^"\\]|\\.)*")|\[(?P<place>\d{1,9})\]"""
    r"""|\['(?P<key>[^']*)'\]"""
)
Path = tuple[str | int, ...]


def path_of(text: str) -> Path | None:
    """The keys and the places (from 0) that lead to a value; None if it is no path."""
    if not text.startswith("$") or len(text) > LONGEST:
        return None
    at, steps = 1, list[str | int]()
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            return None
        at = found.end()
        if found["place"] is not None:
            steps.append(int(found["place"]))
        elif found["quoted"] is not None:
            try:
                steps.append(json.loads(found["quoted"]))
            except ValueError:
                return None
        else:
            steps.append(found["name"] or found["key"] or "")
    return tuple(steps)


def path_problem(text: str) -> str | None:
    """What is wrong with the text of a path."""
    if path_of(text) is not None:
        return None
    shown = text if len(text) <= 60 else f"{text[:60]}..."
    return (
        f"'{shown}' is no path: write '$.a.b[0]', or '$.\"a b\"' for a name with other characters"
    )


def key_path(key: str) -> str:
    """The path that `->>` means by its right side: a path, or the name of a key."""
    return key if key.startswith("$") else f"$.{json.dumps(key, ensure_ascii=False)}"
