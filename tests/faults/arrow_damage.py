"""Valid Arrow IPC bytes -> damaged ones, from a seed: the same number gives the same bytes in any
process."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence

_INT16 = (0, 1, 2, 4, 8, 12, 0x7FFF, 0x8000, 0xFFFF)
_INT32 = (0, 1, -1, 2, 5, 7, 39, 77, 255, 256, 65536, 16777218, 2**30, 2**31 - 1, -(2**31), 1 << 20)
_INT64 = (0, 1, -1, 4, 5, 6, 8, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, -(2**63), 1 << 24)
Damage = Callable[[random.Random, bytearray], None]


def _byte(rng: random.Random, data: bytearray) -> None:
    data[rng.randrange(len(data))] = rng.randrange(256)


def _bit(rng: random.Random, data: bytearray) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _number(form: str, values: Sequence[int]) -> Damage:
    size = struct.calcsize(form)

    def write(rng: random.Random, data: bytearray) -> None:
        at = rng.randrange(0, max(1, len(data) - size + 1), min(size, 4))
        if at + size <= len(data):
            struct.pack_into(form, data, at, rng.choice(values))

    return write


def _nudge(rng: random.Random, data: bytearray) -> None:
    """A small change of a number that stands there: a length, an offset, a type's parameter."""
    if len(data) < 2:
        return
    at = rng.randrange(0, len(data) - 1, 2)
    (was,) = struct.unpack_from("<H", data, at)
    struct.pack_into("<H", data, at, (was + rng.choice((-8, -4, -2, -1, 1, 2, 4, 8))) & 0xFFFF)


def _swap(rng: random.Random, data: bytearray) -> None:
    a, b = (rng.randrange(0, max(1, len(data) - 8), 4) for _ in range(2))
    data[a : a + 4], data[b : b + 4] = data[b : b + 4], data[a : a + 4]


def _cut(rng: random.Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def _drop(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(0, len(data), 8)
    del data[at : at + rng.choice((1, 4, 8, 64))]


def _repeat(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(0, len(data), 8)
    data[at:at] = data[at : at + rng.choice((1, 8, 64))]


DAMAGES: tuple[Damage, ...] = (
    _byte, _bit, _nudge, _nudge, _number("<H", _INT16), _number("<i", _INT32),
    _number("<i", _INT32),
    _number("<q", _INT64), _number("<q", _INT64), _swap, _cut, _drop, _repeat,
)  # a long list  # fmt: skip
IN_PLACE = (_byte, _bit, _nudge, _number("<H", _INT16), _number("<i", _INT32),
            _number("<q", _INT64), _swap)  # a long list  # fmt: skip


def damaged_in_place(rng: random.Random, data: bytearray) -> None:
    """One to four changes that leave everything where it is."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        if data:
            rng.choice(IN_PLACE)(rng, data)


def damaged(seeds: Sequence[bytes], number: int) -> bytes:
    """The `number`-th damaged stream: one to four changes, now and then with the end of another
    stream."""
    rng = random.Random(number)
    data = bytearray(rng.choice(seeds))
    if rng.random() < 0.1:
        other = rng.choice(seeds)
        data[rng.randrange(0, len(data), 8) :] = other[rng.randrange(0, len(other), 8) :]
    for _ in range(rng.choice((1, 1, 2, 4))):
        if data:
            rng.choice(DAMAGES)(rng, data)
    return bytes(data)
