"""A few of the kills of `python -m tests.faults connectors`."""

from __future__ import annotations

from tests.effort import effort
from tests.faults.connectors import ordeal


def test_a_server_that_is_killed_brings_and_tells_everything_once() -> None:
    found = ordeal(10 if effort() else 1, seed=7, only=["file", "redis"])
    assert "file" in found and {again[1:] for again in found.values()} == {(0, 0)}
