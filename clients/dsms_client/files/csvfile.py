"""CSV with a header line.  What NULL looks like (an empty cell, say) means it without quotes only:
`""` is empty text.

A line without anything is a row where the file has one column, else it is no row, and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from dsms.errors import UsageError
from dsms_client.files import garbled
from dsms_client.files.garbled import Read, Rows
from dsms_client.files.header import Header, read_header
from dsms_client.files.lines import BLOCK, EmptyLines, Numbers
from dsms_client.files.pieces import Column, Mapping, Piece, Pieces, Reject, map_columns, typed
from dsms_client.files.source import FileSource


def read(
    source: FileSource,
    columns: Sequence[Column],
    renamed: dict[str, str],
    nulls: Sequence[str],
    delimiter: str,
    unit: str | None = None,
) -> tuple[Mapping, Pieces]:
    """How columns match, and the pieces.  Raises DS530, DS532."""
    header = read_header(source, delimiter)
    mapping = replace(map_columns(header.names, columns, renamed), unit=unit)
    return mapping, _pieces(source, header, mapping, nulls, delimiter)


def _pieces(
    source: FileSource, header: Header, mapping: Mapping, nulls: Sequence[str], delimiter: str
) -> Pieces:
    numbers = Numbers(header.lines + 1)
    wide = len(header.names) > 1
    with closing(EmptyLines(source)) as empty:
        for batch, wrong in _batches(partial(_arrow, source, header, nulls, delimiter), source):
            lines, rejects = numbers.assign(batch, wrong)
            blank = _blank(batch, lines, empty) if wide else np.empty(0, np.int64)
            if len(blank):
                kept = np.delete(np.arange(len(lines)), blank)
                batch, lines = batch.take(pa.array(kept)), lines[kept]
            batch, lines, unreadable = _texts(batch, lines, header, mapping)
            good, lines, untyped = typed(
                dict(zip(mapping.used, batch.columns, strict=True)), lines, mapping
            )
            rejects = sorted([*rejects, *unreadable, *untyped], key=lambda r: r.line)
            yield Piece(good, lines, rejects, source.position(), len(blank))


def _batches(read: Read, source: FileSource) -> Iterator[Rows]:
    """The cells as bytes, by the number of their column, and the rows of another length that stand
    among them."""
    done = 0
    try:
        try:
            for batch, wrong in read():
                done += batch.num_rows + len(wrong)
                yield batch, wrong
        except pa.ArrowInvalid as problem:
            if not garbled.is_one(problem):
                raise
            yield from garbled.behind(read, done)
    except pa.ArrowInvalid as problem:
        raise _unreadable(source, problem) from None


def _arrow(
    source: FileSource,
    header: Header,
    nulls: Sequence[str],
    delimiter: str,
    encoding: str = "utf8",
) -> Iterator[Rows]:
    """What Arrow makes of the file.  Raises ArrowInvalid."""
    invalid: list[Any] = []
    names = [str(i) for i in range(len(header.names))]

    def skip(row: Any) -> str:
        invalid.append(row)
        return "skip"

    with source.stream() as stream:
        if not _skip_header(source, stream, header.size):
            return
        with garbled.untold(skip):
            reader = pyarrow.csv.open_csv(
                stream,
                read_options=pyarrow.csv.ReadOptions(
                    use_threads=False, block_size=BLOCK, column_names=names, encoding=encoding
                ),
                parse_options=pyarrow.csv.ParseOptions(
                    delimiter=delimiter,
                    newlines_in_values=True,
                    ignore_empty_lines=False,
                    invalid_row_handler=skip,
                ),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types={name: pa.binary() for name in names},
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                    null_values=[null.encode().decode(encoding) for null in nulls],
                ),
            )
        yield from _with_wrong(reader, skip, invalid)
        if invalid:
            none = pa.RecordBatch.from_arrays([pa.array([], pa.binary())] * len(names), names)
            yield none, invalid


def _with_wrong(reader: Any, skip: object, invalid: list[Any]) -> Iterator[Rows]:
    """The batches, each with its part of `invalid`: Arrow reads ahead, so it may have met rows of
    the batches to come."""
    row = 1  # the number of the next
    while True:
        try:
            with garbled.untold(skip):
                batch = reader.read_next_batch()
        except StopIteration:
            return
        row += batch.num_rows
        count = 0
        while count < len(invalid) and invalid[count].number <= row:
            count, row = count + 1, row + 1
        wrong, invalid[:count] = invalid[:count], []
        yield batch, wrong


def _skip_header(source: FileSource, stream: pa.NativeFile, size: int) -> bool:
    """Go to the first row; False if there is none, which Arrow takes amiss."""
    with source.another().stream() as ahead:
        ahead.read(size)
        if not ahead.read(1):
            return False
    stream.read(size)
    return True


def _unreadable(source: FileSource, problem: pa.ArrowInvalid) -> UsageError:
    if "straddling" in str(problem):
        return UsageError(
            "DS530",
            f"{source.path} has a row of more than {BLOCK} bytes",
            hint="is a quote opened that is never closed?",
        )
    return UsageError("DS530", f"cannot read {source.path}: {problem}")


def _blank(batch: pa.RecordBatch, lines: np.ndarray, empty: EmptyLines) -> np.ndarray:
    """Positions of what are not rows but empty lines."""
    without = np.ones(batch.num_rows, bool)
    for column in batch.columns:
        if not without.any():
            break
        sizes = pc.fill_null(pc.binary_length(column), 0)
        without &= sizes.to_numpy(zero_copy_only=False) == 0
    found = np.flatnonzero(without)
    return found[empty.among(lines[found])] if len(found) else found


def _texts(
    batch: pa.RecordBatch, lines: np.ndarray, header: Header, mapping: Mapping
) -> tuple[pa.RecordBatch, np.ndarray, list[Reject]]:
    """The columns that are used, as text; rows in which one is not UTF-8 are rejected."""
    columns = [batch.column(header.names.index(name)) for name in mapping.used]
    bad: dict[int, str] = {}
    texts = []
    for name, column in zip(mapping.used, columns, strict=True):
        text, wrong = _decoded(column)
        texts.append(text)
        for at in wrong:
            bad.setdefault(at, f"{name}: not UTF-8 text: {column[at].as_py()[:100]!r}")
    out = pa.RecordBatch.from_arrays(texts, mapping.used)
    if not bad:
        return out, lines, []
    kept = np.delete(np.arange(len(lines)), list(bad))
    rejects = [Reject(int(lines[at]), why, _raw(columns, at)) for at, why in bad.items()]
    return out.take(pa.array(kept)), lines[kept], rejects


def _decoded(column: pa.Array) -> tuple[pa.Array, list[int]]:
    """Text, NULL where the bytes are none, and where that is."""
    try:
        return pc.cast(column, pa.string()), []
    except pa.ArrowInvalid:
        found = column.to_pylist()
        texts = [None if v is None else v.decode(errors="replace") for v in found]
        wrong = [
            i
            for i, (t, v) in enumerate(zip(texts, found, strict=True))
            if t is not None and t.encode() != v
        ]
        return pa.array(texts, pa.string()), wrong


def _raw(columns: Sequence[pa.Array], at: int) -> str:
    return ",".join((column[at].as_py() or b"").decode(errors="replace") for column in columns)
