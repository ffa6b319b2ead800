"""Connections that come and go leave nothing behind; `python -m tests.faults connects` makes a
hundred thousand of them and counts bytes."""

from __future__ import annotations

import gc
from collections import Counter
from random import Random

from dsms.engine import Engine
from tests.faults.connects import KINDS, come_and_go
from tests.waiting import wait_until

COUNT = 200


def test_connections_leave_no_objects(serve):
    running, random = serve(Engine()), Random(1)

    def objects() -> Counter[str]:
        """Of this process, server and all."""
        running.on_loop(gc.collect)
        return Counter(f"{type(o).__module__}.{type(o).__qualname__}" for o in gc.get_objects())

    def few_more() -> bool:
        """Than before, though some timers of a second are under way yet."""
        now = objects()
        return sum(n - before[kind] for kind, n in now.items() if n > before[kind]) < COUNT // 4

    def connections() -> None:
        assert set(come_and_go(running.port, COUNT, random)) == set(KINDS)
        wait_until(lambda: not running.on_loop(lambda: running.server.sessions))

    connections()
    before = objects()
    connections()
    wait_until(few_more, "the end of what connections left")
