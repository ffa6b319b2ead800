"""CSV, with a line of names or without.  What NULL looks like (an empty cell, say) means it without
quotes only: `""` is empty text.

A line without anything is a row where the file has one column, else it is no row, and counted.

A block in which all is as usual is read by Arrow as numbers and text at once; one in which anything
is not, once more, as bytes, with an account of each row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from dsms.errors import UsageError
from dsms.instants import within
from dsms_client.files.blocks import (
    Unclosed,
    blocks,
    empty_lines,
    has_hexadecimal,
    line_ends,
    plain_lines,
)
from dsms_client.files.garbled import ENCODING, is_one, own, recoded, untold
from dsms_client.files.guess import delimiter_of
from dsms_client.files.header import Header, read_header
from dsms_client.files.options import BOM, Options
from dsms_client.files.pieces import (
    NO_TEXT,
    Column,
    Mapping,
    Piece,
    Pieces,
    Reject,
    line_of,
    map_columns,
    texts_of,
    typed,
)
from dsms_client.files.source import HEAD, FileSource
from dsms_client.files.text import convert, suspects

BLOCK = 4 << 20
TIMES = pa.timestamp("us")  # as Arrow reads them: in some of the ways in which instants are written


def read(
    source: FileSource, columns: Sequence[Column], renamed: dict[str, str], options: Options
) -> tuple[Mapping, Pieces]:
    """How columns match, and the pieces.  Raises DS530, DS532."""
    pieces = _begin(source, columns, renamed, options)
    mapping = next(pieces)
    assert isinstance(mapping, Mapping)
    return mapping, pieces  # type: ignore[return-value]


def _begin(
    source: FileSource, columns: Sequence[Column], renamed: dict[str, str], options: Options
) -> Iterator[Mapping | Piece]:
    """The mapping, then the pieces: the file is opened once."""
    delimiter = options.delimiter or _delimiter(source)
    with source.binary() as stream:
        header = read_header(
            source, stream, BLOCK, delimiter, options, [name for name, _ in columns]
        )
        mapping = replace(map_columns(header.names, columns, renamed), options=options)
        yield mapping
        yield from rows(source, stream, header, mapping, delimiter)


def _delimiter(source: FileSource) -> str:
    if source.kind == "tsv":
        return "\t"
    known = source.path.lower().endswith((".csv", ".csv.gz", ".csv.zst", ".csv.bz2"))
    return "," if known else delimiter_of(source.head(HEAD))


def rows(
    source: FileSource, stream: Any, header: Header, mapping: Mapping, delimiter: str
) -> Pieces:
    """The rows behind a header."""
    reader = _Reader(header.names, mapping, delimiter)
    line = header.lines + 1
    within = delimiter if mapping.options.quoted else None
    for block in blocks(stream, BLOCK, within, source.name, header.rest):
        if isinstance(block, Unclosed):
            yield replace(reader.unclosed(block, line), done=source.position())
            return
        block, lines = reader.prepared(block)
        piece = reader.whole(block, line) or reader.by_row(source, block, line)
        if lines is not None:
            piece = _renumbered(piece, lines, line)
        piece.done = source.position()
        line += reader.height if lines is None else int(lines[-1]) + 1
        yield piece


class _Reader:
    """Blocks of whole rows -> pieces."""

    def __init__(self, names: Sequence[str], mapping: Mapping, delimiter: str) -> None:
        self._names, self._mapping, self._delimiter = list(names), mapping, delimiter
        self._options = mapping.options
        self._ids = [str(i) for i in range(len(names))]
        self._places = {name: self._ids[self._names.index(name)] for name in mapping.used}
        self._skip = self._options.skip.encode()
        self.height = 0  # lines of the last block
        options = self._options
        kinds = {"INT": pa.int64(), "FLOAT": pa.float64()} if options.decimal == "." else {}
        if not (options.unit or options.zone or options.time_formats):
            kinds["TIMESTAMP"] = TIMES
        # by place in the mapping: what Arrow reads as its type by itself
        self._direct = {
            place: kinds[sql]
            for place, ((_, sql), parts) in enumerate(
                zip(mapping.columns, mapping.source, strict=True)
            )
            if sql in kinds and len(parts) == 1
        }

    def prepared(self, block: bytes) -> tuple[bytes, np.ndarray | None]:
        """The block without the lines that are none; what the lines of the rest are in it, and how
        many there were, if any were left out."""
        if self._delimiter == " " and (b"  " in block or b" \n" in block or b"\n " in block):
            block = re.sub(rb"(?m)^ +| +(?=\r?$)", b"", re.sub(rb"  +", b" ", block))
        if not self._skip or not (block.startswith(self._skip) or b"\n" + self._skip in block):
            return block, None
        found = block.splitlines(keepends=True)
        kept = [i for i, line in enumerate(found) if not line.startswith(self._skip)]
        return b"".join(found[i] for i in kept), np.array([*kept, len(found) - 1])

    def unclosed(self, block: bytes, line: int) -> Piece:
        """The end of a file as one reject."""
        why = "is a quote opened that is never closed, or is the file cut short?"
        rejects = [Reject(line, why, block.decode(errors="replace"))]
        return self._typed(self._no_rows(), np.empty(0, np.int64), rejects, 0)

    def whole(self, block: bytes, first: int) -> Piece | None:
        """The block as Arrow reads it, or None if anything is unusual."""
        lines = plain_lines(block)
        if not lines or (self._direct and has_hexadecimal(block)):
            return None
        table = self._read(block)
        if table is None or table.num_rows != lines:
            return None
        found = {name: one_array(table.column(place)) for name, place in self._places.items()}
        arrays = []
        for (_, sql), parts in zip(self._mapping.columns, self._mapping.source, strict=True):
            array = self._as(sql, texts_of(found, parts, len(table)))
            if array is None:
                return None
            arrays.append(array)
        batch = pa.RecordBatch.from_arrays(arrays, [n for n, _ in self._mapping.columns])
        self.height = lines
        return Piece(batch, np.arange(first, first + lines))

    def _read(self, block: bytes) -> pa.Table | None:
        """As numbers, instants and text; None if Arrow reads something otherwise.  Where instants
        are written in a way that Arrow does not know, they are text from then on."""
        shared = [n for parts in self._mapping.source for n in parts]
        while True:
            kinds = dict.fromkeys(self._places.values(), pa.string())
            for place, kind in self._direct.items():
                name = self._mapping.source[place][0]
                if shared.count(name) == 1:
                    kinds[self._places[name]] = kind
            try:
                return self._table(block, kinds)
            except pa.ArrowInvalid as problem:
                if TIMES not in kinds.values() or str(TIMES) not in str(problem):
                    return None
            self._direct = {p: kind for p, kind in self._direct.items() if kind != TIMES}

    def _as(self, sql: str, array: pa.Array) -> pa.Array | None:
        """A column of the type; None if anything in it is unusual."""
        if array.type == pa.float64():
            return None if len(suspects(array)) else array
        if array.type == TIMES:
            return within(array.cast(pa.int64()))
        if sql == "INT" and array.type == pa.int64():
            return array
        array, wrong = convert(array, sql, self._options)
        return None if len(wrong) else array

    def _table(
        self,
        block: bytes,
        kinds: dict[str, pa.DataType],
        encoding: str = "utf8",
        handler: Any = None,
    ) -> pa.Table:
        quoted = self._options.quoted
        if encoding == "utf8" and block.startswith(BOM):
            block = BOM + block  # Arrow drops one, which is text but at the beginning of a file
        size = len(block) * (1 if encoding == "utf8" else 2) + 1  # as Arrow has it: one piece
        return pyarrow.csv.read_csv(
            pa.BufferReader(block),
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False,
                block_size=min(size, (1 << 31) - 1),
                column_names=self._ids,
                encoding=encoding,
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=self._delimiter,
                quote_char='"' if quoted else False,
                newlines_in_values=quoted,
                ignore_empty_lines=False,
                invalid_row_handler=handler,
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=kinds,
                include_columns=list(kinds),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[null.encode().decode(encoding) for null in self._options.null_texts],
            ),
        )

    def by_row(self, source: FileSource, block: bytes, first: int) -> Piece:
        """Each row judged, with reasons."""
        if not block:
            self.height = 0
            return self._typed(self._no_rows(), np.empty(0, np.int64), [], 0)
        try:
            table, invalid = self._bytes(block)
        except pa.ArrowInvalid as problem:
            raise UsageError("DS530", f"cannot read {source.name}: {problem}") from None
        lines, rejects, self.height = _lines(table, invalid, first, block)
        blank = self._blank(table, lines - first, block) if len(self._names) > 1 else lines[:0]
        if len(blank):
            kept = np.delete(np.arange(len(lines)), blank)
            table, lines = table.take(pa.array(kept)), lines[kept]
        return self._typed(table, lines, rejects, len(blank))

    def _no_rows(self) -> pa.Table:
        return pa.table([pa.array([], pa.binary())] * len(self._ids), self._ids)

    def _bytes(self, block: bytes) -> tuple[pa.Table, list[Any]]:
        """The cells as bytes, and the rows of another length.  Raises ArrowInvalid."""
        invalid: list[Any] = []

        def skip(row: Any) -> str:
            invalid.append(row)
            return "skip"

        kinds = {place: pa.binary() for place in self._ids}
        try:
            with untold(skip):
                return self._table(block, kinds, handler=skip), invalid
        except pa.ArrowInvalid as problem:
            if not is_one(problem):
                raise
        # Rows of another length that are no text can't be given as text: each byte a character
        invalid.clear()
        table = self._table(block, kinds, ENCODING, skip)
        columns = [recoded(one_array(column)) for column in table.columns]
        return pa.table(columns, self._ids), [own(row) for row in invalid]

    def _blank(self, table: pa.Table, lines: np.ndarray, block: bytes) -> np.ndarray:
        """Positions of what are not rows but empty lines."""
        without = np.ones(len(table), bool)
        for column in table.columns:
            if not without.any():
                break
            sizes = pc.fill_null(pc.binary_length(one_array(column)), 0)
            without &= sizes.to_numpy(zero_copy_only=False) == 0
        found = np.flatnonzero(without)
        return found[empty_lines(block, lines[found])] if len(found) else found

    def _typed(
        self, table: pa.Table, lines: np.ndarray, rejects: list[Reject], empty: int
    ) -> Piece:
        """Rows in which a value that is used is no text, or not of its type, are rejected."""
        columns = {name: one_array(table.column(place)) for name, place in self._places.items()}
        bad: dict[int, str] = {}
        texts = {}
        for name, column in columns.items():
            texts[name], wrong = _decoded(column)
            for at in wrong:
                bad.setdefault(at, f"{name}: {NO_TEXT}: {column[at].as_py()[:100]!r}")
        if bad:
            rejects = rejects + [
                Reject(int(lines[at]), why, _raw(list(columns.values()), at))
                for at, why in bad.items()
            ]
            kept = np.delete(np.arange(len(lines)), list(bad))
            texts = {name: text.take(pa.array(kept)) for name, text in texts.items()}
            lines = lines[kept]
        good, lines, untyped = typed(texts, lines, self._mapping)
        rejects = sorted([*rejects, *untyped], key=lambda reject: reject.line)
        return Piece(good, lines, rejects, 0, empty)


def _lines(
    table: pa.Table, invalid: Sequence[Any], first: int, block: bytes
) -> tuple[np.ndarray, list[Reject], int]:
    """The lines of the rows, which may hold line ends in their values, the rows between them that
    had not as many values as the header, and how many lines that were."""
    wrong = np.array([row.number for row in invalid], np.int64) - 1
    good = np.ones(len(table) + len(wrong), bool)
    good[wrong] = False
    heights = np.ones(len(good), np.int64)
    each = b"\r" not in block and block.count(b"\n") + (not block.endswith(b"\n")) == len(good)
    for column in () if each else table.columns:
        for ending, sign in ((b"\n", 1), (b"\r", 1), (b"\r\n", -1)):
            counts = pc.fill_null(pc.count_substring(one_array(column), ending), 0)
            heights[good] += sign * counts.to_numpy(zero_copy_only=False)
    if not each:
        heights[~good] += np.array([line_ends(row.text) for row in invalid], np.int64)
    lines = first + np.cumsum(heights) - heights
    rejects = [
        Reject(int(line), _wrong_length(row), row.text)
        for line, row in zip(lines[~good], invalid, strict=True)
    ]
    return lines[good], rejects, int(heights.sum())


def _wrong_length(row: Any) -> str:
    counted = f"{row.actual_columns} values for {row.expected_columns} columns"
    return (
        f"{counted}; is a quote opened that is never closed?"
        if row.text.count('"') % 2
        else counted
    )


def _renumbered(piece: Piece, lines: np.ndarray, first: int) -> Piece:
    """The same rows, by the lines that they had before others were left out."""
    rejects = [
        replace(reject, line=int(lines[reject.line - first]) + first) for reject in piece.rejects
    ]
    return replace(piece, lines=lines[piece.lines - first] + first, rejects=rejects)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


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
    return line_of((column[at].as_py() or b"").decode(errors="replace") for column in columns)
