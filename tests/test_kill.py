"""A few of the kills of `python -m tests.faults.kill`."""

from __future__ import annotations

from dsms import state_key
from tests.effort import SLOW, effort
from tests.faults.kill import Plan, ordeal


def test_a_server_killed_under_load_loses_nothing_and_tells_nothing_twice():
    kills = 5 if effort() else 2
    assert ordeal(Plan(60, 100), kills, seed=3).done >= kills


@SLOW
def test_frames_that_are_applied_in_slices():
    made = ordeal(Plan(8, 20_000), 3, seed=4)
    assert made.done >= 3


@SLOW
def test_so_does_one_whose_data_folder_is_encrypted(tmp_path, monkeypatch):
    state_key.write_new(str(tmp_path / "key"))
    monkeypatch.setenv("DSMS_STATE_KEY_FILE", str(tmp_path / "key"))
    assert ordeal(Plan(30, 100), 5, seed=5).done >= 5
