"""Who has the next place: principals in turn, and of each its sessions; nobody has all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from dsms.api import Cancel
from dsms_server.shares import LEAVE_SECONDS, Run, Shares
from tests.waiting import WAIT, wait_until


class Plans:
    """Plans that run until the test ends them; `begun` has their names in the order in which they
    got a place."""

    def __init__(self, places: int, long_seconds: float = 1.0) -> None:
        self.now = 0.0
        self.shares = Shares(places, lambda: self.now, long_seconds)
        self.begun: list[str] = []
        self.runs: dict[str, Run] = {}
        self._gates: dict[str, threading.Event] = {}

    def ask(self, principal: str, session: int, name: str) -> None:
        gate = self._gates[name] = threading.Event()

        def work() -> None:
            self.begun.append(name)
            gate.wait(WAIT)

        self.runs[name] = self.shares.submit((principal, session), work, Cancel())

    def end(self, name: str) -> None:
        """The plan is done; the next one has its place when this returns."""
        self._gates[name].set()
        self.runs[name].future.result(WAIT)

    def end_all(self) -> None:
        for gate in self._gates.values():
            gate.set()

    def have_begun(self, *names: str) -> None:
        wait_until(lambda: len(self.begun) >= len(names), f"{names}, there are {self.begun}")
        assert sorted(self.begun) == sorted(names)


@pytest.fixture
def plans() -> Iterator[Callable[..., Plans]]:
    made: list[Plans] = []

    def make(*args: float) -> Plans:
        made.append(Plans(*args))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.end_all()


def test_one_principal_leaves_a_place(plans):
    p = plans(3)
    for k in range(4):
        p.ask("a", k, f"a{k}")
    p.have_begun("a0", "a1")
    assert p.shares.waiting == 2
    p.ask("b", 9, "b")
    p.have_begun("a0", "a1", "b")


def test_principals_take_turns(plans):
    p = plans(1)
    p.ask("a", 1, "a1")
    for name, principal, session in (
        ("a2", "a", 2),
        ("a3", "a", 3),
        ("b1", "b", 4),
        ("b2", "b", 5),
        ("c1", "c", 6),
    ):
        p.ask(principal, session, name)
    order = []
    for _ in range(6):
        wait_until(lambda: len(p.begun) > len(order), "the next one")
        order.append(p.begun[-1])
        p.end(order[-1])
    assert order == ["a1", "a2", "b1", "c1", "a3", "b2"]


def test_sessions_of_a_principal_take_turns(plans):
    p = plans(1)
    p.ask("a", 0, "first")
    for name, session in (("1a", 1), ("1b", 1), ("2a", 2)):
        p.ask("a", session, name)
    order = []
    for _ in range(4):
        wait_until(lambda: len(p.begun) > len(order), "the next one")
        order.append(p.begun[-1])
        p.end(order[-1])
    assert order == ["first", "1a", "2a", "1b"]


def test_what_runs_for_long_gives_its_place_back(plans):
    p = plans(2, 1.0)
    p.ask("a", 1, "endless")
    p.have_begun("endless")
    p.ask("a", 2, "second")
    p.shares.sweep()
    p.have_begun("endless")
    p.now = 1.0
    p.shares.sweep()
    p.have_begun("endless", "second")
    p.now = 5.0
    p.ask("a", 3, "third")
    p.shares.sweep()  # a principal has one place less than there are, of the long ones, too
    p.have_begun("endless", "second")
    p.ask("b", 4, "other")
    p.have_begun("endless", "second", "other")


def test_who_is_cancelled_while_waiting_is_let_go(plans):
    p = plans(1, 1e9)
    p.ask("a", 1, "first")
    p.ask("a", 2, "second")
    p.runs["second"].cancel.set()
    p.shares.sweep()
    p.runs["second"].future.result(WAIT)
    assert p.shares.waiting == 0
    p.have_begun("first")


def test_nobody_waits_for_a_cancelled_plan_that_looks_at_nothing(plans):
    p = plans(2)
    p.ask("a", 1, "deaf")
    p.have_begun("deaf")
    p.runs["deaf"].cancel.set()
    p.shares.sweep()
    assert not p.runs["deaf"].future.done()
    p.now = LEAVE_SECONDS
    p.shares.sweep()
    p.runs["deaf"].future.result(WAIT)
    assert p.shares.running == 1  # its place is taken until it has ended
    p.ask("b", 2, "other")
    p.have_begun("deaf", "other")
    p.end("deaf")
    wait_until(lambda: p.shares.running == 1, "the end of the other")


def test_a_plan_that_fails_gives_its_place_back(plans):
    shares = plans(1).shares
    run = shares.submit(("a", 1), lambda: None, Cancel())
    run.future.result(WAIT)
    wait_until(lambda: not shares.running, "its place")


def test_the_stop_waits_for_what_is_under_way(plans):
    p = plans(2)
    p.ask("a", 1, "one")
    p.have_begun("one")
    p.end_all()
    p.shares.join(WAIT)
    assert p.shares.running == 0
