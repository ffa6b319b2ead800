"""The Arrow bytes of an ingest, for streams of every type."""

from __future__ import annotations

from functools import cache
from random import Random

from tests.faults.arrow_child import Victim as Streams
from tests.faults.arrow_damage import damaged
from tests.faults.arrow_seeds import seeds
from tests.faults.cases import judge

LIFE = 100_000
known = cache(seeds)


class Victim:
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
    return damaged(known(), rng.getrandbits(60))
