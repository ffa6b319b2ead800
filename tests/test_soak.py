"""A few rounds of `python -m tests.faults soak`."""

from __future__ import annotations

import pytest

from tests.effort import effort
from tests.faults.soak import Neighbour, rounds, slope


def test_who_troubles_a_server_leaves_nothing_behind(tmp_path) -> None:
    soak = rounds(60 if effort() else 6, 1, tmp_path)
    assert set(soak.done) == {"flood", "read_slowly", "register", "come_and_go", "ask", "garble"}
    assert soak.codes["DS203"] >= 6


def test_how_steep_a_line_is() -> None:
    assert slope([5.0] * 100) == 0.0
    assert slope([k / 60 for k in range(100)]) == pytest.approx(1.0)
    assert slope([3.0]) == 0.0


def test_how_late_a_neighbour_was(monkeypatch: pytest.MonkeyPatch) -> None:
    neighbour = object.__new__(Neighbour)
    neighbour.late, neighbour.paused = [1.0] * 98 + [150.0] * 2, [0.5] * 100
    assert neighbour.told() == (
        "100 frames of a neighbour: late by 1.0 ms (median), 150.0 ms (99 %), 150.0 ms (most), 2 "
        "of them by more than 100 ms; its pauses: 0.5 ms (median), 0.5 ms (99 %), 0.5 ms (most), 0 "
        "of them by more than 100 ms"
    )
