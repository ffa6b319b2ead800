"""An array of JSON objects, or objects over several lines -> lines with one object each, and where
they stood."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from dsms.errors import UsageError

_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"[\s,]*")
_ENDS = re.compile(r"[\r\n]+")


def first(head: bytes) -> str:
    """The text of the first element; "" if there is none."""
    return next(elements(head), "")


def elements(head: bytes) -> Iterator[str]:
    """The texts of the elements in what a file begins with."""
    text = head.decode(errors="surrogateescape")
    at = _start(text)
    while (end := _end(text, at)) is not None:
        yield text[at:end]
        at = _BETWEEN.match(text, end).end()  # type: ignore[union-attr]


def read(stream: Any, size: int, name: str) -> Iterator[tuple[bytes, np.ndarray]]:
    """Blocks of lines, and the number of each object: the line of the file in which it begins, or
    one more than that of the object before, if that is greater (so no two share one, and a file
    that has more at its end has the same numbers).  Raises DS530 where there is something else."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
    text, line, over, begun = "", 1, False, False
    array, broken, commas, count, last = False, False, 0, 0, 0
    while not over:
        part = stream.read(size)
        over = not part
        text += decoder.decode(bytes(part or b""), over)
        at = 0
        if not begun:
            at, begun = _start(text), bool(text.strip())
            array = text.lstrip().startswith("[")
            line += text.count("\n", 0, at)
        objects, numbers = [], []
        while True:
            line += text.count("\n", at, (next_at := _BETWEEN.match(text, at).end()))  # type: ignore[union-attr]
            commas, at = commas + text.count(",", at, next_at), next_at
            end = _end(text, at)
            if end is None or (end == len(text) and not over and text[at] not in "{["):
                break
            if broken := array and commas != bool(count):
                break
            commas, count = 0, count + 1
            objects.append(_ENDS.sub(" ", text[at:end]))
            numbers.append(last := max(line, last + 1))
            line += text.count("\n", at, end)
            at = end
        text = text[at:]
        if objects:
            lines = "\n".join((*objects, "")).encode(errors="surrogateescape")
            yield lines, np.array(numbers, np.int64)
        if broken:
            raise _no_json(name, line, text)
    if text.strip() != ("]" if array else ""):
        raise _no_json(name, line, text)


def _no_json(name: str, line: int, text: str) -> UsageError:
    shown = f": {text.strip()[:60]!r}" if text.strip() else ", where its array is not closed"
    return UsageError(
        "DS530",
        f"{name} is not JSON from line {line} on{shown}",
        hint="an array of objects, or one object after another; is it cut short?",
    )


def _start(text: str) -> int:
    """Behind the bracket that an array begins with."""
    at = len(text) - len(text.lstrip().removeprefix("["))
    return _BETWEEN.match(text, at).end()  # type: ignore[union-attr]


def _end(text: str, at: int) -> int | None:
    """Behind the value that begins there; None if it is not whole."""
    try:
        return int(_DECODER.raw_decode(text, at)[1])
    except (ValueError, RecursionError):
        return None
