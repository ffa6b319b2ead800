"""Bytes -> damaged bytes, whatever they mean."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.faults.arrow_damage import DAMAGES


def mutated(
    rng: Random, data: bytes, others: Sequence[bytes] = (), words: Sequence[bytes] = ()
) -> bytes:
    """One to four changes; `others`: what pieces may be taken from; `words`: what may stand
    anywhere."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if not out:
            break
        match rng.randrange(8):
            case 0 if others:
                _splice(rng, out, rng.choice(others))
            case 1 if words:
                _word(rng, out, rng.choice(words))
            case 2:
                _double(rng, out)
            case _:
                rng.choice(DAMAGES)(rng, out)
    return bytes(out)


def _splice(rng: Random, data: bytearray, other: bytes) -> None:
    if other:
        low = rng.randrange(len(other))
        data[rng.randrange(len(data)) :] = other[low:]


def _word(rng: Random, data: bytearray, word: bytes) -> None:
    at = rng.randrange(len(data))
    data[at : at + rng.choice((0, len(word)))] = word


def _double(rng: Random, data: bytearray) -> None:
    """A piece again and again."""
    low = rng.randrange(len(data))
    piece = data[low : low + rng.choice((1, 4, 16, 64))]
    data[low:low] = piece * rng.choice((1, 2, 8, 64))
