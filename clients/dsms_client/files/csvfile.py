"""CSV with a header line; empty cells without quotes are NULL."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from dsms.errors import UsageError
from dsms_client.files.pieces import Column, Mapping, Piece, Pieces, Reject, map_columns, typed
from dsms_client.files.source import Source

BLOCK = 4 << 20


def read(
    source: Source, columns: Sequence[Column], renamed: dict[str, str], nulls: Sequence[str], delimiter: str
) -> tuple[Mapping, Pieces]:
    """How columns match, and the pieces.  Raises DS520, DS521."""
    with source.text() as lines:
        header = next(csv.reader(lines, delimiter=delimiter), None)
    if not header:
        raise UsageError("DS521", f"{source.path} is empty, it should begin with a line of column names")
    mapping = map_columns(header, columns, renamed)
    return mapping, _pieces(source, header, mapping, nulls, delimiter)


def _pieces(source: Source, header: list[str], mapping: Mapping, nulls: Sequence[str], delimiter: str) -> Pieces:
    invalid: list[Any] = []

    def skip(row: Any) -> str:
        invalid.append(row)
        return "skip"

    numbers = _Numbers()
    with source.binary() as stream:
        reader = pyarrow.csv.open_csv(
            stream,
            read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=BLOCK),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=False, invalid_row_handler=skip
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={h: pa.string() for h in header},
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=list(nulls),
            ),
        )
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                break
            except pa.ArrowInvalid as problem:
                raise UsageError("DS521", f"cannot read {source.path}: {problem}") from None
            yield _piece(batch, numbers, invalid, header, mapping, source.position())
    if invalid:  # at the very end
        yield _piece(batch.slice(0, 0), numbers, invalid, header, mapping, source.position())


def _piece(
    batch: pa.RecordBatch, numbers: _Numbers, invalid: list[Any], header: list[str], mapping: Mapping, done: int
) -> Piece:
    mine = sorted(invalid, key=lambda row: row.number)
    invalid.clear()
    lines, rejects = numbers.assign(batch, mine, len(header))
    filled = np.flatnonzero(~_blank(batch))
    if len(filled) < batch.num_rows:
        batch, lines = batch.take(pa.array(filled)), lines[filled]
    texts = {name: batch.column(name) for name in mapping.used}
    good, lines, wrong = typed(texts, lines, mapping)
    return Piece(good, lines, sorted([*rejects, *wrong], key=lambda r: r.line), done)


def _blank(batch: pa.RecordBatch) -> np.ndarray:
    """Rows without any value: empty lines."""
    blank = np.ones(batch.num_rows, bool)
    for column in batch.columns:
        blank &= column.is_null().to_numpy(zero_copy_only=False)
    return blank


class _Numbers:
    """Line numbers: rows are counted from 2 (after the header), and quoted values may hold line breaks."""

    def __init__(self) -> None:
        self._row = 2
        self._breaks = 0  # inside values of the rows so far

    def assign(self, batch: pa.RecordBatch, invalid: list[Any], width: int) -> tuple[np.ndarray, list[Reject]]:
        wrong = np.array([row.number for row in invalid], np.int64)
        rows = np.arange(self._row, self._row + batch.num_rows + len(wrong))
        breaks = np.zeros(len(rows), np.int64)
        good = ~np.isin(rows, wrong)
        for column in batch.columns:
            counts = pc.fill_null(pc.count_substring(column, "\n"), 0)
            breaks[good] += counts.to_numpy(zero_copy_only=False)
        breaks[~good] += np.array([row.text.count("\n") for row in invalid], np.int64)
        lines = rows + self._breaks + np.cumsum(breaks) - breaks
        self._row += len(rows)
        self._breaks += int(breaks.sum())
        rejects = [
            Reject(int(line), f"{row.actual_columns} values for {width} columns", row.text)
            for line, row in zip(lines[~good], invalid, strict=True)
        ]
        return lines[good], rejects
