"""Values as 64-bit words, so that every aggregate kernel works on int64 arrays.

INT, TIMESTAMP, INTERVAL   themselves
BOOL                       0 or 1
FLOAT                      an int64 that sorts as the numbers do, NaN last; -0.0 is 0.0
DECIMAL up to 18 digits    the unscaled number; wider ones: low half here, high half in a second
                           word
STRING, BYTES, any order   a code, with `rank` (by code) in the order of the values; wide DECIMALs
                           likewise
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from dsms.aggregates.card import Form
from dsms.aggregates.cards import CARDS
from dsms.aggregates.parts.fold import ranges
from dsms.sql.expr import AggCall
from dsms.sql.types import INT, TEXTUAL, Kind, Type
from dsms.state.columns import arrow_values, numpy_valid, numpy_values
from dsms.state.vec import Vec

NONE = np.empty(0, np.int64)
NARROW = 18  # digits of a DECIMAL that surely fit one word


@njit(cache=True, nogil=True)
def ordered_bits(bits, out):
    """Bits of doubles -> words in order, with one NaN and one zero."""
    for i in range(len(bits)):
        b = bits[i]
        if b == -9223372036854775808:
            b = np.int64(0)
        elif (b & 0x7FFFFFFFFFFFFFFF) > 0x7FF0000000000000:
            b = np.int64(0x7FF8000000000000)
        out[i] = b ^ 0x7FFFFFFFFFFFFFFF if b < 0 else b


@njit(cache=True, nogil=True)
def plain_bits_at(words, rows, out):
    """The way back, of the words at `rows`."""
    for i in range(len(rows)):
        w = words[rows[i]]
        out[i] = w ^ 0x7FFFFFFFFFFFFFFF if w < 0 else w


def float_words(values: np.ndarray) -> np.ndarray:
    """float64[n] -> int64[n] in order."""
    out = np.empty(len(values), np.int64)
    ordered_bits(np.ascontiguousarray(values).view(np.int64), out)
    return out


def floats_at(words: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The way back, of the words at `rows`."""
    out = np.empty(len(rows), np.int64)
    plain_bits_at(words, rows, out)
    return out.view(np.float64)


