"""Columns of texts of lists -> LIST(T): items by the rule of a column of T, so that numbers are
lengths and, where their unit is known, instants there, too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms import lists
from dsms_client.files.counts import NUMBER

_GAPS = r"([0-9])\.0+([ \t\r\n]*[,\]])", r"\1\2"  # integers beside gaps, as pandas writes them
_DIGITS = r"^\s*[+-]?[0-9]+\s*$"
Convert = Callable[[pa.Array, str], tuple[pa.Array, np.ndarray]]


def listed(texts: pa.Array, item: str, convert: Convert) -> tuple[pa.Array, np.ndarray]:
    """(the lists as they are kept, NULL where one is none of that type; the positions of those).
    `convert`: a column of texts in a type."""
    if item == "INT":
        texts = pc.replace_substring_regex(texts, *_GAPS)
    if item not in ("TIMESTAMP", "INTERVAL"):
        found, misfits = lists.canonical(texts, item, exact=True)
        return found, np.flatnonzero(misfits)
    formed = lists.well_formed(texts).fill_null(True)
    lost = ~formed.to_numpy(zero_copy_only=False)
    there = lists.items(pc.if_else(formed, texts, pa.scalar(None, pa.string())))
    values, wrong = convert(there.texts, item)
    bad = np.zeros(len(there.texts), np.bool_)
    bad[wrong] = True
    if item == "INTERVAL":  # a length in quotes has units
        digits = pc.match_substring_regex(there.texts, _DIGITS).fill_null(False)
        bad |= there.quoted & digits.to_numpy(zero_copy_only=False)
    lost[there.rows[bad]] = True
    lost |= np.diff(there.starts) > lists.MOST
    found = lists.made(there.starts, values, item)
    gone = pa.array(lost | texts.is_null().to_numpy(zero_copy_only=False))
    return pc.if_else(gone, pa.scalar(None, pa.string()), found), np.flatnonzero(lost)


def has_numbers(text: str) -> bool:
    """Whether it is a list, and an item of it is a number."""
    column = pa.array([text])
    if not lists.well_formed(column)[0].as_py():
        return False
    found = pc.match_substring_regex(lists.items(column).texts, NUMBER)
    return bool(pc.any(found, min_count=0).as_py())
