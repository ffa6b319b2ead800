"""How hard the tests try: a little (`make test`), all there is (`--all`), or many times that
(`--fuzz N`).

A little leaves nothing out but repetitions: fewer random examples, fewer crashes, some of many like
cases.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

# what DSMS_TEST_EFFORT says for `make test`; 1: all; more: so many times the random examples
QUICK = 0
SLOW = pytest.mark.slow


def effort() -> int:
    return int(os.environ.get("DSMS_TEST_EFFORT", "0"))


def examples(count: int) -> int:
    """How many examples a property test tries, whose whole number is `count`: of that a
    thirtieth, or all."""
    return count * effort() if effort() else min(count, max(2, count // 30))


def example(test: Any) -> Any:
    """A property test as a function of one example, for tests that draw theirs otherwise."""
    return test.hypothesis.inner_test


def unsynced() -> None:
    """With `make test` nothing waits for a disk: what was written outlives its process anyway, and
    what a machine loses that loses power is a matter of simulated files."""
    if os.environ.get("DSMS_TEST_EFFORT") == str(QUICK):
        os.fsync = os.fdatasync = os.fstat  # type: ignore[assignment]


def sampled(cases: Iterable[Any], every: int) -> list[Any]:
    """Cases of a test, all but each n-th of which are slow."""
    return [case if k % every == 0 else _slow(case) for k, case in enumerate(cases)]


def _slow(case: Any) -> Any:
    # a pytest.param
    if isinstance(case, tuple) and hasattr(case, "values") and hasattr(case, "marks"):
        return pytest.param(*case.values, marks=(*case.marks, SLOW), id=case.id)
    values: Sequence[Any] = case if isinstance(case, tuple | list) else (case,)
    return pytest.param(*values, marks=SLOW)


def thinned(every: int = 1, tests: int = 1) -> pytest.MarkDecorator:
    """Of a test whose cases are a product, those in which each value of each parameter comes once,
    and of these each n-th, the first one among them; the others are slow.  For all tests of a file:
    `pytestmark = thinned(4)`; of which only each n-th test is shown: `thinned(4, tests=3)`."""
    return pytest.mark.thinned(every, tests=tests)


def left_out(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """The cases and tests that `thinned` leaves out, of those that aren't slow anyway."""
    items = list(items)
    yield from _tests_left_out(items)
    cases: dict[tuple[str, str], list[pytest.Function]] = defaultdict(list)
    for item in items:
        if (
            isinstance(item, pytest.Function)
            and hasattr(item, "callspec")
            and item.get_closest_marker("thinned")
            and not item.get_closest_marker("slow")
        ):
            parent = item.nodeid.partition("::")[0]
            cases[parent, item.originalname].append(item)
    for some in cases.values():
        every = max(mark.args[0] for mark in some[0].iter_markers("thinned"))
        shown = kept(positions([item.callspec._idlist for item in some]), every)
        yield from (item for item, stays in zip(some, shown, strict=True) if not stays)


def _tests_left_out(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    met: dict[str, dict[str, int]] = defaultdict(dict)
    for item in items:
        nth = max((mark.kwargs["tests"] for mark in item.iter_markers("thinned")), default=1)
        if nth > 1 and isinstance(item, pytest.Function):
            there = met[item.nodeid.partition("::")[0]]
            if there.setdefault(item.originalname, len(there)) % nth:
                yield item


def positions(names: Iterable[Sequence[str]]) -> list[dict[str, int]]:
    """Where the parameters of cases stand among their values, of the names of these.  (pytest says
    so, too, in `callspec.indices`, but from 9.2 on it counts cases there.)"""
    met: dict[int, dict[str, int]] = defaultdict(dict)
    return [
        {str(at): met[at].setdefault(name, len(met[at])) for at, name in enumerate(case)}
        for case in names
    ]


def kept(places: Sequence[Mapping[str, int]], every: int = 1) -> list[bool]:
    """Which cases of a product `thinned` keeps; of each is said where its parameters stand among
    their values."""
    values = {name: sorted({place[name] for place in places}) for name in sorted(places[0])}
    *names, longest = sorted(values, key=lambda name: len(values[name]))
    out, met = [], 0
    for place in places:
        at, stride, stays = values[longest].index(place[longest]), 1, True
        for name in names:  # each turns when those before it have come round, if there is time
            size = len(values[name])
            stride = stride if stride * size <= len(values[longest]) else 1
            stays = stays and place[name] == values[name][at // stride % size]
            stride *= size
        met += stays
        out.append(stays and (met - 1) % every == 0)
    return out