def decimal_halves(col: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) int64 halves of a decimal128 array; arbitrary where NULL."""
    if not len(col):
        return NONE, NONE
    raw = np.frombuffer(col.buffers()[1], np.int64)[2 * col.offset : 2 * (col.offset + len(col))]
    return raw[0::2], raw[1::2]


def decimal_array(
    low: np.ndarray, high: np.ndarray, valid: np.ndarray, type_: pa.DataType
) -> pa.Array:
    """decimal128 from halves."""
    raw = np.empty((len(low), 2), np.int64)
    raw[:, 0], raw[:, 1] = low, high
    mask = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(type_, len(low), [mask, pa.py_buffer(raw)])


@dataclass(slots=True)
class Coding:
    """How values of one type become words; the base serves all types whose words are in order by
    themselves."""

    type: Type
    wide: bool = False  # DECIMAL in two words

    @property
    def rank(self) -> np.ndarray:
        return NONE

    def encode(self, col: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """(words, high words or empty) of a column; arbitrary where NULL."""
        match self.type.kind:
            case Kind.FLOAT:
                return float_words(numpy_values(col)), NONE
            case Kind.DECIMAL:
                low, high = decimal_halves(col)
                return low, high if self.wide else NONE
            case Kind.NULL:
                return np.zeros(len(col), np.int64), NONE
            case _:
                return numpy_values(col).astype(np.int64, copy=False), NONE

    def decode(
        self, words: np.ndarray, high: np.ndarray, valid: np.ndarray, rows: np.ndarray
    ) -> pa.Array:
        """The column of `type` that the words at `rows` stand for."""
        valid = valid[rows]
        if self.type.kind is Kind.FLOAT:
            return arrow_values(floats_at(words, rows), valid)
        return self._decode(words[rows], high[rows] if self.wide else NONE, valid)

    def _decode(self, words: np.ndarray, high: np.ndarray, valid: np.ndarray) -> pa.Array:
        match self.type.kind:
            case Kind.BOOL:
                return arrow_values(words.astype(np.bool_), valid)
            case Kind.DECIMAL:
                return decimal_array(
                    words, high if self.wide else words >> 63, valid, self.type.arrow
                )
            case Kind.NULL:
                return pa.nulls(len(words))
            case _:
                return arrow_values(words, valid)

    def crowded(self, live: int) -> bool:
        """Whether forgetting unused codes would pay, with `live` words in use."""
        return False

    def purge(self, used: list[np.ndarray]) -> None:
        """Forget all codes that are not among `used`."""
        return

    @property
    def nbytes(self) -> int:
        return 0


FEW = 16  # new values that take their places one by one
GAP = 1 << 32  # between ranks of neighbours at first


def _merged(old: list[Any], new: list[Any], at: list[int], begins: list[int]) -> list[Any]:
    """The old values with runs of the new ones, that begin there, before the old ones `at`."""
    ends = [*begins[1:], len(new)]
    merged, done = list[Any](), 0
    for place, first, last in zip(at, begins, ends, strict=True):
        merged += old[done:place]
        merged += new[first:last]
        done = place
    return merged + old[done:]


@dataclass(slots=True)
class Codes(Coding):
    """Codes for values that don't fit a word, kept in order: new values take ranks between those of
    their neighbours.

    Python work is done per distinct value of a batch, O(log d) to find it a place; and O(d) moves
    of pointers for all that are new together."""

    ordered: bool = True  # False: ranks are not asked for
    code: dict[Any, int] = field(default_factory=dict)
    value: list[Any] = field(default_factory=list)  # by code
    spare: list[int] = field(default_factory=list)
    order: list[Any] = field(default_factory=list)  # values, sorted
    ranks: Vec = field(default_factory=Vec)  # by code
    sequence: np.ndarray | None = None  # codes in the order of their values; None: to be found

    @property
    def rank(self) -> np.ndarray:
        return self.ranks.view

    def encode(self, col: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        coded = col.dictionary_encode()
        values = coded.dictionary.to_pylist()
        new = [v for v in values if v not in self.code]
        if new:
            self._learn(new)
        if not values:
            return np.zeros(len(col), np.int64), NONE
        table = np.array([self.code[v] for v in values], np.int64)
        return table[np.asarray(pc.fill_null(coded.indices, 0))], NONE

    def _learn(self, new: list[Any]) -> None:
        for v in new:
            if self.spare:
                self.code[v] = self.spare.pop()
                self.value[self.code[v]] = v
            else:
                self.code[v] = len(self.value)
                self.value.append(v)
        if not self.ordered:
            return
        self.ranks.extend_fill(len(self.value) - self.ranks.n, 0)
        if len(new) > FEW:
            self._place_together(sorted(new))
            return
        self.sequence = None
        for v in new:
            self._place(v)

    def _place(self, v: Any) -> None:
        at = bisect_left(self.order, v)
        self.order.insert(at, v)
        ranks = self.ranks.view
        low = int(ranks[self.code[self.order[at - 1]]]) if at else None
        high = int(ranks[self.code[self.order[at + 1]]]) if at + 1 < len(self.order) else None
        if low is None:
            low = (0 if high is None else high) - 2 * GAP
        if high is None:
            high = low + 2 * GAP
        if high - low < 2 or max(-low, high) > 1 << 61:
            codes = np.array([self.code[v] for v in self.order], np.int64)
            ranks[codes] = GAP * np.arange(len(codes))
        else:
            ranks[self.code[v]] = (low + high) // 2

    def _place_together(self, new: list[Any]) -> None:
        at = self._places(new)
        sequence = self._sequence()
        codes = np.array([self.code[v] for v in new], np.int64)
        begins = np.flatnonzero(np.append(True, at[1:] != at[:-1]))
        fits = self._rank(sequence, codes, at[begins], np.diff(np.append(begins, len(at))))
        self.order = _merged(self.order, new, at[begins].tolist(), begins.tolist())
        self.sequence = np.insert(sequence, at, codes)
        if not fits:
            self.ranks.view[self.sequence] = GAP * np.arange(len(self.sequence))

    def _places(self, new: list[Any]) -> np.ndarray:
        """int64: before which of the values that there are each of the new ones (sorted) goes."""
        at, place = np.empty(len(new), np.int64), 0
        for i, v in enumerate(new):
            at[i] = place = bisect_left(self.order, v, place)
        return at

    def _sequence(self) -> np.ndarray:
        """int64: codes of the values in order."""
        if self.sequence is None:
            self.sequence = np.array([self.code[v] for v in self.order], np.int64)
        return self.sequence

    def _rank(
        self, sequence: np.ndarray, codes: np.ndarray, at: np.ndarray, count: np.ndarray
    ) -> bool:
        """Give runs of new values, before those `at`, ranks between their neighbours'; whether
        there is room."""
        ranks, room = self.ranks.view, (count + 1) * GAP
        if not len(sequence):
            return False
        low = ranks[sequence[np.maximum(at - 1, 0)]]
        high = ranks[sequence[np.minimum(at, len(sequence) - 1)]]
        low = np.where(at == 0, high - room, low)
        high = np.where(at == len(sequence), low + room, high)
        step = (high - low) // (count + 1)
        nth = ranges(np.zeros_like(count), count) + 1
        ranks[codes] = np.repeat(low, count) + np.repeat(step, count) * nth
        return bool(step.min() > 0 and max(-int(low.min()), int(high.max())) <= 1 << 61)

    def _decode(self, words: np.ndarray, high: np.ndarray, valid: np.ndarray) -> pa.Array:
        distinct, index = np.unique(words[valid], return_inverse=True)
        values = pa.array([self.value[c] for c in distinct.tolist()], self.type.arrow)
        where = np.zeros(len(words), np.int64)
        where[valid] = index
        return values.take(pa.array(where, mask=~valid))

    def crowded(self, live: int) -> bool:
        return len(self.code) > 1024 and len(self.code) > 2 * live

    def purge(self, used: list[np.ndarray]) -> None:
        alive = np.zeros(len(self.value), np.bool_)
        for words in used:
            alive[words] = True
        for c in np.flatnonzero(~alive).tolist():
            self.value[c] = None
        self.code = {v: c for v, c in self.code.items() if alive[c]}
        self.spare = np.flatnonzero(~alive)[::-1].tolist()
        self.order = [v for v in self.order if v in self.code]
        self.sequence = None

    @property
    def nbytes(self) -> int:
        return 200 * len(self.code) + self.ranks.nbytes


def coding(type_: Type, wide: bool = False, ordered: bool = True) -> Coding:
    """How to keep values of a type; `wide`: a DECIMAL is wanted as a number of up to two words, not
    in order."""
    if type_.kind in TEXTUAL:
        return Codes(type_, ordered=ordered)
    if type_.kind is Kind.DECIMAL and type_.precision > NARROW:
        return Coding(type_, wide=True) if wide else Codes(type_, ordered=ordered)
    return Coding(type_)


def form(call: AggCall, k: int) -> Form:
    """What an aggregate needs to know of its argument k."""
    if call.distinct and call.fn == "count":
        return "code"
    forms = CARDS[call.fn].forms
    return forms[min(k, len(forms) - 1)]


def arg_coding(call: AggCall, k: int) -> Coding:
    """How argument k is kept."""
    match form(call, k):
        case "valid":
            return Coding(INT)
        case how:
            return coding(call.args[k].type, wide=how == "wide", ordered=how == "word")


def validity(col: pa.Array) -> np.ndarray | None:
    """bool[n], or None if nothing is NULL."""
    return (
        np.zeros(len(col), np.bool_)
        if pa.types.is_null(col.type) and len(col)
        else numpy_valid(col)
    )
