"""Columns of text -> columns of a stream's types, naming the values that are not of their type.

INT (also ``3.0``) and DECIMAL as usual, BOOL also as ``T`` and ``F``; FLOAT as the nearest one, but
integers only as exact ones; TIMESTAMP as `dsms.instants` reads it, in formats that are said, or a
number where the unit is known; INTERVAL as `dsms.lengths` reads it, or an integer count of
microseconds; DATE, TIME and UUID as `dsms.typed_texts`; BYTES as ``\\x`` and hex digits, else the
text's UTF-8; LIST and STRUCT as JSON.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms import lists, structs, typed_texts
from dsms.decimals import decimals
from dsms.errors import UsageError
from dsms.instants import MAX_INSTANT, MIN_INSTANT, instants, why_not
from dsms.lengths import lengths
from dsms.tabular.kinds import arrow_type
from dsms_client.files import times
from dsms_client.files.counts import NUMBER, UNITS, micros, usual
from dsms_client.files.listed import has_numbers, listed
from dsms_client.files.options import Options

NO_UNIT = f"a number says no unit: give --time-unit {'|'.join(UNITS)}"
_WHOLE = 2.0**53  # integers up to here are exact as FLOATs
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_NUMBER = re.compile(NUMBER.strip("^$"))
_INTEGER = r"^[+-]?[0-9]+$"
_GAPS = r"^([+-]?[0-9]+)\.0*$"  # an integer as pandas writes it in a column that has gaps

# what has another form is not of the type; what has this one may still be too large for it
_FORMS = {
    "INT": r"^[+-]?[0-9]+(?:\.0*)?$",
    "FLOAT": r"(?i)^[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)$",
    "DECIMAL": r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$",
    "BOOL": r"(?i)^(?:true|false|t|f|1|0)$",
}
_BYTES = r"^\\x(?:\s*[0-9a-fA-F]{2})*\s*$"
_LETTERS = r"(?i)^[tf]$"


def convert(
    texts: pa.Array,
    sql: str,
    options: Options = Options(),  # noqa: B008  (frozen)
) -> tuple[pa.Array, np.ndarray]:
    """The column in the physical type of `sql`, NULL where a value is not of it, and the positions
    of those."""
    kind = sql.partition("(")[0]
    if kind == "STRING":
        return texts, np.empty(0, np.int64)
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), arrow_type(sql)), np.empty(0, np.int64)
    if kind == "BYTES":
        misformed = pc.invert(pc.match_substring_regex(texts, _BYTES))
        wrong = pc.and_(pc.starts_with(texts, "\\x"), misformed).fill_null(False)
        good = pc.if_else(wrong, pa.scalar(None, pa.string()), texts)
        return _blobs(good), _places(wrong)
    if kind == "TIMESTAMP" and options.unit is not None:
        values = usual(texts, options.unit)
        if values is not None and not _outside(values).any():
            return pa.array(values), np.empty(0, np.int64)
    if kind == "STRUCT":
        structs_, none = structs.canonical(texts, structs.fields_of(sql) or ())
        return structs_, np.flatnonzero(none)
    if kind == "LIST":
        item = lists.item_of(sql) or "NULL"
        return listed(texts, item, lambda items, of: convert(items, of, options))
    texts = pc.utf8_trim_whitespace(texts)
    if options.decimal != "." and kind in ("INT", "FLOAT", "DECIMAL"):
        texts = _pointed(texts, options.decimal)
    if options.decimal != "." and kind == "TIMESTAMP" and options.unit is not None:
        number = rf"^([+-]?[0-9]+){re.escape(options.decimal)}([0-9]+)$"
        texts = pc.replace_substring_regex(texts, number, r"\1.\2")
    if kind in _READ:
        array = _READ[kind](texts, options)
        bad = pc.and_(array.is_null(), texts.is_valid()) if array.null_count else None
        return array, np.empty(0, np.int64) if bad is None else _places(bad)
    return _plain(texts, sql, kind)


_READ: dict[str, Callable[[pa.Array, Options], pa.Array]] = {
    "TIMESTAMP": lambda texts, options: _instants(texts, options),
    "INTERVAL": lambda texts, options: _lengths(texts),
    "DATE": lambda texts, options: typed_texts.dates(texts),
    "TIME": lambda texts, options: typed_texts.times(texts),
    "UUID": lambda texts, options: typed_texts.uuids(texts),
}


def _plain(texts: pa.Array, sql: str, kind: str) -> tuple[pa.Array, np.ndarray]:
    """Numbers and BOOLs."""
    if kind == "BOOL":
        texts = _words(texts)
    try:
        array, found = _whole(texts, sql), np.empty(0, np.int64)
    except (pa.ArrowException, ValueError):
        formed = pc.match_substring_regex(texts, _FORMS[kind])
        left = pc.if_else(formed, texts, pa.scalar(None, pa.string()))
        large: list[int] = []
        array = pa.concat_arrays(_convert(left, sql, 0, large))
        misformed = np.flatnonzero(~np.asarray(formed.fill_null(True)))
        found = np.union1d(misformed, np.array(large, np.int64))
    if kind == "FLOAT" and (inexact := _inexact(texts, array)):
        found = np.union1d(found, np.array(inexact, np.int64))
        array = _without(array, inexact)
    return array, found


def _words(texts: pa.Array) -> pa.Array:
    """``T`` and ``F`` as Arrow reads them."""
    letters = pc.match_substring_regex(texts, _LETTERS).fill_null(False)
    if not pc.any(letters, min_count=0).as_py():
        return texts
    words = pc.if_else(pc.equal(pc.utf8_upper(texts), "T"), "true", "false")
    return pc.if_else(letters, words, texts)


def _pointed(texts: pa.Array, decimal: str) -> pa.Array:
    """Numbers with a decimal comma, and points or no-break spaces between thousands, as others
    write them; what has a point elsewhere is no number."""
    thousands = r"^([+-]?[0-9]{1,3})((?:[.\x{00A0}\x{202F}'][0-9]{3})+)(,[0-9]*)?$"
    grouped = pc.match_substring_regex(texts, thousands).fill_null(False)
    if pc.any(grouped, min_count=0).as_py():
        bare = pc.replace_substring_regex(texts, r"[.\x{00A0}\x{202F}']", "")
        texts = pc.if_else(grouped, bare, texts)
    return pc.replace_substring(pc.replace_substring(texts, ".", "?"), decimal, ".")


def suspects(array: pa.Array) -> np.ndarray:
    """Where FLOATs read from text lie beyond the integers that all are exact."""
    values = array.to_numpy(zero_copy_only=False)
    return np.flatnonzero(np.abs(values) >= _WHOLE)


def _inexact(texts: pa.Array, array: pa.Array) -> list[int]:
    """Where an integer is not exact as a FLOAT, or a number too large for one."""
    places = suspects(array).tolist()
    return [i for i in places if _float_problem(texts[i].as_py(), array[i].as_py())]


def _float_problem(text: str, value: float) -> str:
    if math.isinf(value):
        return "" if _INFINITE.fullmatch(text) else "too large for FLOAT"
    inexact = re.fullmatch(_INTEGER, text) and Decimal(text) != value
    return "an integer that is not exact as a FLOAT" if inexact else ""


def _without(array: pa.Array, places: list[int]) -> pa.Array:
    """NULL in those places."""
    mask = np.zeros(len(array), np.bool_)
    mask[places] = True
    return pc.if_else(pa.array(mask), pa.scalar(None, array.type), array)


def reason(text: str, sql: str, options: Options = Options()) -> str:  # noqa: B008  (frozen)
    """Why a text is not of its type, as far as there is more to say."""
    kind = sql.partition("(")[0]
    if kind == "FLOAT":
        why = _float_problem(text.strip(), _as_float(text))
        return f": {why}" if why else _comma(text, options)
    if kind in ("INT", "DECIMAL"):
        return _comma(text, options)
    if lists.item_of(sql) == "TIMESTAMP" and options.unit is None and has_numbers(text):
        return f": {NO_UNIT}"
    if kind in typed_texts.READ:
        return f": {typed_texts.why_not(text, kind)}"
    if kind != "TIMESTAMP":
        return ""
    if _NUMBER.fullmatch(text.strip()):
        return f": {NO_UNIT}" if options.unit is None else ": too far away"
    formats = times.guess(pa.array([text.strip()]))
    if formats and not options.time_formats:
        ways = " or ".join(f"'{form}'" for form in formats[:2])
        return f": give --time-format {ways}"
    why = why_not(text)
    if options.zone is not None and instants(pa.array([text]))[0].is_valid:
        why = f"the clocks of {options.zone} skip it"
    return f": {why}"


def _comma(text: str, options: Options) -> str:
    """What to do about a decimal comma."""
    commas = options.decimal == "." and re.fullmatch(r"\s*[+-]?[0-9]*,[0-9]+\s*", text)
    return ": give --decimal ," if commas else ""


def _as_float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def no_unit(column: str, number: str) -> UsageError:
    """DS503: numbers in a file where instants should be."""
    return UsageError(
        "DS503",
        f"column {column!r}: expected TIMESTAMP, the file has numbers ({number}) whose unit is "
        "not known",
        hint="give --time-unit s, ms, us or ns: what they count since 1970",
    )


def _convert(texts: pa.Array, sql: str, first: int, bad: list[int]) -> list[pa.Array]:
    """Whole, or by halves around the values that do not convert."""
    try:
        return [_whole(texts, sql)] if len(texts) else []
    except (pa.ArrowException, ValueError):
        if len(texts) == 1:
            bad.append(first)
            return [pa.nulls(1, arrow_type(sql))]
        half = len(texts) // 2
        return _convert(texts.slice(0, half), sql, first, bad) + _convert(
            texts.slice(half), sql, first + half, bad
        )


def _whole(texts: pa.Array, sql: str) -> pa.Array:
    to = arrow_type(sql)
    if pa.types.is_decimal(to):
        return decimals(texts, to)
    return pc.cast(_whole_numbers(texts) if sql == "INT" else texts, to)


def _whole_numbers(texts: pa.Array) -> pa.Array:
    """As Arrow reads them: without a plus sign.  Raises ValueError for 0x1F, which Arrow would
    read, too."""
    if pc.any(pc.match_substring(texts, "x", ignore_case=True)).as_py():
        raise ValueError("hexadecimal digits")
    if pc.any(pc.match_substring(texts, ".")).as_py():
        texts = pc.replace_substring_regex(texts, _GAPS, r"\1")
    plus = pc.any(pc.starts_with(texts, "+")).as_py()
    return pc.replace_substring_regex(texts, r"^\+([0-9])", r"\1") if plus else texts


def _instants(texts: pa.Array, options: Options) -> pa.Array:
    if options.unit is None:
        return _dated(texts, options)
    counts = pc.match_substring_regex(texts, NUMBER).fill_null(False)
    if not pc.any(counts, min_count=0).as_py():
        return _dated(texts, options)
    if pc.all(counts).as_py():
        values = micros(texts, options.unit)
        return pa.array(values, mask=_outside(values))
    values = micros(texts.filter(counts), options.unit)
    rest = _dated(pc.if_else(counts, pa.scalar(None, pa.string()), texts), options)
    return pc.replace_with_mask(rest, counts, pa.array(values, mask=_outside(values)))


def _outside(values: np.ndarray) -> np.ndarray:
    return (values < MIN_INSTANT) | (values > MAX_INSTANT)


def _dated(texts: pa.Array, options: Options) -> pa.Array:
    if options.zone is None and not options.time_formats:
        return instants(texts)
    return times.parse(texts, options.time_formats, options.zone)


def _lengths(texts: pa.Array) -> pa.Array:
    counts = pc.match_substring_regex(texts, _INTEGER).fill_null(False)
    if not pc.any(counts, min_count=0).as_py():
        return lengths(texts)
    rest = lengths(pc.if_else(counts, pa.scalar(None, pa.string()), texts))
    return pc.replace_with_mask(rest, counts, _convert_counts(texts.filter(counts)))


def _convert_counts(texts: pa.Array) -> pa.Array:
    pieces = _convert(texts, "INT", 0, [])
    return pa.concat_arrays(pieces)


def _places(mask: pa.Array) -> np.ndarray:
    return np.flatnonzero(mask.to_numpy(zero_copy_only=False))


def _blobs(texts: pa.Array) -> pa.Array:
    values = (
        bytes.fromhex(t[2:]) if t and t.startswith("\\x") else t and t.encode()
        for t in texts.to_pylist()
    )
    return pa.array([v if v != "" else b"" for v in values], pa.binary())
