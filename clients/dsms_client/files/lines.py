"""Which line of a CSV file a row stands in, and which lines are empty."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms_client.files.pieces import Reject
from dsms_client.files.source import FileSource

BLOCK = 4 << 20
NEWLINE, RETURN = 10, 13


class Numbers:
    """Line numbers of rows, which may hold line breaks in their values."""

    def __init__(self, first: int) -> None:
        self._next = first  # the line of the next row
        self._row = 1  # its number among all rows, as Arrow counts them

    def assign(
        self, batch: pa.RecordBatch, invalid: Sequence[Any]
    ) -> tuple[np.ndarray, list[Reject]]:
        """The lines of the batch's rows, and the rows between them that had not as many values as
        the header."""
        wrong = np.array([row.number for row in invalid], np.int64) - self._row
        good = np.ones(batch.num_rows + len(wrong), bool)
        good[wrong] = False
        heights = np.ones(len(good), np.int64)
        for column in batch.columns:
            counts = pc.fill_null(pc.count_substring(column, b"\n"), 0)
            heights[good] += counts.to_numpy(zero_copy_only=False)
        heights[~good] += np.array([row.text.count("\n") for row in invalid], np.int64)
        ends = self._next + np.cumsum(heights)
        lines = ends - heights
        self._row += len(good)
        self._next = int(ends[-1]) if len(ends) else self._next
        rejects = [
            Reject(int(line), _wrong_length(row), row.text)
            for line, row in zip(lines[~good], invalid, strict=True)
        ]
        return lines[good], rejects


def _wrong_length(row: Any) -> str:
    counted = f"{row.actual_columns} values for {row.expected_columns} columns"
    return (
        f"{counted}; is a quote opened that is never closed?"
        if row.text.count('"') % 2
        else counted
    )


class EmptyLines:
    """Tells lines that are empty from rows without a value (`,`), which Arrow does not: by a second
    look into the file, which goes on where the one before it ended and which a file without such
    rows does not need."""

    def __init__(self, source: FileSource) -> None:
        self._open = contextlib.ExitStack()
        self._source = source
        self._stream: Any = None
        self._block = b""
        self._first = 1  # line of the block's first byte
        self._ends = np.empty(0, np.int64)  # of the block's lines

    def close(self) -> None:
        self._open.close()

    def among(self, lines: np.ndarray) -> np.ndarray:
        """Which of these lines, in rising order and behind those of the call before, are empty."""
        out = np.zeros(len(lines), bool)
        done = 0
        while done < len(lines):
            stop = int(np.searchsorted(lines, self._first + len(self._ends)))
            out[done:stop] = self._empty(lines[done:stop] - self._first)
            done = max(done, stop)
            if done < len(lines) and not self._go_on():
                break
        return out

    def _empty(self, at: np.ndarray) -> np.ndarray:
        starts = np.concatenate(([0], self._ends + 1))
        length = self._ends[at] - starts[at]
        block = np.frombuffer(self._block, np.uint8)
        return (length == 0) | ((length == 1) & (block[starts[at]] == RETURN))

    def _go_on(self) -> bool:
        """Take the next block of whole lines; False at the end."""
        if self._stream is None:
            self._stream = self._open.enter_context(self._source.another().stream())
        left = self._block[self._ends[-1] + 1 :] if len(self._ends) else self._block
        more = self._stream.read(BLOCK)
        self._first += len(self._ends)
        self._block = left + (more or b"\n" * bool(left))
        self._ends = np.flatnonzero(np.frombuffer(self._block, np.uint8) == NEWLINE)
        return bool(self._block)
