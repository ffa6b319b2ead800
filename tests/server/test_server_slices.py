"""How much a slice takes, and how pieces of work are put into slices."""

from __future__ import annotations

import pytest

from dsms_server import slices
from dsms_server.slices import MAX_SLICE, MIN_SLICE, READ_SECONDS, SLICE_SECONDS, Pace


def test_slices_grow_by_degrees_however_quick_they_are():
    pace, sizes = Pace(), []
    for _ in range(8):
        sizes.append(pace.of("s"))
        pace.took("s", sizes[-1], 1e-6)
    assert sizes == [min(MAX_SLICE, MIN_SLICE << k) for k in range(8)]
    assert pace.of("another") == MIN_SLICE


def test_the_end_of_a_frame_says_nothing_of_longer_slices_and_shortens_none():
    pace = Pace()
    for _ in range(4):
        pace.took("s", pace.of("s"), 1e-6)
    size = pace.of("s")
    for rows in (1, MIN_SLICE - 1, MIN_SLICE, size // 2 - 1):
        pace.took("s", rows, 1e-6)
        assert pace.of("s") == size
    pace.took("s", size // 2, 1e-6)
    assert pace.of("s") == 2 * size


def test_what_takes_long_shortens_them_at_once():
    pace = Pace()
    for _ in range(4):
        pace.took("s", pace.of("s"), 1e-6)
    size = pace.of("s")
    pace.took("s", size, 4 * SLICE_SECONDS)
    assert pace.of("s") == size // 4
    pace.took("s", size // 4, 1.0)
    assert pace.of("s") == MIN_SLICE


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(slices.clock, "elapsed", lambda: now[0])
    return now


def test_pieces_share_a_slice_until_it_is_long_enough(clock):
    def pieces():
        for _ in range(10):
            clock[0] += READ_SECONDS / 2.5
            yield
        return "done"

    steps, count = slices.some_at_once(pieces()), 0
    with pytest.raises(StopIteration, match="done"):
        while True:
            next(steps)
            count += 1
    assert count == 3


def test_slices_of_whole_frames_grow_too():
    """Frames of a hundred rows: ten are a slice, which has a little less than it may have."""
    pace = Pace()
    for _ in range(10):
        pace.took("s", pace.of("s") // 100 * 100, 1e-6)
    assert pace.of("s") == MAX_SLICE
