"""JSON (RFC 8259), read a character at a time; and the values at paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dsms.sql.expr import Call
from tests.oracle.functions import Failed
from tests.oracle.lists import packed
from tests.oracle.values import Value

DEEPEST, LONGEST = 100, 1 << 20
BLANKS = " \t\n\r"
ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
MISSING = object()


class Wrong(ValueError):
    """This is no JSON."""


class Number(str):
    """Its digits as they stand there."""


class Items(list[Any]):
    """`text`: as they stand there."""

    text = ""


class Members(dict[str, Any]):
    """`text`: as they stand there."""

    text = ""


class Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def whole(self) -> Any:
        found = self.value(0)
        self.blanks()
        if self.at < len(self.text):
            raise Wrong
        return found

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def blanks(self) -> None:
        while self.peek() and self.peek() in BLANKS:
            self.at += 1

    def take(self, word: str) -> None:
        if not self.text.startswith(word, self.at):
            raise Wrong
        self.at += len(word)

    def value(self, depth: int) -> Any:
        self.blanks()
        for word, meant in (("true", True), ("false", False), ("null", None)):
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return meant
        match self.peek():
            case "{":
                return self.items("}", depth + 1, self.member, Members())
            case "[":
                return self.items("]", depth + 1, self.item, Items())
            case '"':
                return self.string()
        return self.number()

    def items(self, end: str, depth: int, one: Callable[..., None], into: Any) -> Any:
        if depth > DEEPEST:
            raise Wrong
        start = self.at
        self.at += 1
        self.blanks()
        while self.peek() != end:
            one(depth, into)
            self.blanks()
            if self.peek() != end:
                self.take(",")
                self.blanks()
                if self.peek() == end:
                    raise Wrong
        self.at += 1
        into.text = self.text[start : self.at]
        return into

    def item(self, depth: int, into: list[Any]) -> None:
        into.append(self.value(depth))

    def member(self, depth: int, into: dict[str, Any]) -> None:
        self.blanks()
        if self.peek() != '"':
            raise Wrong
        key = self.string()
        self.blanks()
        self.take(":")
        into[key] = self.value(depth)

    def string(self) -> str:
        self.at += 1
        units: list[int] = []
        while self.peek() != '"':
            c = self.peek()
            if not c or c < " ":
                raise Wrong
            self.at += 1
            if c != "\\":
                units.append(ord(c))
                continue
            kind = self.peek()
            self.at += 1
            if kind == "u":
                digits = self.text[self.at : self.at + 4]
                if len(digits) < 4 or any(d not in "0123456789abcdefABCDEF" for d in digits):
                    raise Wrong
                self.at += 4
                units.append(int(digits, 16))
            elif kind in ESCAPES and kind:
                units.append(ord(ESCAPES[kind]))
            else:
                raise Wrong
        self.at += 1
        return _joined(units)

    def number(self) -> Number:
        start = self.at
        if self.peek() == "-":
            self.at += 1
        whole = self.digits()
        if not whole or (whole[0] == "0" and len(whole) > 1):
            raise Wrong
        if self.peek() == ".":
            self.at += 1
            if not self.digits():
                raise Wrong
        if self.peek() and self.peek() in "eE":
            self.at += 1
            if self.peek() and self.peek() in "+-":
                self.at += 1
            if not self.digits():
                raise Wrong
        return Number(self.text[start : self.at])

    def digits(self) -> str:
        start = self.at
        while self.peek() and self.peek() in "0123456789":
            self.at += 1
        return self.text[start : self.at]


def _joined(units: list[int]) -> str:
    """Halves of characters that follow each other are one."""
    out: list[int] = []
    for unit in units:
        if out and 0xD800 <= out[-1] < 0xDC00 and 0xDC00 <= unit < 0xE000:
            out[-1] = 0x10000 + (out[-1] - 0xD800) * 0x400 + unit - 0xDC00
        else:
            out.append(unit)
    return "".join(map(chr, out))


def _steps(path: str) -> list[str | int]:
    """Of a path that is one."""
    steps: list[str | int] = []
    rest = path[1:]
    while rest:
        if rest.startswith('."'):
            reader = Reader(rest[1:])
            steps.append(reader.string())
            rest = rest[1 + reader.at :]
        elif rest.startswith("['"):
            key, _, rest = rest[2:].partition("']")
            steps.append(key)
        elif rest[0] == "[":
            place, _, rest = rest[1:].partition("]")
            steps.append(int(place))
        else:
            name = rest[1:]
            size = next((k for k, c in enumerate(name) if c in ".["), len(name))
            steps.append(name[:size])
            rest = name[size:]
    return steps


def _found(text: str, path: str) -> Any:
    if len(text.encode()) > LONGEST:
        raise Failed("too long")
    try:
        found = Reader(text).whole()
    except Wrong:
        return MISSING
    for step in _steps(path):
        known = isinstance(found, dict if isinstance(step, str) else list)
        if not known or (step not in found if isinstance(step, str) else step >= len(found)):
            return MISSING
        found = found[step]
    return found


def _value(call: Call, text: str, path: str) -> str | None:
    found = _found(text, path)
    if isinstance(found, bool):
        return str(found).lower()
    whole = isinstance(found, str) and not any("\ud800" <= c <= "\udfff" for c in found)
    return str(found) if whole else None


def _items(call: Call, text: str, path: str) -> str | None:
    """Items with what stands there of them."""
    found = _found(text, path)
    if not isinstance(found, list) or len(found) > 65536:
        return None
    return packed([_shown(item) for item in found], call.type)


def _shown(item: Any) -> str | None:
    if isinstance(item, str):
        return None if any("\ud800" <= c <= "\udfff" for c in item) else item
    if isinstance(item, bool):
        return str(item).lower()
    if isinstance(item, Items | Members):
        return item.text
    return None if item is None else str(item)


DOCUMENTS: dict[str, Callable[..., Value]] = {
    "json_value": _value,
    "json_items": _items,
    "json_exists": lambda call, text, path: _found(text, path) is not MISSING,
}
