"""Linear Road: the example's tolls and accidents are those that are computed report by report."""

from __future__ import annotations

from examples.linear_road.__main__ import main
from examples.linear_road.play import compared, played
from examples.linear_road.traffic import Traffic


def test_tolls_and_accidents_are_as_recomputed():
    traffic = list(Traffic(1, 4000, accidents=2).seconds(190))
    found = played(traffic)
    assert compared(traffic, found) == ""
    assert found.accidents and any(t[-1] for t in found.tolls) and any(t[-2] for t in found.tolls)


def test_a_wrong_toll_is_noticed():
    traffic = list(Traffic(1, 200).seconds(60))
    found = played(traffic)
    found.tolls[7] = (*found.tolls[7][:-1], 1)
    assert "the first difference" in compared(traffic, found)


def test_the_command_says_what_was_told(capsys):
    assert main(["--cars", "300", "--seconds", "120"]) == 0
    out = capsys.readouterr().out
    assert "1,200 reports of 120 s" in out and "minute 1: " in out and "as recomputed" in out
