"""Calls of functions in Python are watched by one thread."""

from __future__ import annotations

import threading

from dsms.python_functions.watch import Watch
from tests.waiting import WAIT, wait_until

LONG = 10 * WAIT  # seconds that nothing takes here


def test_what_takes_too_long_is_noticed_however_long_what_came_before_may_take() -> None:
    late = threading.Event()
    watch = Watch(late.set)
    watch.begin(LONG)
    watch.end()
    watch.begin(0.0)
    assert late.wait(WAIT)
    wait_until(lambda: watch.wakes is None)  # nothing is left to look at


def test_one_thread_watches_all_and_ends_when_it_is_told() -> None:
    late = threading.Event()
    watch, before = Watch(late.set), {*threading.enumerate()}
    for _ in range(100):
        watch.begin(LONG)
        assert len({*threading.enumerate()} - before) == 1
        watch.end()
    watch.close()
    wait_until(lambda: watch.wakes is None)
    watch.begin(LONG)
    watch.end()
    assert watch.wakes is not None and not late.is_set()
    watch.close()
