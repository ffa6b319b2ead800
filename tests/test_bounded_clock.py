"""System time that does not jump, over a system clock and an elapsed time that the test moves."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import pytest

from dsms_server.bounded import BoundedClock

S = 1_000_000
YEAR = 365 * 86_400 * S
STEP, PATIENCE = 10 * S, 60 * S


@dataclass
class World:
    """A machine: `passed` goes on by itself, `wall` is what somebody has set."""

    passed: int = 5 * S
    away: int = 1_700_000_000 * S
    stepped: int = 0

    def clock(self) -> BoundedClock:
        return BoundedClock(self.wall, lambda: self.passed, STEP, PATIENCE, self.count)

    def wall(self) -> int:
        return self.passed + self.away

    def count(self) -> None:
        self.stepped += 1


@pytest.fixture
def world() -> World:
    return World()


def told(log: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in log.records]


def look(world: World, clock: BoundedClock, seconds: float, every: float = 1.0) -> list[int]:
    """So much time passes, the clock is looked at again and again."""
    out = []
    for _ in range(int(seconds / every)):
        world.passed += int(every * S)
        out.append(clock())
    return out


def test_it_says_what_the_system_clock_says(world: World) -> None:
    clock = world.clock()
    assert clock() == world.wall()
    assert (
        look(world, clock, 200) and clock() == world.wall() and clock.away == 0 and not clock.steps
    )


def test_a_year_ahead_for_a_moment_is_not_followed(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    clock, right = world.clock(), world.away
    world.away += YEAR
    for now in look(world, clock, 59):
        assert now <= world.passed + right
    assert clock() == world.passed + right and clock.away == YEAR
    world.away = right
    world.passed += S
    assert clock() == world.wall() and clock.away == 0 and clock.steps == world.stepped == 0
    assert told(caplog) == [
        "the system clock has jumped 365 days, 0:00:00 ahead: time goes on as it passes, until "
        "the clock has stood there for 1 min",
        "the system clock is back where it was",
    ]


def test_a_year_ahead_that_stays_is_followed(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    clock = world.clock()
    world.away += YEAR
    told_now = look(world, clock, 62)
    # seen at the first look, then 60 s
    assert told_now[59] < world.wall() - YEAR < told_now[60] == world.wall() - S
    assert clock.away == 0 and clock.steps == world.stepped == 1
    assert told(caplog)[1:] == [
        "the system clock has stood 365 days, 0:00:00 ahead for 1 min: it is followed"
    ]


def test_a_year_back_that_stays_is_followed(world: World) -> None:
    clock, right = world.clock(), world.away
    world.away -= YEAR
    now = look(world, clock, 60)
    assert now == sorted(now) and now[-1] == world.passed + right
    assert look(world, clock, 1) == [world.wall()] and clock.steps == 1
    caught_up = look(world, clock, 100)
    assert caught_up[-1] == world.wall() and clock.steps == 1


def test_a_clock_that_jumps_about_is_not_followed(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    clock, right = world.clock(), world.away
    for k in range(20):
        world.away = right + YEAR * (1 + k % 3)
        look(world, clock, 30)
    assert clock() == world.passed + right and clock.steps == 0 and len(caplog.records) == 1


def test_small_steps_are_followed_and_never_backwards(world: World) -> None:
    clock = world.clock()
    clock()
    world.away += 8 * S
    assert clock() == world.wall()
    world.away -= 4 * S
    before = clock()
    slowed = look(world, clock, 8)
    assert slowed == [before + k * S // 2 for k in range(1, 9)] and slowed[-1] == world.wall()
    assert look(world, clock, 1) == [world.wall()] and clock.steps == 0


def test_small_steps_add_up_to_no_more_than_one_in_the_patience(world: World) -> None:
    clock, right = world.clock(), world.away
    for _ in range(12):
        world.away += 9 * S
        look(world, clock, 5)
        assert clock() <= world.passed + right + STEP
    assert clock.away > STEP  # a minute's steps, of which the first alone was followed


def test_a_slow_drift_is_followed_for_ever(world: World) -> None:
    clock = world.clock()
    for _ in range(100):
        world.away += 2 * S
        look(world, clock, 61, 61)
        assert clock() == world.wall()
    assert clock.steps == 0


def test_a_machine_that_sleeps_has_not_jumped(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    clock = world.clock()
    world.passed += 8 * 3600 * S  # the boot clock counts it
    assert clock() == world.wall() and not caplog.records


def test_it_is_a_warning(world: World, caplog: pytest.LogCaptureFixture) -> None:
    clock = world.clock()
    world.away += YEAR
    clock()
    assert [(r.name, r.levelno) for r in caplog.records] == [("dsms.server", logging.WARNING)]
