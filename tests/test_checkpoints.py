"""Searching aggregates keep checkpoints: rows that no younger one beats, of which there are far
fewer than rows in the window (Dani and Getta 2005, §7.4 and §8)."""

from __future__ import annotations

import numpy as np
import pytest

from dsms.aggregates.extremes import _deque
from dsms.engine import Engine

S = 1_000_000
NONE = np.empty(0, np.int64)


def checkpoints(values: list[int], width: int, down: bool = True) -> tuple[list[int], list[int]]:
    """Of the last `width` values those that MAX (`down`; else MIN) may still answer with, the
    present answer first; and how many these were at each row."""
    n = len(values)
    words, ends = np.array(values, np.int64), [np.full(1, -1, np.int64) for _ in range(2)]
    links = [np.full(n, -1, np.int64) for _ in range(2)]
    out, valid = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    counts = []
    for i in range(n):
        events = [(i - width, -1)] if i >= width else []
        events.append((i, 1))
        slot = np.array([s for s, _ in events])
        sign = np.array([x for _, x in events], np.int8)
        emit = np.full(len(events), -1, np.int64)
        emit[-1] = i
        code = np.zeros(len(events), np.int64)
        flags = np.empty(0, np.bool_)
        _deque(
            code,
            sign,
            slot,
            emit,
            words,
            flags,
            flags,
            NONE,
            words,
            down,
            *ends,
            *links,
            out,
            valid,
        )
        kept = followed(ends[0], links[0])
        counts.append(len(kept))
        best = max if down else min
        assert out[i] == values[kept[0]] == best(values[max(0, i - width + 1) : i + 1])
    return [values[s] for s in kept], counts


def followed(front: np.ndarray, after: np.ndarray) -> list[int]:
    out, slot = list[int](), int(front[0])
    while slot >= 0:
        out.append(slot)
        slot = int(after[slot])
    return out


def test_the_papers_illustration():
    """The paper's list has no place for what comes behind its last checkpoint, which it buffers;
    here that has its own."""
    window = [3, 8, 12, 6, 5, 10, 4, 2]
    assert checkpoints(window, 8)[0] == [12, 10, 4, 2]
    assert checkpoints([*window, 1], 8)[0] == [12, 10, 4, 2, 1]
    assert checkpoints([*window, 11], 8)[0] == [12, 11]


@pytest.mark.parametrize("down", [True, False])
def test_there_are_far_fewer_than_rows(down):
    """Of random rows as many as records of a random sequence: the harmonic number of the width."""
    width = 1000
    values = np.random.default_rng(8).permutation(3 * width).tolist()
    _, counts = checkpoints(values, width, down)
    expected = sum(1 / i for i in range(1, width + 1))  # 7.5
    assert abs(np.mean(counts[width:]) - expected) < 1.5
    assert max(counts) < 30


@pytest.mark.parametrize("slide", ["", " SLIDE 2 s"])
def test_the_latest_value_above_a_bound_is_a_filter(slide):
    """What LAST keeps for it is one row."""
    engine = Engine()
    engine.execute("CREATE STREAM s (k INT, x INT, t TIMESTAMP) TIMESTAMP BY t")
    rng = np.random.default_rng(5)
    engine.execute(
        "CREATE QUERY q AS SELECT k, LAST(x) FILTER (WHERE x > 7) AS high, "
        f"LAST(t) FILTER (WHERE x > 7) AS since FROM s [RANGE 6 s{slide}] GROUP BY k"
    )
    rows = [[int(k), int(x), i * S] for i, (k, x) in enumerate(rng.integers(0, (3, 10), (60, 2)))]
    engine.ingest("s", rows)
    engine.heartbeat("s", 60 * S - 1)
    if slide:
        engine.heartbeat("s", 60 * S)
    for k, high, since in zip(
        *engine.execute("SELECT * FROM q")[0].data.to_pydict().values(), strict=True
    ):
        mine = [r for r in rows if r[0] == k and 54 * S <= r[2] < 60 * S and r[1] > 7]
        assert [k, high, since] == (mine[-1] if mine else [k, None, None])
