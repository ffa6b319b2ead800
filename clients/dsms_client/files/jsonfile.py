"""JSON lines: an object per line, its keys are column names in any case; ``a.b`` is the key b of
the object a.  Or an array of objects, or objects over several lines.

A block of lines is parsed by Arrow as a whole; a block in which something is unusual is parsed line
by line, and its values are read as the text that stands in the file, so no number passes through a
float.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json

from dsms.instants import within
from dsms.tabular.kinds import arrow_type
from dsms_client.files import json_array, nested
from dsms_client.files.blocks import blocks
from dsms_client.files.jsonbegin import is_array, no_object, object_of
from dsms_client.files.jsonnumbers import Numbers, narrowed, read_as, without_units
from dsms_client.files.jsonshape import (
    Shape,
    has_lines_of_null,
    has_lines_of_objects,
    has_lone_returns,
)
from dsms_client.files.jsonvalue import (
    Number,
    Pairs,
    fits,
    kind_of,
    misfit,
    rejected,
    text_of,
)
from dsms_client.files.options import Options
from dsms_client.files.pieces import (
    Column,
    Mapping,
    Piece,
    Pieces,
    Reject,
    map_columns,
    merged,
    numbered,
)
from dsms_client.files.source import BOM, HEAD, FileSource
from dsms_client.files.text import convert, suspects

BLOCK = 4 << 20
MANY, OFTEN = 50, 4  # lines that are read alone: so many, and one of so many behind them
_ESCAPED_KEY = re.compile(rb'"[^"\\]*\\[^"]*"\s*:')
_ROW = re.compile(r"in row (\d+)$")  # how Arrow says which line it can't read
TIMES = pa.timestamp("us")


def read(
    source: FileSource, columns: Sequence[Column], renamed: dict[str, str], options: Options
) -> tuple[Mapping, Pieces]:
    """How columns match (judged by how the file begins), and the pieces.  Raises DS530, DS532."""
    head = source.head(HEAD)
    source.judge(head[:8])
    head = head.removeprefix(BOM).lstrip()
    if not head or re.fullmatch(rb"\[\s*\]\s*", head):  # no rows
        return Mapping(tuple(columns), tuple((name,) for name, _ in columns), ()), iter(())
    array = is_array(source.kind, head)
    first = json_array.first(head) if array else head.splitlines()[0].decode(errors="replace")
    if (keys := object_of(first)) is None:
        raise no_object(source, head)
    more = json_array.elements(head) if array else head.splitlines()[1:]
    names = nested.names_of(keys, more)
    mapping = replace(map_columns(names, columns, renamed), options=options)
    top = {name.partition(".")[0] for name in mapping.used} | set(mapping.used)
    unused = tuple(key for key in mapping.unused if key in keys and key not in top)
    mapping = replace(mapping, unused=unused)
    asked = {name.casefold(): key for name, key in renamed.items()}
    wanted = [
        parts[0] if parts and parts[0].casefold() != n.casefold() else asked.get(n.casefold(), n)
        for (n, _), parts in zip(columns, mapping.source, strict=True)
    ]
    reader = _Reader(columns, wanted, list(keys), options)
    return mapping, _array_pieces(source, reader) if array else _pieces(source, reader)


def _pieces(source: FileSource, reader: _Reader) -> Pieces:
    line = 1
    with source.binary() as stream:
        for block in blocks(stream, BLOCK, None, source.name, limited=False):
            if line == 1:
                block = block.removeprefix(BOM)
            if block.isspace():
                line += block.count(b"\n")
                continue
            block = block if block.endswith((b"\n", b"\r")) else block + b"\n"
            piece = reader.piece(block, line)
            piece.done = source.position()
            line += len(block.splitlines()) if has_lone_returns(block) else block.count(b"\n")
            yield piece


def _array_pieces(source: FileSource, reader: _Reader) -> Pieces:
    with source.binary() as stream:
        for block, numbers in json_array.read(stream, BLOCK, source.name):
            piece = numbered(reader.piece(block, 0), numbers)
            piece.done = source.position()
            yield piece


class _Reader:
    """Blocks of lines -> pieces.  `wanted` are the keys asked for, `keys` those of the first
    line."""

    def __init__(
        self,
        columns: Sequence[Column],
        wanted: Sequence[str],
        keys: Sequence[str],
        options: Options,
    ) -> None:
        self._columns, self._wanted, self._options = columns, wanted, options
        self._paths = {key: place for place, key in enumerate(wanted) if "." in key}
        folded = {key.casefold(): key for key in keys}
        self._spelled = [
            key if key in keys or key in self._paths else folded.get(key.casefold(), key)
            for key in wanted
        ]
        # instants as Arrow reads them, until some are written in a way that it does not know
        self._timed = not (options.unit or options.zone or options.time_formats)
        self._schema = self._made()
        self._only = True  # so far objects have had no keys but those that are read
        self._exact = {key: place for place, key in enumerate(wanted)}
        self._folded: dict[str, list[int]] = {}
        for place, key in enumerate(wanted):
            self._folded.setdefault(key.casefold(), []).append(place)
        self._numbers = Numbers(self._spelled, columns, options)
        self._simple = len(self._folded) == len(columns) and all(key.isascii() for key in wanted)
        self._simple = self._simple and self._schema is not None
        self._simple = self._simple and not any(sql.startswith("STRUCT") for _, sql in columns)

    def _made(self) -> pa.Schema | None:
        return nested.schema(self._spelled, [self._read_as(sql) for _, sql in self._columns])

    def _read_as(self, sql: str) -> pa.DataType:
        if sql == "TIMESTAMP" and self._timed:
            return TIMES
        return read_as(sql, self._options)

    def piece(self, block: bytes, first: int) -> Piece:
        """The rows of a block: lines that Arrow can't read line by line, the others as a whole."""
        found = self.whole(block, first)
        if found is not None:
            return found
        odd = self._odd(block)
        if not len(odd):
            return self.by_line(block, first)
        lines = block.splitlines(keepends=True)
        others = np.delete(np.arange(len(lines)), odd)
        rest = self.whole(b"".join(lines[i] for i in others), 0)
        if rest is None:
            return self.by_line(block, first)
        alone = self.by_line(b"".join(lines[i] for i in odd), 0)
        return merged(numbered(rest, others + first), numbered(alone, odd + first))

    def _odd(self, block: bytes) -> np.ndarray:
        """Which lines (from 0) Arrow says that it can't read; none, where it does not say it of
        each, or of so many that it does not pay."""
        none = np.empty(0, np.int64)
        if not self._simple or has_lone_returns(block) or b"\n\n" in block:
            return none
        if has_lines_of_null(block):
            return none
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1
        odd: list[int] = []
        starts, at = np.concatenate(([0], ends)), 0
        while at < len(ends):
            try:
                self._read_from(memoryview(block)[starts[at] :], "ignore")
                break
            except pa.ArrowException as problem:
                row = _ROW.search(str(problem))
            at += int(row[1]) if row is not None else len(ends)  # of objects, whatever their lines
            if at >= len(ends) or len(odd) > MANY + at // OFTEN:
                return none
            odd.append(at)
            at += 1
        return np.array(odd, np.int64)

    def whole(self, block: bytes, first: int) -> Piece | None:
        """The block as Arrow reads it, or None if anything is unusual."""
        shape = Shape.of(block)
        if not self._simple or self._numbers.odd(block):
            return None
        if not shape.plain and (has_lone_returns(block) or has_lines_of_null(block)):
            return None
        table = self._table(block)
        if table is None or table.num_rows != shape.lines:
            return None
        if not (shape.plain or has_lines_of_objects(block)):
            return None
        if self._paths and not self._only and self._has_points(block):
            return None
        arrays = []
        doubtful: set[int] = set()
        for key, (_, sql) in zip(self._spelled, self._columns, strict=True):
            array = nested.column(table, key)
            if array.type == TIMES:
                if (times := within(array.cast(pa.int64()))) is None:
                    return None
                array = times
            if (array := narrowed(array, sql, self._options)) is None:
                return None
            if array.type != arrow_type(sql):
                texts = array.cast(pa.string())
                array, bad = convert(texts, sql, self._options)
                if len(bad) or (sql == "INTERVAL" and without_units(texts)):
                    return None
            if sql == "FLOAT":
                doubtful.update(suspects(array).tolist())
            arrays.append(array)
        if doubtful and not self._all_exact(block, sorted(doubtful)):
            return None
        batch = pa.RecordBatch.from_arrays(arrays, [n for n, _ in self._columns])
        return Piece(batch, np.arange(first, first + table.num_rows))

    def _table(self, block: bytes) -> pa.Table | None:
        """As Arrow reads the block, which knows keys as they are spelled alone; None if anything is
        unusual.  Where objects have had other keys, it is looked whether these are keys of columns
        in another spelling."""
        if self._only:
            table = self._parsed(block, "error")
            if table is not None:
                return table
            if (table := self._parsed(block, "ignore")) is None:
                return None
            self._only = False
            return table if self._has_plain_keys(block) else None
        return self._parsed(block, "ignore") if self._has_plain_keys(block) else None

    def _parsed(self, block: bytes, others: str) -> pa.Table | None:
        try:
            table = self._read_from(block, others)
            table.validate(full=True)  # Arrow takes decimals of too many digits
        except pa.ArrowException:
            return None
        return table

    def _read_from(self, block: bytes | memoryview, others: str) -> pa.Table:
        try:
            return pyarrow.json.read_json(
                pa.BufferReader(block),
                pyarrow.json.ReadOptions(use_threads=False, block_size=len(block) + 1),
                pyarrow.json.ParseOptions(
                    explicit_schema=self._schema, unexpected_field_behavior=others
                ),
            )
        except pa.ArrowInvalid as problem:
            if not self._timed or f"JSON to {TIMES}" not in str(problem):
                raise
        self._timed = False
        self._schema = self._made()
        return self._read_from(block, others)

    def _has_points(self, block: bytes) -> bool:
        """Whether a key within a path has points itself, or text looks so."""
        lower = block.lower()
        return any(json.dumps(key).encode() in lower for key in nested.joined(self._paths))

    def _all_exact(self, block: bytes, places: list[int]) -> bool:
        """Whether the lines in these places are rows as their text says."""
        lines = block.split(b"\n")
        try:
            rows = [self._row(lines[i].decode(errors="surrogateescape")) for i in places]
        except ValueError:
            return False
        return not self._typed(rows)[0]

    def _has_plain_keys(self, block: bytes) -> bool:
        """No key of a column is spelled otherwise than in the first line.  Text that looks so is
        taken for one."""
        if b"\\" in block and _ESCAPED_KEY.search(block):
            return False
        plain = [key for key in self._spelled if key not in self._paths]
        lines, counts = block.count(b"\n"), [_count(block, key) for key in plain]
        if set(counts) == {lines} and block.count(b'":') == lines * len(counts):
            return True  # each line has these keys and no others
        lower = block.lower()
        return all(n == _count(lower, key.lower()) for n, key in zip(counts, plain, strict=True))

    def by_line(self, block: bytes, first: int) -> Piece:
        """Line by line, with reasons."""
        rows: list[list[Any]] = []
        lines: list[int] = []
        texts: list[str] = []
        rejects: list[Reject] = []
        for number, raw in enumerate(block.splitlines(), first):
            text = raw.decode(errors="surrogateescape")
            if not text.strip():
                continue
            try:
                rows.append(self._row(text))
            except ValueError as problem:
                rejects.append(rejected(number, str(problem), text))
                continue
            lines.append(number)
            texts.append(text)
        bad, arrays = self._typed(rows)
        rejects += [rejected(lines[i], why, texts[i]) for i, why in bad.items()]
        good = np.setdiff1d(np.arange(len(rows)), list(bad))
        batch = pa.RecordBatch.from_arrays(
            [a.take(pa.array(good)) for a in arrays], [n for n, _ in self._columns]
        )
        return Piece(
            batch, np.array(lines, np.int64)[good], sorted(rejects, key=lambda reject: reject.line)
        )

    def _typed(self, rows: list[list[Any]]) -> tuple[dict[int, str], list[pa.Array]]:
        """Which rows have a value that is not of its column, and the columns."""
        bad: dict[int, str] = {}
        arrays = []
        for place, (name, sql) in enumerate(self._columns):
            values = [row[place] for row in rows]
            for i, value in enumerate(values):
                if value is not None and not fits(value, sql):
                    bad.setdefault(i, f"{name}: {misfit(value, sql, self._options)}")
                    values[i] = None
            texts = pa.array([text_of(value) for value in values], pa.string())
            array, wrong = convert(texts, sql, self._options)
            for i in wrong.tolist():
                bad.setdefault(i, f"{name}: {misfit(values[i], sql, self._options)}")
            arrays.append(array)
        return bad, arrays

    def _row(self, text: str) -> list[Any]:
        """The values of a line in the order of the columns.  Raises ValueError that says what is
        wrong."""
        try:
            found = json.loads(
                text,
                object_pairs_hook=Pairs,
                parse_int=Number,
                parse_float=Number,
                parse_constant=Number,
            )
        except (ValueError, RecursionError) as problem:
            raise ValueError(f"not JSON: {problem}") from None
        if not isinstance(found, Pairs):
            raise ValueError(f"not an object but {kind_of(found)}")
        row: list[Any] = [None] * len(self._columns)
        taken: dict[int, str] = {}
        for key, value in found:
            place = self._place(key)
            if place is None:
                continue
            if place in taken:
                twice = f"as {json.dumps(taken[place])} and {json.dumps(key)}"
                raise ValueError(f"{self._columns[place][0]} is given twice, {twice}")
            taken[place] = key
            row[place] = value
        for path, place in self._paths.items():
            if place not in taken:
                row[place] = nested.value(found, path)
        return row

    def _place(self, key: str) -> int | None:
        """The column of a key: exactly as it is named, else in any case.  Raises ValueError if
        several are so."""
        if key in self._exact:
            return self._exact[key]
        places = self._folded.get(key.casefold(), [])
        if len(places) > 1:
            names = " or ".join(self._wanted[place] for place in places)
            raise ValueError(f"the key {json.dumps(key)} could be {names}")
        return places[0] if places else None


def _count(block: bytes, key: str) -> int:
    return block.count(json.dumps(key).encode())
