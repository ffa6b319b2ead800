"""The example that correlates logs, small: trees and pipelines say the same."""

from __future__ import annotations

from examples.zeek import __main__ as zeek
from examples.zeek.logs import synthetic


def test_logs_are_correlated_alike_in_both_forms() -> None:
    said: list[str] = []
    assert zeek.run(synthetic(20, 30), said.append) == 0
    assert said[-1] == "the logs correlated alike in both forms"
    assert [line.split()[0] for line in said[1:4]] == ["requests", "bursts", "around_alarms"]
    assert not any(line.split()[1] == "0" for line in (said[1], said[3]))
    assert {line.split()[-1] for line in said[1:4]} <= {"tree", "pipeline"}


def test_the_logs_are_the_same_every_time() -> None:
    once, again = synthetic(5, 20), synthetic(5, 20)
    assert all(once[name].equals(again[name]) for name in once)
