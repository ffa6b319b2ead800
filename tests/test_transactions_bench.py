"""The benchmark of the transaction schedulers at toy size: every answer is right, and a wrong one
stops it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from dsms.schedulers.transactions import KINDS
from tests.benchmarks import __main__ as command
from tests.benchmarks import transactions_run
from tests.benchmarks.harness import WrongAnswer
from tests.benchmarks.transactions_run import Setting, compare
from tests.benchmarks.transactions_work import Group

SETTING = Setting(seconds=1.0, windows=8, periodic=20, one_time=1, rate=50, updates=40)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread clock on which a millisecond passes between two looks: no run depends on the
    machine."""
    ticks = iter(range(10_000_000))
    monkeypatch.setattr(transactions_run.time, "thread_time", lambda: next(ticks) / 1000)


def test_it_writes_its_report(tmp_path: Path) -> None:
    assert command.main(["transactions", "--toy", "--report", str(tmp_path)]) == 0
    text = (tmp_path / "report.md").read_text()
    assert "| TTU aborts nothing | 0.0 % at most | yes |" in text
    assert len(list(tmp_path.glob("transactions-*.png"))) == text.count("](transactions-") == 8


@pytest.mark.usefixtures("clock")
def test_schedulers_do_the_same_work_and_differ_as_they_should() -> None:
    runs = compare(KINDS, SETTING, seed=1, speed=50.0, checks=1_000_000)
    counters = {kind: run.scheduler.counters for kind, run in runs.items()}
    assert all(c.committed > 20 for c in counters.values())
    assert counters["lws"].aborted > 0
    assert counters["serial"].aborted == counters["ws"].aborted == counters["ttu"].aborted == 0
    assert counters["serial"].suspended == 0 < counters["ttu"].suspended
    mean = {kind: float(np.mean(run.periodic.staleness)) for kind, run in runs.items()}
    assert mean["ttu"] < min(mean["serial"], mean["ws"])
    replies = {kind: float(np.mean(run.one_time.response)) for kind, run in runs.items()}
    assert replies["ttu"] < replies["serial"]


@pytest.mark.usefixtures("clock")
def test_a_wrong_answer_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Group.read
    monkeypatch.setattr(Group, "read", lambda self, part: read(self, part) + 1)
    with pytest.raises(WrongAnswer, match="answer"):
        compare(("ttu",), SETTING, seed=1, speed=50.0, checks=1)


@pytest.mark.usefixtures("clock")
def test_a_missing_sub_window_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    late = transactions_run.Run._begin

    def begin(self: transactions_run.Run, query, at=None) -> None:  # asks for one too few
        longer, query.lengths = query.lengths, tuple(max(1, n - 1) for n in query.lengths)
        late(self, query, at)
        query.lengths = longer

    monkeypatch.setattr(transactions_run.Run, "_begin", begin)
    with pytest.raises((WrongAnswer, KeyError)):
        compare(("ttu",), Setting(1.0, 8, 20, 0, 50, 12), seed=1, speed=50.0, checks=0)
