"""A few of the kills of `python -m tests.faults connectors`."""

from __future__ import annotations

import pytest

from tests.effort import effort
from tests.faults.connectors import ordeal


@pytest.mark.parametrize("kind", ["file", "redis", "nats"])
def test_a_server_that_is_killed_brings_and_tells_everything_once(kind: str) -> None:
    found = ordeal(10 if effort() else 2, seed=7, only=[kind])
    assert found.get(kind, (0, 0, 0))[1:] == (0, 0)
