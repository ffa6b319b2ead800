"""A few of the pauses of `python -m tests.faults pauses`."""

from __future__ import annotations

import pytest

from tests.effort import SLOW
from tests.faults.pauses import WHO, Pauses


@pytest.mark.parametrize(
    "who", [("server", "server killed"), *(pytest.param((w,), marks=SLOW) for w in WHO[1:3])]
)
def test_who_is_halted_for_a_while_loses_nothing(tmp_path, who: tuple[str, ...]) -> None:
    pauses = Pauses(tmp_path, 1, who=who)
    pauses.run(len(who))
    assert pauses.paused == dict.fromkeys(who, 1)
