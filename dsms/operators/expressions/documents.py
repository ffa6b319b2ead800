"""JSON_VALUE and JSON_EXISTS: values out of texts of JSON.

A text is parsed by Python's C parser, numbers as the digits that stand there: they never are FLOATs
on their way to a DECIMAL.  Where several paths are asked of one column, each text is parsed once.
"""

from __future__ import annotations

import json
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from dsms.operators.expressions.arithmetic import refuse
from dsms.operators.expressions.arrays import Value, blank, spread
from dsms.operators.expressions.errors import ARGUMENT, ErrorCounter
from dsms.operators.expressions.growth import sizes_of
from dsms.operators.expressions.node import Builder, Built, Node, length
from dsms.sql.expr import Call, Expr
from dsms.sql.functions.paths import Path, path_of

LONGEST = 1 << 20  # bytes of one document
DEEPEST = 100  # arrays and objects in each other
Of = Callable[[Any], object]  # what is answered of what a path leads to
NONE = object()  # there is no such value, or no document
_MARKS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


class Digits(str):
    """A number, as it stands there."""


def _no_json(word: str) -> Any:
    raise ValueError(word)


_decode = json.JSONDecoder(
    parse_float=Digits, parse_int=Digits, parse_constant=_no_json
).decode  # NaN is none


def document(text: str | None) -> Any:
    """What the text says; NONE for what is no JSON, or deeper than DEEPEST."""
    if text is None or (text.count("[") + text.count("{") > DEEPEST and _depth(text) > DEEPEST):
        return NONE
    try:
        return _decode(text)
    except ValueError:
        return NONE


def _depth(text: str) -> int:
    depth = most = 0
    for mark in _MARKS.findall(text):
        depth += (mark in "[{") - (mark in "]}")
        most = max(most, depth)
    return most


@dataclass(slots=True)
class _Asked:
    """What several expressions ask of one column of documents.

    known  the column that was read last, while it lives, and what was found in it"""

    asks: list[tuple[Path, Of, pa.DataType]] = field(default_factory=list)
    known: tuple[weakref.ref[pa.Array], list[pa.Array]] | None = None

    def add(self, path: Path, of: Of, to: pa.DataType) -> int:
        """Which of what is found answers it."""
        self.asks.append((path, of, to))
        return len(self.asks) - 1

    def found(self, x: pa.Array) -> list[pa.Array]:
        """For all that is asked a value for each document."""
        known = self.known
        if known is not None and known[0]() is x:
            return known[1]
        values: list[list[object]] = [[] for _ in self.asks]
        for text in x.to_pylist():
            whole = document(text)
            for (path, of, _), out in zip(self.asks, values, strict=True):
                out.append(of(_at(whole, path)))
        arrays = [pa.array(v, to) for (_, _, to), v in zip(self.asks, values, strict=True)]
        if len(arrays) > 1:
            self.known = weakref.ref(x, self._forget), arrays
        return arrays

    def _forget(self, column: object) -> None:
        known = self.known
        if known is not None and known[0] is column:
            self.known = None


class _Scope(threading.local):
    asked: dict[Expr, _Asked] | None = None


_scope = _Scope()


@contextmanager
def together() -> Iterator[None]:
    """Expressions that are compiled within it read each document once."""
    before, _scope.asked = _scope.asked, {}
    try:
        yield
    finally:
        _scope.asked = before


def _asked_of(column: Expr) -> _Asked:
    return _Asked() if _scope.asked is None else _scope.asked.setdefault(column, _Asked())


def _at(found: Any, path: Path) -> Any:
    for step in path:
        match step:
            case str() if isinstance(found, dict):
                found = found.get(step, NONE)
            case int() if isinstance(found, list) and step < len(found):
                found = found[step]
            case _:
                return NONE
    return found


def _text(found: Any) -> str | None:
    """Of a scalar; None for others, for null, and for halves of characters."""
    match found:
        case bool():
            return "true" if found else "false"
        case str():
            return found if found.isascii() or _whole(found) else None
    return None


def _whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _asking(of: Of, to: pa.DataType) -> Builder:
    def build(call: Call, args: Sequence[Node]) -> Built:
        const = args[1].const
        path = path_of(str(const.as_py())) if const is not None else None
        assert path is not None  # the binder has checked it
        asked = _asked_of(call.args[0])
        which = asked.add(path, of, to)

        def kernel(errors: ErrorCounter, x: Value, _: Value) -> pa.Array:
            x = spread(x, length(x, _))
            long = sizes_of(x) > LONGEST
            shorter = blank(x, long) if long.any() else x
            found = asked.found(shorter)[which]
            found = blank(found, np.asarray(shorter.is_null())) if shorter.null_count else found
            why = f"a document of JSON has at most {LONGEST} bytes"
            return refuse(errors, found, long, [x], ARGUMENT, why)

        return Built(kernel, True)

    return build


BUILDERS: dict[str, Builder] = {
    "json_value": _asking(_text, pa.string()),
    "json_exists": _asking(lambda found: found is not NONE, pa.bool_()),
}
