"""A few of the kills of `python -m tests.faults kills`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.effort import SLOW, effort
from tests.faults import kills
from tests.faults.engine_points import Crashes
from tests.faults.sink_kills import killed_again_and_again
from tests.faults.sink_points import Cuts

FEW, ALL = 10, 60


def test_a_few_kills_at_any_write(tmp_path) -> None:
    rooms = kills.everything(tmp_path) if effort() else few(tmp_path)
    told = kills.run(rooms, 1000 if effort() > 1 else ALL if effort() else FEW, effort())
    assert told.findings == []
    assert set(told.kills) == {"engine", "archive", "sink"}


def few(folder: Path) -> dict[str, kills.Dying]:
    """One way of each; tests/test_recovery.py and test_archive_jobs.py have the others."""
    return {
        "engine": Crashes(folder / "engine", ("logs written over",)),
        "archive": kills.Archives(folder / "archive", ("compaction",)),
        "sink": Cuts(folder),
    }


class Few:
    """Something that dies at so many points, and badly at one of them."""

    def __init__(self, points: int) -> None:
        self.points = list(range(points))

    def suffer(self, point: int) -> None:
        assert point != 3, "three"


def test_as_many_kills_as_were_asked_for_each_once() -> None:
    rooms = {"engine": Few(4), "archive": Few(100), "sink": Few(0)}
    got = list(kills.drawn(rooms, 50, Random(1)))
    assert len(got) == len(set(got)) == 50
    assert Counter(room for room, _ in got) == {"engine": 4, "archive": 46}
    assert len(list(kills.drawn(rooms, 500, Random(1)))) == 104


def test_what_is_wrong_is_told() -> None:
    told = kills.run({"archive": Few(10), "engine": Few(0), "sink": Few(0)}, 10, 0)
    assert told.findings == ["archive 3: AssertionError: three\nassert 3 != 3"]


@pytest.mark.parametrize("kills", [3, pytest.param(24, marks=SLOW)])
def test_a_subscription_into_a_file_is_killed_again_and_again(tmp_path, kills: int) -> None:
    assert killed_again_and_again(kills, kills, tmp_path) == kills
