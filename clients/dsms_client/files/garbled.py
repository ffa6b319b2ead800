"""CSV whose rows of another length are no UTF-8 text: Arrow, which gives them as text, can't give
those.

The file is read once more, each byte as a character (Latin-1), from the row on that is still to
come.  That takes longer, but every row is given, and with its own bytes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

ENCODING = "latin-1"
Rows = tuple[pa.RecordBatch, list[Any]]  # and the rows of another length that stand among them
Read = Callable[..., Iterator[Rows]]
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


def behind(read: Read, done: int) -> Iterator[Rows]:
    """What `read(encoding=...)` gives, from the start, behind the first `done` rows."""
    row = 0  # rows that were read
    for batch, wrong in read(encoding=ENCODING):
        known = sum(1 for one in wrong if one.number <= done)
        gone = max(0, min(done - row, batch.num_rows + len(wrong))) - known
        row += batch.num_rows + len(wrong)
        if row > done:
            rest = batch.slice(gone)
            columns = list(map(_bytes, rest.columns))
            yield (
                pa.RecordBatch.from_arrays(columns, rest.schema.names),
                list(map(_own, wrong[known:])),
            )


def _own(wrong: Any) -> SimpleNamespace:
    """The same row, its bytes as the text they are."""
    return SimpleNamespace(
        number=wrong.number,
        expected_columns=wrong.expected_columns,
        actual_columns=wrong.actual_columns,
        text=wrong.text.encode(ENCODING).decode(errors="replace"),
    )


def _bytes(column: pa.Array) -> pa.Array:
    values = (None if v is None else v.decode().encode(ENCODING) for v in column.to_pylist())
    return pa.array(values, pa.binary())
