"""CSV whose rows of another length are no UTF-8 text: Arrow, which gives them as text, can't give
those.  Their block is read once more, each byte as a character (Latin-1)."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

ENCODING = "latin-1"
_UNTOLD = re.compile(r"CSV parse error: (Row #\d+: )?Expected ")


def is_one(problem: pa.ArrowInvalid) -> bool:
    """Whether Arrow found a row of another length and nobody could say what to do with it."""
    return _UNTOLD.match(str(problem)) is not None


@contextmanager
def untold(handler: object) -> Iterator[None]:
    """Python prints nothing of a row that could not be given to this handler."""
    before = sys.unraisablehook

    def hook(said: sys.UnraisableHookArgs) -> None:
        if said.object is not handler:
            before(said)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def own(wrong: Any) -> SimpleNamespace:
    """The same row, its bytes as the text they are."""
    return SimpleNamespace(
        number=wrong.number,
        expected_columns=wrong.expected_columns,
        actual_columns=wrong.actual_columns,
        text=wrong.text.encode(ENCODING).decode(errors="replace"),
    )


def recoded(column: pa.Array) -> pa.Array:
    values = (None if v is None else v.decode().encode(ENCODING) for v in column.to_pylist())
    return pa.array(values, pa.binary())


def decoded_lines(block: bytes) -> pa.Array:
    """The lines of a block without their ends; bytes that are no text are replaced."""
    lines = block.removesuffix(b"\n").split(b"\n")
    column = pa.array([line.removesuffix(b"\r") for line in lines], pa.binary())
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([line.decode(errors="replace") for line in lines], pa.string())
