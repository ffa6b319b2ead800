"""What a pickle says, one or more of its arguments another: numbers, texts, tags, types of arrays;
or things left out, twice, or swapped.  Frames, which say lengths, are left out."""

from __future__ import annotations

import pickletools
import struct
from functools import lru_cache
from random import Random
from typing import Any

from tests.faults.formats.values import FLOATS, INTEGERS, integer

TYPES = ("<i8", "<f8", "|b1", "|O", "<U3", "<M8[us]", "<i8 ", ">i4", "|u1", "<c16", "|S0", "|V8")
CONSTANTS = (b"N", b"\x88", b"\x89", b")", b"]", b"}", b"K\x00", b"J\xff\xff\xff\xff", b"0", b"2")


@lru_cache(maxsize=64)
def pieces(data: bytes) -> tuple[list[tuple[bytes, Any]], tuple[str, ...]]:
    """(bytes of each operation, its argument), and the texts in it."""
    found = list(pickletools.genops(data))
    ends = [at for _, _, at in found[1:]] + [len(data)]
    out = [
        (data[at:end], argument)
        for (operation, argument, at), end in zip(found, ends, strict=True)
        if operation.name != "FRAME"
    ]
    return out, tuple(sorted({a for _, a in out if isinstance(a, str)})) + TYPES


def changed(rng: Random, data: bytes) -> bytes:
    """One to four of the operations."""
    known, texts = pieces(data)
    out = [piece for piece, _ in known]
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(known))
        piece, argument = known[at]
        match rng.randrange(12):
            case 0:
                out[at] = b""
            case 1:
                out[at] = piece + piece
            case 2:
                out[at] = rng.choice(CONSTANTS)
            case 3:
                out[at] = rng.choice(out)
            case _:
                out[at] = _other(rng, piece, argument, texts)
    return b"".join(out)


def _other(rng: Random, piece: bytes, argument: Any, texts: tuple[str, ...]) -> bytes:
    """The operation with another argument."""
    match argument:
        case str():
            return _text(rng.choice(texts))
        case bool() | None:
            return rng.choice(CONSTANTS) if piece in (b"N", b"\x88", b"\x89") else piece
        case int() if piece[:1] in (b"K", b"M", b"J", b"\x8a"):
            return rng.choice((_integer(integer(rng, argument)), _float(rng.choice(FLOATS))))
        case int() if piece[:1] in (b"h", b"j"):  # something said before
            return b"j" + struct.pack("<I", max(0, argument + rng.choice((-3, -2, -1, 1, 2, 3))))
        case float():
            return rng.choice((_float(rng.choice(FLOATS)), _integer(rng.choice(INTEGERS))))
    return piece


def _text(text: str) -> bytes:
    data = text.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def _integer(value: int) -> bytes:
    return b"\x8a\x0a" + (value & (2**80 - 1)).to_bytes(10, "little")


def _float(value: float) -> bytes:
    return b"G" + struct.pack(">d", value)
