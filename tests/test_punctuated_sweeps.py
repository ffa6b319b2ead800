"""PUNCTUATE: many promises, one after the other, look at few rows each."""

from __future__ import annotations

from typing import Any

import pytest

from dsms.engine import Engine
from dsms.operators.sweeping import FEW, NEW, PIECE, PROMISE, Sweep
from dsms.state.intern import Intern
from tests.effort import thinned
from tests.folders.play import results

ROWS, PROMISES = 20_000, 1_000
STREAMS = "".join(
    f"CREATE STREAM {name} (k INT, h INT, v INT, t TIMESTAMP) TIMESTAMP BY t;" for name in "su"
)
QUERIES = {
    "join, whole key": "SELECT s.v FROM s, u WHERE s.k = u.k",
    "join, part of the key": "SELECT s.v FROM s, u WHERE s.k = u.k AND s.h = u.h",
    "outer": "SELECT s.v FROM s LEFT JOIN u ON s.k = u.k",
    "groups, whole key": "SELECT k, COUNT(DISTINCT v) AS n FROM s GROUP BY k",
    "groups, part of the key": "SELECT k, h, COUNT(DISTINCT v) AS n FROM s GROUP BY k, h",
    "distinct, whole": "SELECT DISTINCT k FROM s",
    "distinct, part": "SELECT DISTINCT k, h FROM s",
}


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each look-up of keys was for."""
    found = list[int]()
    lookup = Intern.lookup

    def counted(self: Intern, cols: Any, n: int) -> Any:
        found.append(n)
        return lookup(self, cols, n)

    monkeypatch.setattr(Intern, "lookup", counted)
    return found


def filled(sql: str) -> Engine:
    engine = Engine()
    engine.execute(f"{STREAMS} CREATE QUERY q AS {sql}")
    i = list(range(ROWS))
    for stream in "su":
        engine.ingest(stream, {"k": i, "h": [x % 7 for x in i], "v": i, "t": i})
    go_on(engine, ROWS)
    return engine


def go_on(engine: Engine, at: int) -> None:
    for stream in "su":
        engine.heartbeat(stream, at)


@thinned(2)
@pytest.mark.parametrize("sql", QUERIES.values(), ids=QUERIES.keys())
def test_promises_of_one_value_each_look_at_few_rows(sql: str, looked: list[int]):
    engine, twin = filled(sql), filled(sql)
    looked.clear()
    for k in range(PROMISES):
        engine.execute(f"PUNCTUATE {'us'[k % 2]} WHERE k = {k}")
    assert 0 < sum(looked) < 20 * ROWS  # not PROMISES * ROWS
    assert max(looked) <= PIECE + PROMISE
    for one in (engine, twin):
        one.ingest("s", {"k": [0, ROWS - 1], "h": [0, 1], "v": [1, 2], "t": [ROWS + 1] * 2})
        one.ingest("u", {"k": [1, ROWS - 1], "h": [1, 1], "v": [1, 2], "t": [ROWS + 1] * 2})
        go_on(one, ROWS + 2)
    assert sorted(results(engine, ["q"])["q"]) == sorted(results(twin, ["q"])["q"])


def test_a_walk_looks_at_each_place_once_in_pieces():
    sweep, size = Sweep[str](), 3 * PIECE
    sweep.promised("a", 1)
    seen = [places for _, places in sweep.places([size])]
    assert [len(p) for p in seen] == [PIECE]
    assert not sweep.ended()
    sweep.promised("b", 1)
    while not (ended := sweep.ended()):
        seen += [places for _, places in sweep.places([size])]
    assert ended == ["a"] and sorted(p for ps in seen for p in ps.tolist()) == list(range(size))
    assert not list(sweep.places([size]))  # `b` waits until it pays
    sweep.promised("c", size // PROMISE)
    assert list(sweep.places([size])) and sweep.walking == ["b", "c"]


def test_a_walk_goes_on_where_places_have_become_fewer():
    sweep = Sweep[str]()
    sweep.promised("a", 1)
    list(sweep.places([3 * PIECE]))
    ((_, rest),) = sweep.places([PIECE // 2])
    assert rest.tolist() == list(range(PIECE // 2)) and sweep.ended() == ["a"]


def test_few_places_are_looked_at_for_each_promise_and_new_ones_pay():
    sweep = Sweep[str]()
    for name in "abc":
        sweep.promised(name, 1)
        assert list(sweep.places([FEW])) and sweep.ended() == [name]
    sweep.promised("d", 1)
    assert list(sweep.places([2 * FEW])) and sweep.ended() == ["d"]  # half are new
    sweep.promised("e", 1)
    assert not list(sweep.places([2 * FEW]))
    assert list(sweep.places([2 * FEW + 2 * FEW // (NEW - 1)])) and sweep.ended() == ["e"]
