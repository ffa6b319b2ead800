"""Parquet: typed already, so the server judges its columns as a whole and its rows one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pyarrow.types as kinds

from dsms.errors import UsageError
from dsms.untrusted.types import check_schema
from dsms_client.files.pieces import Column, Mapping, Piece, Pieces, Reject, map_columns
from dsms_client.files.source import FileSource
from dsms_client.files.text import convert, no_unit, reason, suspects


def read(
    source: FileSource,
    columns: Sequence[Column],
    renamed: dict[str, str],
    rows: int,
    unit: str | None = None,
) -> tuple[Mapping, Pieces]:
    """How columns match, and the pieces of at most `rows` rows.  Raises DS503, DS532, DS530."""
    try:
        file = pyarrow.parquet.ParquetFile(source.path)
        mapping = map_columns(file.schema_arrow.names, columns, renamed)
        check_schema(
            pa.schema([file.schema_arrow.field(s) for s in mapping.source if s is not None])
        )
    except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
        raise UsageError("DS530", f"cannot read {source.path} as Parquet: {problem}") from None
    _check_units(file.schema_arrow, mapping, unit)
    return mapping, _pieces(file, source, mapping, rows, unit)


def _check_units(schema: pa.Schema, mapping: Mapping, unit: str | None) -> None:
    """Raises DS503 for numbers that are instants of no known unit."""
    for (name, sql), source in zip(mapping.columns, mapping.source, strict=True):
        if (
            source is not None
            and sql == "TIMESTAMP"
            and unit is None
            and _is_number(schema.field(source).type)
        ):
            raise no_unit(name, str(schema.field(source).type))


def _is_number(kind: pa.DataType) -> bool:
    kind = kind.value_type if kinds.is_dictionary(kind) else kind
    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))


def _pieces(
    file: pyarrow.parquet.ParquetFile,
    source: FileSource,
    mapping: Mapping,
    rows: int,
    unit: str | None,
) -> Pieces:
    pairs = [
        (n, t, s)
        for (n, t), s in zip(mapping.columns, mapping.source, strict=True)
        if s is not None
    ]
    total, seen = max(file.metadata.num_rows, 1), 0
    with file:
        for batch in file.iter_batches(rows, columns=[s for _, _, s in pairs]):
            lines = np.arange(seen + 1, seen + 1 + batch.num_rows)
            seen += batch.num_rows
            batch.validate(full=True)
            bad: dict[int, str] = {}
            arrays = [_column(batch.column(s), n, t, unit, bad) for n, t, s in pairs]
            named = pa.RecordBatch.from_arrays(arrays, [n for n, _, _ in pairs])
            rejects = [Reject(int(lines[i]), why, "") for i, why in sorted(bad.items())]
            if bad:
                good = np.setdiff1d(np.arange(len(lines)), list(bad))
                named, lines = named.take(pa.array(good)), lines[good]
            yield Piece(named, lines, rejects, source.size * seen // total)


def _column(
    array: pa.Array, name: str, sql: str, unit: str | None, bad: dict[int, str]
) -> pa.Array:
    """A column as it is sent, the rows that have no such value noted in `bad`."""
    if sql == "TIMESTAMP":
        return _instants(array, name, unit, bad)
    if sql == "FLOAT" and kinds.is_integer(array.type) and array.type.bit_width == 64:
        return _floats(array, name, bad)
    return array


def _floats(array: pa.Array, name: str, bad: dict[int, str]) -> pa.Array:
    """Integers as floats."""
    floats = array.cast(pa.float64(), safe=False)
    for row in suspects(floats).tolist():
        if int(floats[row].as_py()) != (value := array[row].as_py()):
            bad.setdefault(row, f"{name}: {value} is not FLOAT{reason(str(value), 'FLOAT')}")
    return floats


def _instants(array: pa.Array, name: str, unit: str | None, bad: dict[int, str]) -> pa.Array:
    """Numbers and text as instants, the rows that have none noted in `bad`; other columns as they
    are."""
    if kinds.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    text = (
        kinds.is_string(array.type)
        or kinds.is_large_string(array.type)
        or kinds.is_string_view(array.type)
    )
    if not text and not _is_number(array.type):
        return array
    texts = array.cast(pa.string())
    found, wrong = convert(texts, "TIMESTAMP", unit)
    for row in wrong.tolist():
        bad.setdefault(
            row,
            f"{name}: {texts[row].as_py()!r} is not "
            f"TIMESTAMP{reason(texts[row].as_py(), 'TIMESTAMP')}",
        )
    return found
