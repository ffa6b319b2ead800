"""Chains, fans and diamonds of derived streams, drawn at random, against their definition."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.settings import Settings
from tests.derived_world import BASES, READERS, SELECTS, Definition, Event, S, X, played
from tests.effort import examples
from tests.oracle import Row


@st.composite
def worlds(draw: st.DrawFn) -> list[str]:
    """Statements: streams from outside, streams derived from these and from each other, readers."""
    streams, made = ["s", "r"], list(BASES.values())
    strategy = st.sampled_from(["", "upa", "direct", "nt"])

    def select(of: tuple[str, ...], among: list[str]) -> str:
        names = st.sampled_from(among)
        return draw(st.sampled_from(of)).format(a=draw(names), b=draw(names))

    for n in range(draw(st.integers(1, 4))):
        how = draw(strategy)
        options = f" WITH (strategy = {how})" if how else ""
        by = draw(st.sampled_from(["", " TIMESTAMP BY at"]))
        retain = draw(st.sampled_from(["", " RETAIN 5 s"]))
        made.append(f"CREATE STREAM d{n}{by}{retain}{options} AS {select(SELECTS, streams)}")
        streams.append(f"d{n}")
    if draw(st.booleans()):
        made.append(X)
        for n in range(draw(st.integers(1, 2))):
            made.append(f"CREATE QUERY f{n} AS INSERT INTO x (k, v) {select(SELECTS, streams)}")
        streams.append("x")
    for n in range(draw(st.integers(1, 3))):
        # the newest more often: they rest on the others
        made.append(f"CREATE QUERY q{n} AS {select(READERS, [*streams[2:], streams[-1]])}")
    return made


@st.composite
def arrivals(draw: st.DrawFn) -> list[tuple[str, list[int]]]:
    """Rows in the order in which they come; those of r are late by up to 2 s of its SLACK."""
    made, now = [], 0
    for _ in range(draw(st.integers(1, 25))):
        now += draw(st.sampled_from([0, 0, 1, 1, 2, 5]))
        name = draw(st.sampled_from("sr"))
        at = now - draw(st.integers(0, 2)) if name == "r" else now
        made.append((name, [draw(st.integers(0, 2)), draw(st.integers(-2, 3)), at * S]))
    return made


def cut(draw: st.DataObject, rows: list[tuple[str, list[int]]]) -> Iterator[Event]:
    """The rows in frames."""
    frame: list[list[int]] = []
    for n, (name, row) in enumerate(rows):
        frame.append(row)
        last = n + 1 == len(rows) or rows[n + 1][0] != name
        if last or draw.draw(st.booleans()):
            yield Event(name, frame)
            frame = []


def complete(rows: list[tuple[str, list[int]]]) -> dict[str, list[Row]]:
    """The rows of each stream in the order of (timestamp, arrival)."""
    found: dict[str, list[Row]] = {}
    for name in BASES:
        own = sorted((tuple(r) for n, r in rows if n == name), key=lambda r: r[2])
        found[name] = [Row(r[2], n, r) for n, r in enumerate(own)]
    return found


@pytest.mark.parametrize("restarted", [False, True])
def test_derived_streams_are_what_enters_and_leaves(restarted: bool) -> None:
    @settings(max_examples=examples(60 if restarted else 120), deadline=None)
    @given(worlds(), arrivals(), st.data(), st.integers(0, 12))
    def run(declared: list[str], rows: list, data: st.DataObject, longer: int) -> None:
        clock = max(row[2] for _, row in rows) + longer * S // 2
        model = Definition()
        for sql in declared:
            model.declare(sql)
        want = model.told(complete(rows), clock)
        events = list(cut(data, rows))
        pause = data.draw(st.sampled_from([None, 1, 3]))
        restarts = {
            n: data.draw(st.sampled_from(["closed", "killed"]))
            for n in range(len(events))
            if restarted and data.draw(st.integers(0, 3)) == 0
        }
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) if restarted else None
            chosen = Settings(pause=_every(pause))
            assert played(declared, events, clock, place, restarts, chosen) == want

    run()


def _every(steps: int | None):  # type: ignore[no-untyped-def]
    """A turn is over after so many steps."""
    if steps is None:
        return None
    count = 0

    def over() -> bool:
        nonlocal count
        count += 1
        return count % steps == 0

    return over
