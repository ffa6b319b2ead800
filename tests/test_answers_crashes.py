"""Queries over queries after a crash at any write: what they tell goes on with its numbers, as if
nothing had happened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import recovery_world
from tests.effort import effort
from tests.recovery_world import World, crashed_at, finish

QUERIES = {
    "sums": "SELECT k, SUM(v) AS v, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k",
    "pairs": "SELECT s.k, v, w, n FROM s [RANGE 20 s], u [RANGE 10 s], r WHERE s.k = u.k AND s.k "
    "= r.k",
    "over": "SELECT r.n, COUNT(*) AS c FROM pairs p, r WHERE p.k = r.k GROUP BY r.n",
    "both": "SELECT a.k, a.v, b.c FROM sums a LEFT JOIN over b ON a.n = b.c",
    "went": "SELECT k, COUNT(*) FROM Dstream(sums) [RANGE 10 s] GROUP BY k",
    "slides": "SELECT k, SUM(v) AS x FROM s [RANGE 30 s SLIDE 10 s] GROUP BY k",
    "slid": "SELECT MAX(x), COUNT(*) FROM slides",
}


def test_they_go_on_after_a_crash_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery_world, "QUERIES", QUERIES)
    counted = World(tmp_path / "counted", "sync")
    counted.open()
    counted.declare()
    want = finish(counted)
    assert all(want.values())
    places = 48 if effort() else 2
    for n in range(places):
        at, kind = (2 * n + 1) * counted.files.count // (2 * places), ("kill", "power")[n % 2]
        found = crashed_at(tmp_path / str(at), at, bool(n // 2 % 2), kind)
        assert found == want, (at, kind)
