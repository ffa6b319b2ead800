"""The benchmark of the query scheduler at toy size: answers are right, wrong ones are noticed, a
report comes out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from tests.benchmarks import __main__ as command
from tests.benchmarks import queries_run
from tests.benchmarks.harness import Options, WrongAnswer
from tests.benchmarks.queries_work import (
    KEYS,
    RING,
    Basic,
    Query,
    Running,
    Traffic,
    quantile,
    queries_of,
    top,
)
from tests.effort import thinned

TRAFFIC = Traffic.random(60, 40, seed=1)


@thinned()
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("in_place", [True, False])
def test_shared_scans_answer_as_recomputation_does(key: str, in_place: bool) -> None:
    synopsis = Basic(TRAFFIC.counters(key), in_place)
    asked = queries_of(key, 12)
    for updates in (0, 57, RING, 3 * RING + 5):
        answers = synopsis.execute(asked, updates)
        assert answers == {q.name: synopsis.recomputed(q, updates) for q in asked}


@pytest.mark.parametrize("seed", range(20))
def test_top_and_quantile(seed: int) -> None:
    rng = np.random.default_rng(seed)
    state = rng.integers(0, 10 ** rng.integers(1, 12), int(rng.integers(1, 500))) * (
        rng.random() < 0.9
    )
    state[rng.random(len(state)) < 0.3] = 0
    state[-1] = 5
    used = np.sort(state[state > 0])
    assert top(state) == tuple(np.sort(state)[::-1][:10].tolist())
    for phi in (0.0, 0.5, 0.9, 0.99):
        assert quantile(state, phi) == used[int(phi * len(used))]


def test_running_counters_answer_as_recomputation_does() -> None:
    running = Running(TRAFFIC.counters("source"))
    for updates in (0, 3, RING, 2 * RING + 50):
        for cell in range(0, running.cells, 7):
            assert running.look_up(cell, 30, updates) == running.recomputed(cell, 30, updates)


def test_a_wrong_answer_stops_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = queries_run.Sizes.of(Options("toy"))
    load = queries_run.workload(sizes, 1, in_place=False)
    second = queries_run.calibrate(load, 16)
    monkeypatch.setattr(Basic, "recomputed", lambda self, query, updates: -1)
    with pytest.raises(WrongAnswer, match="got"):
        queries_run.run(load, 16, "HS", second, sizes, 1)


def test_lateness_and_throughput_are_those_of_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """One group would run its only query each update if it could; it takes two and a half."""
    sizes = queries_run.Sizes.of(Options("toy"))
    load = queries_run.workload(sizes, 1, in_place=False)
    machine = queries_run.Machine(load, 8, "CS", 1.0, 1 << 60)
    for synopsis in load.groups.values():
        monkeypatch.setattr(synopsis, "execute", lambda asked, updates: {})
        synopsis.spent = (2.0, 0.5)
    monkeypatch.setattr(load.running, "look_up", lambda *_: 0)
    machine.run(100)
    outcome = machine.outcome(100)
    assert outcome.throughput == pytest.approx(0.4, abs=0.02)
    assert outcome.cost == 2.5
    assert outcome.share == pytest.approx(0.2)
    slides = [q.slide for some in machine.queries.values() for q in some]
    assert outcome.latency == pytest.approx(np.mean([max(0, 20 - s) for s in slides]), abs=4)
    assert isinstance(machine.queries["port"][0], Query)


def test_the_report_is_written(tmp_path: Path) -> None:
    assert command.main(["queries", "--toy", "--report", str(tmp_path)]) == 0
    text = (tmp_path / "report.md").read_text()
    assert "Claims of the thesis" in text
    assert (tmp_path / "queries-latency-high.png").exists()
