"""A stream of bytes -> blocks of whole rows, and which lines of them are something else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from dsms.errors import UsageError

NEWLINE, RETURN, QUOTE = 10, 13, 34


class Unclosed(bytes):
    """The end of a file from a row on in which a quote is opened that is never closed."""


def blocks(
    stream: Any,
    size: int,
    delimiter: str | None,
    name: str,
    start: bytes = b"",
    limited: bool = True,
) -> Iterator[bytes]:
    """Whole rows, about `size` bytes at a time, `start` before all; each block ends with a line
    end, the last one perhaps not, which may be `Unclosed`.

    `delimiter`: that of CSV whose values may hold line ends in quotes (None: no line end is in a
    value).  If that is `limited`, raises DS530 for a row of more than
    `size` bytes.
    """
    data = start
    while True:
        cut = end_of_rows(data, delimiter)
        if cut:
            yield data[:cut]
        elif limited and len(data) > size:
            raise UsageError(
                "DS530",
                f"{name} has a row of more than {size} bytes",
                hint="is a quote opened that is never closed?",
            )
        rest = data[cut:]
        part = stream.read(size)
        if not part:
            break
        data = rest + part if rest else part
    if rest:
        yield from _last(rest, delimiter)


def _last(rest: bytes, delimiter: str | None) -> Iterator[bytes]:
    """What no line end outside of quotes follows."""
    ended = rest if rest.endswith(b"\n") else rest + b"\n"
    cut = end_of_rows(ended, delimiter)
    if cut == len(ended):
        yield rest
        return
    if cut:
        yield rest[:cut]
    yield Unclosed(rest[cut:])


def end_of_rows(data: bytes, delimiter: str | None) -> int:
    """Behind the last line end of the block that is in no quotes; 0 if there is none."""
    end = b"\n" if b"\n" in data else b"\r"
    stop = len(data) - (end == b"\r")  # a newline may follow
    if delimiter is None or b'"' not in data:
        return data.rfind(end, 0, stop) + 1
    quotes = np.flatnonzero(np.frombuffer(data, np.uint8) == QUOTE)
    if not _all_around(data, quotes, delimiter):
        inside = _quoted(data, delimiter)
        quotes = np.array(inside, np.int64).reshape(-1) - np.tile([0, 1], len(inside))
    while True:
        last = data.rfind(end, 0, stop)
        before = int(np.searchsorted(quotes, last))
        if last < 0 or before % 2 == 0:
            return last + 1
        stop = int(quotes[before - 1])


def _all_around(data: bytes, quotes: np.ndarray, delimiter: str) -> bool:
    """Whether all quotes stand around values: one opens a value only at its beginning."""
    array = np.frombuffer(data, np.uint8)
    opening = quotes[::2]
    before = array[np.maximum(opening, 1) - 1]
    begins = (before == ord(delimiter)) | (before == NEWLINE) | (before == RETURN)
    begins[:1] |= opening[:1] == 0
    begins[1:] |= quotes[1 : 2 * len(opening) - 2 : 2] == opening[1:] - 1  # "" within quotes
    return bool(begins.all())


def _quoted(data: bytes, delimiter: str) -> list[tuple[int, int]]:
    """From where to where values in quotes reach."""
    one = re.compile(rb'(?:^|(?<=[\r\n%s]))"(?:[^"]|"")*(?:"|\Z)' % re.escape(delimiter.encode()))
    return [found.span() for found in one.finditer(data)]


def line_ends(text: str) -> int:
    """How many there are: newlines, and carriage returns by themselves, as Arrow has it."""
    returns = text.count("\r")
    return text.count("\n") + (returns - text.count("\r\n") if returns else 0)


def empty_lines(block: bytes, lines: np.ndarray) -> np.ndarray:
    """Which of these lines of a block (from 0; see `line_ends`) have nothing in them."""
    array = np.frombuffer(block, np.uint8)
    alone = (array == RETURN) & np.append(array[1:] != NEWLINE, True)
    ends = np.append(np.flatnonzero((array == NEWLINE) | alone), len(array))
    starts = np.concatenate(([0], ends[:-1] + 1))
    lines = np.minimum(lines, len(ends) - 1)
    length = ends[lines] - starts[lines]
    first = array[np.minimum(starts[lines], len(array) - 1)]
    return (length == 0) | ((length == 1) & (first == RETURN))


def plain_lines(block: bytes) -> int:
    """How many lines the block has; 0 if one is empty, or ends in a carriage return alone."""
    if not block or block.startswith((b"\n", b"\r")):
        return 0
    if b"\r" in block and block.count(b"\r") != block.count(b"\r\n"):
        return 0
    array = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(array == NEWLINE)
    first = array[np.minimum(ends + 1, len(array) - 1)][: -1 if block.endswith(b"\n") else None]
    if ((first == NEWLINE) | (first == RETURN)).any():
        return 0
    return len(ends) + (not block.endswith(b"\n"))


def has_hexadecimal(block: bytes) -> bool:
    """Whether ``0x`` stands anywhere, which Arrow reads as the beginning of a number."""
    if b"x" not in block and b"X" not in block:
        return False
    array = np.frombuffer(block, np.uint8)
    places = np.flatnonzero((array | 32) == ord("x"))
    return bool((array[np.maximum(places, 1) - 1] == ord("0")).any())
