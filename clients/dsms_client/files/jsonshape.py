"""Lines of JSON by how they begin and end, before anything is parsed."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

_NULL_LINE = re.compile(rb"(?:\A|\n)[ \t\r]*null")
_BETWEEN = re.compile(rb"\}[ \t\r]*\n[ \t]*\{")
NEWLINE, OPEN, CLOSE = b"\n{}"


@dataclass(frozen=True, slots=True)
class Shape:
    """Of a block that ends with a line end: how many lines it has, and whether each begins and ends
    as an object does, without blanks: so it is one, as none can within another."""

    lines: int
    plain: bool

    @classmethod
    def of(cls, block: bytes) -> Shape:
        array = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(array == NEWLINE)
        if not len(ends) or array[0] != OPEN or ends[-1] != len(array) - 1 or b"\r" in block:
            return cls(len(ends), False)
        plain = (array[ends - 1] == CLOSE).all() and (array[ends[:-1] + 1] == OPEN).all()
        return cls(len(ends), bool(plain))


def has_lone_returns(block: bytes) -> bool:
    """Whether some lines end in a carriage return alone, which is no row's end for Arrow."""
    return b"\r" in block and block.count(b"\r") != block.count(b"\r\n")


def has_lines_of_objects(block: bytes) -> bool:
    """Whether each line begins and ends as an object does, as none can within another: then there
    is no line with two objects, and none without one."""
    lines, text = block.count(b"\n"), block.strip()
    if not (text.startswith(b"{") and text.endswith(b"}")):
        return False
    between = b"}\r\n{" if b"\r" in block else b"}\n{"
    return lines == text.count(between) + 1 or lines == len(_BETWEEN.findall(text)) + 1


def has_lines_of_null(block: bytes) -> bool:
    """Whether some line is no object but `null`: Arrow takes it for a row, or dies of it."""
    return b"null" in block and _NULL_LINE.search(block) is not None
