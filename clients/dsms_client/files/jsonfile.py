"""JSON lines: an object per line, its keys are column names.

A block of lines is parsed by Arrow as a whole; only a block in which something does not fit is looked at line by line.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json

from dsms.errors import UsageError
from dsms_client.columns import arrow_type
from dsms_client.files.pieces import Column, Mapping, Piece, Pieces, Reject, map_columns
from dsms_client.files.source import Source
from dsms_client.files.text import convert

BLOCK = 4 << 20
_PLAIN = {"BOOL": (bool,), "INT": (int,), "FLOAT": (int, float), "STRING": (str,), "BYTES": (str,),
          "TIMESTAMP": (int, str), "INTERVAL": (int,), "DECIMAL": (int, str, float)}  # fmt: skip
_ARROW = {"TIMESTAMP": pa.string(), "BYTES": pa.string(), "DECIMAL": pa.string()}  # as they stand in the file


def read(source: Source, columns: Sequence[Column], renamed: dict[str, str]) -> tuple[Mapping, Pieces]:
    """How columns match (judged by the first line), and the pieces.  Raises DS520, DS521."""
    with source.text() as lines:
        first = next((line for line in lines if line.strip()), "")
    try:
        keys = json.loads(first)
        assert isinstance(keys, dict)
    except (ValueError, AssertionError):
        raise UsageError("DS521", f"{source.path} does not begin with a JSON object",
                         hint="JSON lines: one object per line") from None  # fmt: skip
    mapping = map_columns(list(keys), columns, renamed)
    named = Mapping(mapping.columns, tuple(s or n for s, (n, _) in zip(mapping.source, columns, strict=True)), ())
    return mapping, _pieces(source, named)


def _pieces(source: Source, mapping: Mapping) -> Pieces:
    line = 1
    for block in _blocks(source):
        piece = _fast(block, line, mapping) or _slow(block, line, mapping)
        piece.done = source.position()
        line += block.count(b"\n")
        yield piece


def _blocks(source: Source) -> Iterator[bytes]:
    """Whole lines, about BLOCK bytes at a time."""
    with source.binary() as stream:
        rest = b""
        while data := stream.read(BLOCK):
            data = rest + data
            cut = data.rfind(b"\n") + 1
            rest = data[cut:]
            if cut:
                yield data[:cut]
        if rest.strip():
            yield rest + b"\n"


def _fast(block: bytes, first: int, mapping: Mapping) -> Piece | None:
    """The block as Arrow reads it, or None if anything is unusual."""
    fields = [
        pa.field(source, _ARROW.get(sql.partition("(")[0], arrow_type(sql)))
        for (_, sql), source in zip(mapping.columns, mapping.source, strict=True)
        if source is not None
    ]
    options = pyarrow.json.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore")
    try:
        table = pyarrow.json.read_json(
            io.BytesIO(block), pyarrow.json.ReadOptions(use_threads=False, block_size=len(block) + 1), options
        )
    except pa.ArrowException:
        return None
    if table.num_rows != block.count(b"\n"):
        return None
    arrays = []
    for field, (_, sql) in zip(fields, mapping.columns, strict=True):
        array = table.column(field.name).combine_chunks()
        if field.type != arrow_type(sql):
            array, bad = convert(array, sql)
            if len(bad):
                return None
        arrays.append(array)
    batch = pa.RecordBatch.from_arrays(arrays, [n for n, _ in mapping.columns])
    return Piece(batch, np.arange(first, first + table.num_rows))


def _slow(block: bytes, first: int, mapping: Mapping) -> Piece:
    """Line by line, with reasons."""
    values: list[list[Any]] = [[] for _ in mapping.columns]
    lines, rejects = [], []
    for number, raw in enumerate(block.splitlines(), first):
        text = raw.decode(errors="replace")
        if not text.strip():
            continue
        try:
            row = _row(text, mapping)
        except ValueError as problem:
            rejects.append(Reject(number, str(problem), text))
            continue
        for column, value in zip(values, row, strict=True):
            column.append(value)
        lines.append(number)
    arrays = [
        pa.concat_arrays(column) if column else pa.array([], arrow_type(sql))
        for column, (_, sql) in zip(values, mapping.columns, strict=True)
    ]
    batch = pa.RecordBatch.from_arrays(arrays, [n for n, _ in mapping.columns])
    return Piece(batch, np.array(lines, np.int64), rejects)


def _row(text: str, mapping: Mapping) -> list[pa.Array]:
    """One line as arrays of one value.  Raises ValueError that says what is wrong."""
    try:
        found = json.loads(text)
    except ValueError as problem:
        raise ValueError(f"not JSON: {problem}") from None
    if not isinstance(found, dict):
        raise ValueError(f"not an object but {type(found).__name__}")
    folded = {k.casefold(): v for k, v in found.items()}
    return [
        _value(name, sql, folded.get((source or name).casefold()))
        for (name, sql), source in zip(mapping.columns, mapping.source, strict=True)
    ]


def _value(name: str, sql: str, value: Any) -> pa.Array:
    kind = sql.partition("(")[0]
    if value is None:
        return pa.nulls(1, arrow_type(sql))
    if type(value) not in _PLAIN[kind]:
        raise ValueError(f"{name}: {json.dumps(value)} is not {sql}")
    array = None
    try:
        if kind in _ARROW:
            array, bad = convert(pa.array([str(value)]), sql)
            array = None if len(bad) else array
        else:
            array = pa.array([float(value) if kind == "FLOAT" else value], arrow_type(sql))
    except (pa.ArrowException, OverflowError):
        pass
    if array is None:
        raise ValueError(f"{name}: {json.dumps(value)} is not {sql}")
    return array
