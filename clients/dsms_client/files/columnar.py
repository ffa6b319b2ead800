"""Columns that are typed already: the server judges their types; single values that are none of
their type refuse their rows, as in files of text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from dsms.forms.encodings import without_encodings
from dsms.lists import item_of
from dsms.untrusted.types import decoded, is_list
from dsms_client.files.fitting import from_texts, is_text, misfits
from dsms_client.files.options import Options
from dsms_client.files.pieces import Mapping, Piece, Pieces, Reject, note, texts_of
from dsms_client.files.text import convert, no_unit, reason, suspects


def check_units(schema: pa.Schema, mapping: Mapping) -> None:
    """Raises DS503 for numbers that are instants of no known unit."""
    for (name, sql), parts in zip(mapping.columns, mapping.source, strict=True):
        instants = sql == "TIMESTAMP" or item_of(sql) == "TIMESTAMP"
        if instants and mapping.options.unit is None and len(parts) == 1:
            kind = schema.field(parts[0]).type
            if _is_number(_item(kind)):
                raise no_unit(name, str(kind))


def _item(kind: pa.DataType) -> pa.DataType:
    """What lists hold; other types as they are."""
    return decoded(kind).value_type if is_list(decoded(kind)) else kind


def _is_number(kind: pa.DataType) -> bool:
    kind = decoded(kind)
    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))


def pieces(
    batches: Iterable[pa.RecordBatch], mapping: Mapping, done: Callable[[int], int]
) -> Pieces:
    """A piece for each batch of the columns that are used, which is valid; `done` says of a number
    of rows how many bytes of the file were read for them."""
    pairs = [(n, t, s) for (n, t), s in zip(mapping.columns, mapping.source, strict=True) if s]
    seen = 0
    for batch in batches:
        lines = np.arange(seen + 1, seen + 1 + batch.num_rows)
        seen += batch.num_rows
        bad: dict[int, str] = {}
        arrays = [_column(_joined(batch, s), n, t, mapping.options, bad) for n, t, s in pairs]
        named = pa.RecordBatch.from_arrays(arrays, [n for n, _, _ in pairs])
        rejects = [Reject(int(lines[i]), why, "") for i, why in sorted(bad.items())]
        if bad:
            good = np.setdiff1d(np.arange(len(lines)), list(bad))
            named, lines = named.take(pa.array(good)), lines[good]
        yield Piece(named, lines, rejects, done(seen))


def _joined(batch: pa.RecordBatch, parts: Sequence[str]) -> pa.Array:
    """A column of the file, or the texts of several."""
    if len(parts) == 1:
        return batch.column(parts[0])
    texts = {part: without_encodings(batch.column(part)).cast(pa.string()) for part in parts}
    return texts_of(texts, parts, batch.num_rows)


def _column(
    array: pa.Array, name: str, sql: str, options: Options, bad: dict[int, str]
) -> pa.Array:
    """A column as it is sent, the rows that have no such value noted in `bad`."""
    if (item := item_of(sql)) is not None and is_list(decoded(array.type)):
        return _lists(without_encodings(array), name, item, options, bad)
    if sql == "TIMESTAMP":
        return _instants(array, name, options, bad)
    if sql == "DATE" and kinds.is_timestamp(decoded(array.type)):
        return _days(without_encodings(array), name, bad)
    if sql.startswith(_WRITTEN) and is_text(decoded(array.type)):
        texts = without_encodings(array).cast(pa.string())
        found, wrong = from_texts(texts, sql, options)
        note(bad, wrong, texts, name, sql, options)
        return found
    if sql == "INT" or sql.startswith("DECIMAL"):
        return _numbers(array, name, sql, bad)
    if sql == "FLOAT" and kinds.is_integer(array.type) and array.type.bit_width == 64:
        return _floats(array, name, bad)
    return array


_WRITTEN = (
    "INTERVAL",
    "DECIMAL",
    "DATE",
    "TIME",
    "UUID",
    "LIST",
    "STRUCT",
)  # types that are texts, too


def _days(array: pa.Array, name: str, bad: dict[int, str]) -> pa.Array:
    """Instants as days, those at another time than midnight noted in `bad`."""
    wrong = pc.not_equal(array, pc.floor_temporal(array, unit="day")).fill_null(False)
    for row in np.flatnonzero(wrong.to_numpy(zero_copy_only=False)).tolist():
        bad.setdefault(row, f"{name}: {array[row]} is not DATE: a DATE has no time of the day")
    return pc.if_else(wrong, pa.scalar(None, array.type), array)


def _lists(
    array: pa.Array, name: str, item: str, options: Options, bad: dict[int, str]
) -> pa.Array:
    """Lists whose items are what a column of them would be."""
    items, wrong = array.flatten(), dict[int, str]()
    found = _column(items, name, item, options, wrong)
    if found is items:
        return array
    count = pc.list_value_length(array).fill_null(0).cast(pa.int64()).to_numpy()
    starts = np.concatenate([[0], np.cumsum(count)])
    for at, why in wrong.items():
        bad.setdefault(int(np.searchsorted(starts, at, "right")) - 1, why)
    mask = array.is_null() if array.null_count else None
    return pa.LargeListArray.from_arrays(pa.array(starts), found, mask=mask)


def _numbers(array: pa.Array, name: str, sql: str, bad: dict[int, str]) -> pa.Array:
    """Numbers, NULL where one is not of the type."""
    plain = without_encodings(array)
    wrong = misfits(plain, sql)
    if not len(wrong):
        return array
    for row in wrong.tolist():
        bad.setdefault(row, f"{name}: {plain[row].as_py()} is not {sql}")
    mask = np.zeros(len(plain), np.bool_)
    mask[wrong] = True
    return pc.if_else(pa.array(mask), pa.scalar(None, plain.type), plain)


def _floats(array: pa.Array, name: str, bad: dict[int, str]) -> pa.Array:
    """Integers as floats."""
    floats = array.cast(pa.float64(), safe=False)
    for row in suspects(floats).tolist():
        if int(floats[row].as_py()) != (value := array[row].as_py()):
            bad.setdefault(row, f"{name}: {value} is not FLOAT{reason(str(value), 'FLOAT')}")
    return floats


def _instants(array: pa.Array, name: str, options: Options, bad: dict[int, str]) -> pa.Array:
    """Numbers and text as instants, the rows that have none noted in `bad`; other columns as they
    are."""
    if decoded(array.type) != array.type:
        array = without_encodings(array)
    if not is_text(array.type) and not _is_number(array.type):
        return array
    texts = array.cast(pa.string())
    found, wrong = convert(texts, "TIMESTAMP", options)
    note(bad, wrong, texts, name, "TIMESTAMP", options)
    return found
