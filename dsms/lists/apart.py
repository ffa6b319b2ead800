"""Texts of lists taken apart: their items, as they stand there.  By whole columns of bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

ITEM = (
    r"(?:null|true|false|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
    r'|"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")'
)
BLANK = r"[ \t\n\r]*"
_LIST = rf"^{BLANK}\[{BLANK}(?:{ITEM}{BLANK}(?:,{BLANK}{ITEM}{BLANK})*)?\]{BLANK}$"
_TEXT = pa.string()


@dataclass(frozen=True, slots=True)
class Items:
    """The items of n lists: those of list i are from starts[i] to starts[i + 1] (int64[n + 1]).

    texts   STRING: what stands there, without quotes and escapes; NULL for null
    quoted  bool: whether it stood in quotes
    """

    starts: np.ndarray
    texts: pa.Array
    quoted: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """int64: the list of each item."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


def well_formed(texts: pa.Array) -> pa.Array:
    """BOOL[n]: whether each is JSON of a list of plain values; NULL for NULL."""
    return pc.match_substring_regex(texts, _LIST)


def counts(texts: pa.Array) -> np.ndarray:
    """int64[n]: items of each list, 0 for NULL."""
    return np.diff(_places(texts)[0])


def items(texts: pa.Array) -> Items:
    """The items of well-formed lists; a NULL has none."""
    return _items(*_places(texts))


def members(texts: pa.Array, keys: Sequence[str]) -> Items:
    """The values of objects that have these keys (as JSON spells them) in this order, each once; a
    NULL has none."""
    starts, data, begin, end = _places(texts)
    behind = np.array([len(key.encode()) + 1 for key in keys], np.int64)  # and the colon
    return _items(starts, data, begin + np.tile(behind, len(begin) // len(keys)), end)


def _items(starts: np.ndarray, data: np.ndarray, begin: np.ndarray, end: np.ndarray) -> Items:
    quoted = data[begin] == ord('"')
    begin, end = begin + quoted, end - quoted
    found = cut(data, begin, end)
    bare_null = pa.array(~quoted & (end - begin == 4) & (data[begin] == ord("n")))
    if pc.any(bare_null, min_count=0).as_py():
        found = pc.if_else(bare_null, pa.nulls(len(found), _TEXT), found)
    return Items(starts, _unescaped(found, quoted), quoted)


def _places(texts: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(starts of lists among all items, bytes, where items begin, where they end)."""
    data, ends = _compact(texts)
    inside = _inside(data)
    comma = np.flatnonzero((data == ord(",")) & ~inside)
    sizes = np.diff(ends)
    some = sizes > 2  # neither NULL nor []
    first, last = ends[:-1][some] + 1, ends[1:][some] - 1
    count = np.diff(np.searchsorted(comma, ends)) + some
    starts = np.concatenate([[0], np.cumsum(count)])
    begin = np.sort(np.concatenate([first, comma + 1]))
    end = np.sort(np.concatenate([last, comma]))
    return starts, data, begin, end


def _compact(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of all texts, without blanks outside of quotes, and int64[n + 1] where each
    begins."""
    if texts.null_count:
        texts = texts.fill_null("")
    n = len(texts)
    if not n:
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    ends = np.frombuffer(texts.buffers()[1], np.int32, n + 1, 4 * texts.offset).astype(np.int64)
    raw = texts.buffers()[2]
    data = np.empty(0, np.uint8) if raw is None else np.frombuffer(raw, np.uint8)
    data, ends = data[ends[0] : ends[-1]], ends - ends[0]
    blank = (data == 32) | ((data >= 9) & (data <= 13))
    kept = ~blank | _inside(data)
    before = np.concatenate([[0], np.cumsum(kept)])
    return data[kept], before[ends]


def _inside(data: np.ndarray) -> np.ndarray:
    """bool: whether a byte is one of a quoted text, whose closing quote is none of it."""
    quote = data == ord('"')
    if not quote.any():
        return quote
    slash = data == ord("\\")
    if slash.any():
        quote &= ~_escaped(slash)
    return (np.cumsum(quote) & 1).astype(np.bool_)


def _escaped(slash: np.ndarray) -> np.ndarray:
    """bool: whether an odd number of backslashes stands before a byte."""
    place = np.arange(len(slash))
    other = np.where(~slash, place, -1)
    run = place - np.maximum.accumulate(other)  # backslashes up to here
    odd = np.zeros(len(slash), np.bool_)
    odd[1:] = run[:-1] & 1 == 1
    return odd


def cut(data: np.ndarray, begin: np.ndarray, end: np.ndarray) -> pa.Array:
    """The texts from begin to end, which do not overlap and ascend."""
    mark = np.zeros(len(data) + 1, np.int8)
    np.add.at(mark, begin, 1)
    np.add.at(mark, end, -1)
    kept = data[np.cumsum(mark[:-1], dtype=np.int8).astype(np.bool_)]
    offsets = np.concatenate([[0], np.cumsum(end - begin)]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(kept))]
    return pa.Array.from_buffers(_TEXT, len(begin), buffers)


def _unescaped(texts: pa.Array, quoted: np.ndarray) -> pa.Array:
    escaped = pc.and_(pc.match_substring(texts, "\\").fill_null(False), pa.array(quoted))
    if not pc.any(escaped, min_count=0).as_py():
        return texts
    raw = texts.filter(escaped).to_pylist()
    plain = json.loads("[" + ",".join(f'"{text}"' for text in raw) + "]")
    return pc.replace_with_mask(texts, escaped, pa.array(list(map(_whole_text, plain)), _TEXT))


def _whole_text(text: str) -> str | None:
    """None for halves of characters, which are no text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return text
