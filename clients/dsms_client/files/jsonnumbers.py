"""DECIMALs, and numbers that are instants, in lines of JSON: what Arrow reads them as, and where it
might read them wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dsms.decimals import NARROW, WIDE, resized
from dsms.lists import canonical, item_of, written
from dsms.structs import fields_of
from dsms.tabular.kinds import arrow_type
from dsms_client.files.options import Options
from dsms_client.files.pieces import Column
from dsms_client.files.text import convert

_WHOLE = 2.0**53  # integers up to here are exact as FLOATs
_ITEMS = {"INT": pa.int64(), "FLOAT": pa.float64(), "STRING": pa.string(), "BOOL": pa.bool_()}
_COUNTS = pa.decimal256(WIDE, 9)  # of instants, which Arrow reads from numbers and from text
# a run of so many digits and points may be more than Arrow can count
_LONG, _DIGITS = b"0" * (NARROW + 1), bytes.maketrans(b"123456789.", b"0000000000")


def read_as(sql: str, options: Options) -> pa.DataType:
    """A type that has room for what Arrow makes of the texts on its way to one of SQL."""
    if sql == "TIMESTAMP" and options.unit is not None:
        return _COUNTS
    if sql in ("TIMESTAMP", "INTERVAL", "BYTES", "DATE", "TIME", "UUID"):
        return pa.string()
    if fields_of(sql) is not None:
        return pa.string()  # of which Arrow knows that no object is one
    if (item := item_of(sql)) is not None:
        return pa.list_(_ITEMS[item]) if item in _ITEMS else pa.string()
    found = arrow_type(sql)
    if pa.types.is_decimal(found) and found.precision + found.scale > NARROW:
        return pa.decimal256(WIDE, found.scale)
    return found


def narrowed(array: pa.Array, sql: str, options: Options) -> pa.Array | None:
    """A column that was read so as the one that it is; None if a number is too large for it."""
    if (item := item_of(sql)) is not None:
        return _listed(array, item, options)
    if not (pa.types.is_decimal256(array.type) and sql.startswith("DECIMAL")):
        return array
    try:
        return resized(array, arrow_type(sql))
    except pa.ArrowInvalid:
        return None


def _listed(array: pa.Array, item: str, options: Options) -> pa.Array | None:
    """Lists as texts; None if some is no such list, or a number may not be exact as a FLOAT."""
    if item == "TIMESTAMP":
        found, wrong = convert(array, "LIST(TIMESTAMP)", options)
        return None if len(wrong) else found
    if not pa.types.is_list(array.type):
        found, bad = canonical(array, item, exact=True)
        return None if bad.any() else found
    values = array.flatten()
    if pa.types.is_floating(values.type) and (pc.max(pc.abs(values)).as_py() or 0.0) >= _WHOLE:
        return None
    return written(array, item)


def without_units(texts: pa.Array) -> bool:
    """Whether some are digits alone, which as numbers are lengths, and as texts are none."""
    return bool(pc.any(pc.match_substring_regex(texts, r"^\s*[+-]?[0-9]+\s*$")).as_py())


class Numbers:
    """What to look for, of columns whose keys are spelled so."""

    def __init__(self, keys: Sequence[str], columns: Sequence[Column], options: Options) -> None:
        decimals = [k for k, (_, sql) in zip(keys, columns, strict=True) if "DECIMAL" in sql]
        names = b"|".join(re.escape(key.rpartition(".")[2].encode()) for key in decimals)
        self._some = bool(decimals) or options.unit is not None
        self._tiny = (
            re.compile(rb'"(?:%s)"[ \t]*:[ \t]*"?[+-]?[0-9.]+[eE]-' % names) if names else None
        )

    def odd(self, block: bytes) -> bool:
        """Whether a number may have more digits than Arrow counts, or a DECIMAL an exponent of
        which Arrow might leave nothing.  Text that looks so is taken for one."""
        if not self._some:
            return False
        if _LONG in block.translate(_DIGITS):
            return True
        small = self._tiny is not None and (b"e-" in block or b"E-" in block)
        return small and self._tiny.search(block) is not None  # type: ignore[union-attr]
