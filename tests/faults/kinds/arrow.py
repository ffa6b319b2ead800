"""The Arrow bytes of an ingest, for streams of every type."""

from __future__ import annotations

import struct
from functools import cache
from random import Random

import pyarrow as pa

from tests.faults.arrow_child import Victim as Streams
from tests.faults.arrow_damage import damaged, damaged_in_place
from tests.faults.arrow_seeds import seeds
from tests.faults.cases import judge

LIFE = 100_000
known = cache(seeds)


class Victim:
    judged = 1

    def __init__(self) -> None:
        self._streams = Streams()

    def suffer(self, data: bytes) -> str:
        before = dict(self._streams.ends)
        self._streams.suffer(data)
        ended = [end for end, n in self._streams.ends.items() if n != before.get(end, 0)]
        for end in ended:
            if end != "taken":
                judge(end)
        return "taken" if "taken" in ended else ended[0]

    def close(self) -> None:
        self._streams.engine.close()


make = Victim


def draw(rng: Random) -> bytes:
    """Damaged anywhere; or within the metadata or the buffers of one message alone, so that what is
    said of lengths still holds."""
    if rng.random() < 0.4:
        return damaged(known(), rng.getrandbits(60))
    data = bytearray(rng.choice(known()))
    low, high = rng.choice(_parts(bytes(data)))
    part = data[low:high]
    damaged_in_place(rng, part)
    data[low:high] = part
    return bytes(data)


@cache
def _parts(data: bytes) -> list[tuple[int, int]]:
    """Where metadata and buffers of the messages of a stream are."""
    out, source = [], pa.BufferReader(data)
    while source.tell() < len(data):
        start = source.tell()
        (length,) = struct.unpack_from("<i", data, start + 4)
        if length == 0:
            break
        pa.ipc.read_message(source)
        middle = start + 8 + length
        out += [(start + 8, middle), (middle, source.tell())]
    return [(low, high) for low, high in out if high > low]
