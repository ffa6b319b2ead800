"""How one source or sink is begun, watched and begun anew: on a clock of the test's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from dsms.errors import UsageError
from dsms.sql.catalog import ConnectorDef
from dsms_server.connectors.backoff import FIRST, LONGEST, Backoff
from dsms_server.connectors.protocol import Failed
from dsms_server.connectors.supervisor import LONGEST_ERROR, Supervised, Time

DEFINED = ConnectorDef("source", "b", "board", "s")


class Clock:
    """Time passes when `go_on` says so; `slept`: for how long it was asked for."""

    def __init__(self) -> None:
        self.now = 0
        self.slept: list[float] = []
        self._waiting: list[asyncio.Future[None]] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        wait: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(wait)
        await wait

    async def go_on(self) -> None:
        """All that is waited for is over."""
        while not self._waiting:
            await asyncio.sleep(0)
        self.now += 1
        for wait in self._waiting:
            if not wait.done():
                wait.set_result(None)
        self._waiting.clear()

    @property
    def time(self) -> Time:
        return Time(lambda: self.now, self.sleep, lambda: 0.5)


def play(story: Callable[[Clock], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(story(Clock()))


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0)


def test_pauses_double_up_to_a_minute_and_vary() -> None:
    whole, half = Backoff(lambda: 0.0), Backoff(lambda: 0.999)
    pauses = [whole.next() for _ in range(20)]
    assert pauses[:4] == [FIRST, 2 * FIRST, 4 * FIRST, 8 * FIRST]
    assert pauses[-1] == LONGEST
    assert FIRST / 2 < half.next() < FIRST * 0.51
    whole.reset()
    assert whole.next() == FIRST


def test_it_is_tried_again_later_each_time_and_at_once_after_success() -> None:
    async def story(clock: Clock) -> None:
        tries = 0

        async def life(watched: Supervised) -> None:
            nonlocal tries
            tries += 1
            watched.works(lambda: 7)
            if tries == 3:
                watched.took(5)
            raise ConnectionError("gone")

        one = Supervised(DEFINED, life, clock.time)
        one.start()
        for wanted in (1, 2, 3, 4):
            await until(lambda wanted=wanted: len(clock.slept) == wanted)  # type: ignore[misc]
            await clock.go_on()
        assert clock.slept[:4] == [0.375, 0.75, 0.375, 0.75]
        line = one.line()
        assert (line.rows, line.error) == (5, "DS664: ConnectionError: gone")
        assert line.restarts >= 3
        await one.stop()

    play(story)


def test_what_fails_for_good_is_not_tried_again_unless_somebody_asks() -> None:
    async def story(clock: Clock) -> None:
        tries = 0

        async def life(watched: Supervised) -> None:
            nonlocal tries
            tries += 1
            raise Failed("DS665", "no", hint="say yes")

        one = Supervised(DEFINED, life, clock.time)
        one.start()
        await until(lambda: one.line().state == "failed")
        assert (tries, one.line().error, clock.slept) == (1, "DS665: no (say yes)", [])
        one.retry()
        await until(lambda: tries == 2)
        await one.stop()

    play(story)


def test_somebody_who_asks_need_not_wait() -> None:
    async def story(clock: Clock) -> None:
        begun = 0

        async def life(watched: Supervised) -> None:
            nonlocal begun
            begun += 1
            raise UsageError("DS570", "too many\nrows wait " + "x" * 1000)

        one = Supervised(DEFINED, life, clock.time)
        one.start()
        await until(lambda: len(clock.slept) == 1)
        error = one.line().error or ""
        assert error.startswith("DS570: too many rows wait x") and len(error) == LONGEST_ERROR
        one.retry()
        await until(lambda: begun == 2)
        await one.stop()

    play(story)


def test_its_successor_begins_when_it_has_let_go_of_everything() -> None:
    async def story(clock: Clock) -> None:
        held: list[str] = []

        def of(name: str) -> Callable[[Supervised], Coroutine[Any, Any, None]]:
            async def life(watched: Supervised) -> None:
                assert not held
                held.append(name)
                watched.works(lambda: None)
                try:
                    await asyncio.Event().wait()
                finally:
                    await asyncio.sleep(0)
                    held.remove(name)

            return life

        first = Supervised(DEFINED, of("first"), clock.time)
        first.start()
        await until(lambda: held == ["first"])
        second = Supervised(DEFINED, of("second"), clock.time, first)
        second.start()
        await until(lambda: held == ["second"])
        await second.stop()
        assert not held

    play(story)


def test_one_that_is_paused_does_nothing() -> None:
    async def story(clock: Clock) -> None:
        async def life(watched: Supervised) -> None:
            raise AssertionError("it has begun")

        one = Supervised(replace(DEFINED, paused=True), life, clock.time)
        one.start()
        await until(lambda: one.line().state == "paused")
        await one.stop()

    play(story)
