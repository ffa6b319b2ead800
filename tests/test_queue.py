"""Batches that wait: whatever their sizes, what is taken is the rows up to a key, in order,
once."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.sql.types import FOREVER
from dsms.state.batch import Batch
from dsms.state.queue import BatchQueue
from dsms.storage.layout import by_tag, upgraded
from tests.effort import examples


def batch(ts: list[int], first: int = 0) -> Batch:
    at, number = np.array(ts, np.int64), np.arange(first, first + len(ts))
    return Batch(at, None, None, (number,), (pa.array(number),))


def rows(batches: list[Batch]) -> list[tuple[int, int]]:
    return [(int(t), int(n)) for b in batches for t, n in zip(b.ts, b.number, strict=True)]


@given(st.lists(st.lists(st.integers(0, 3), max_size=5), max_size=8), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_it_is_a_list_cut_at_keys(steps: list[list[int]], data: st.DataObject) -> None:
    queue: BatchQueue[Batch] = BatchQueue()
    model: list[tuple[int, int]] = []
    now = count = 0
    for step in steps:
        ts = (now + np.cumsum(step)).tolist()
        now = ts[-1] if ts else now
        queue.push(batch(ts, count))
        model += [(t, count + k) for k, t in enumerate(ts)]
        count += len(ts)
        upto, most = data.draw(st.integers(-1, now + 1)), data.draw(st.integers(1, 6))
        due = [r for r in model if r[0] <= upto]
        assert queue.cut(upto, most) == (
            upto if len(model) < most else min(upto, model[most - 1][0])
        )
        assert rows(queue.upto(upto)) == due and queue.rows == len(model)
        if data.draw(st.booleans()):
            assert rows(queue.take(upto)) == due
            model = model[len(due) :]
        assert (queue.rows, bool(queue), queue.first) == (
            len(model),
            bool(model),
            model[0][0] if model else FOREVER,
        )
        assert rows(list(queue.batches)) == model and all(len(b) for b in queue.batches)
        assert queue.nbytes == 24 * len(model)


def test_it_goes_by_the_key_that_it_has() -> None:
    queue: BatchQueue[Batch] = BatchQueue("number")
    queue.push(batch([5, 5, 5], 7))
    assert rows(queue.take(8)) == [(5, 7), (5, 8)] and queue.first == 9


BATCHES = [batch([1, 2], 0), batch([2], 2)]


@pytest.mark.parametrize(
    ("tag", "fields", "place", "key"),
    [
        ("sources.stream_source", {"queue": deque(BATCHES), "waiting": 3}, "queue", "ts"),
        ("timed.held", {"queue": deque(BATCHES), "numbers": None}, "queue", "ts"),
        ("timed.held", {"queue": deque(BATCHES), "numbers": SimpleNamespace()}, "queue", "number"),
        ("archiving.waiting", {"batches": deque(BATCHES), "rows": 3, "nbytes": 9}, "queue", "mark"),
        ("window.historical_window_op", {"waiting": list(BATCHES)}, "waiting", "ts"),
    ],
)
def test_what_waited_in_an_older_folder_waits_on(
    tag: str, fields: dict[str, object], place: str, key: str
) -> None:
    queue = upgraded(by_tag()[tag], 1, fields)[place]
    assert queue == BatchQueue(key, deque(BATCHES), 3)  # type: ignore[arg-type]
