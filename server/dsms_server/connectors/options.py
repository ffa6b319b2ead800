"""What WITH (...) says: checked when a source or sink is made, read when it begins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from dsms.errors import UsageError
from dsms.lengths import interval_of
from dsms_client.protocol import nearest
from dsms_server.connectors import secrets
from dsms_server.connectors.protocol import Option

# a secret by its name, whatever the connector says; and one inside of a URL
SECRET = re.compile(r"password|passwd|secret|token|api_?key|private_?key|authorization", re.I)
INSIDE = re.compile(r"://[^/@\s:]*:[^/@\s]+@|(?:password|secret|token)\s*=", re.I)


def check(known: Iterable[Option], said: Mapping[str, Any], what: str) -> dict[str, Any]:
    """The options with their values and defaults; a secret stands as its place and key.  Raises
    DS448, DS449."""
    by_name = {option.name: option for option in known}
    for name in said:
        if name not in by_name:
            near = nearest(name, list(by_name)) or f"it knows {', '.join(sorted(by_name))}"
            raise UsageError("DS448", f"{what} has no option {name}", hint=near)
    missing = [o.name for o in by_name.values() if o.needed and o.name not in said]
    if missing:
        needed = f"{what} needs the option {', '.join(missing)}"
        hint = "; ".join(f"{name}: {by_name[name].meaning}" for name in missing)
        raise UsageError("DS448", needed, hint=hint)
    return {
        name: _value(option, said[name], what) if name in said else option.default
        for name, option in by_name.items()
    }


def _value(option: Option, value: Any, what: str) -> Any:
    if isinstance(value, tuple):
        return value
    secret = option.kind == "secret" or SECRET.search(option.name)
    if secret or (isinstance(value, str) and INSIDE.search(value)):
        hint = f"{option.name} = env('{secrets.PREFIX}...') or {option.name} = file('...')"
        message = f"{option.name} holds a secret, and would be shown to all who may see {what}"
        raise UsageError("DS449", message, hint=hint)
    found = typed(option, value)
    if option.words and isinstance(found, str):  # words without quotes come in small letters
        found = {word.casefold(): word for word in option.words}.get(found.casefold())
    if found is None:
        wanted = f"one of {', '.join(option.words)}" if option.words else _WANTED[option.kind]
        raise UsageError("DS448", f"{option.name} of {what} is {wanted}, not {value!r}")
    return found


_WANTED = {
    "text": "a text",
    "secret": "a text",
    "whole": "a whole number, at least 0",
    "number": "a number",
    "flag": "TRUE or FALSE",
    "length": "a length of time, such as 5 s",
}


def typed(option: Option, value: Any) -> Any:
    """The value as its kind has it; None: it is none.  What is read from a variable is a text."""
    match option.kind:
        case "flag":
            words = {"true": True, "false": False}
            return value if isinstance(value, bool) else words.get(str(value).lower())
        case "whole" if not isinstance(value, bool):
            whole = re.fullmatch(r"\d+", str(value))
            return int(str(value)) if whole else None
        case "number" if not isinstance(value, bool):
            number = re.fullmatch(r"-?\d+(\.\d*)?(e-?\d+)?", str(value), re.I)
            return float(str(value)) if number else None
        case "length" if isinstance(value, str):
            length = interval_of(value)
            return None if length is None or length < 0 else length / 1e6
        case "length" if not isinstance(value, bool):
            return float(value) if value >= 0 else None
        case "text" | "secret" if not isinstance(value, bool):
            return str(value)
    return None


def resolved(
    known: Iterable[Option], values: Mapping[str, Any], folder: str | None
) -> tuple[dict[str, Any], list[str]]:
    """The options with secrets in their places, and these.  Raises DS448, DS667."""
    by_name, found, hidden = {option.name: option for option in known}, dict(values), list[str]()
    for name, value in values.items():
        if isinstance(value, tuple):
            place, key = value
            text = secrets.read(place, key, folder)
            hidden.append(text)
            found[name] = typed(by_name[name], text)
            if found[name] is None:
                wanted = _WANTED[by_name[name].kind]
                raise UsageError("DS448", f"{name} is {wanted}, and {value[1]} holds another thing")
    return found, hidden
