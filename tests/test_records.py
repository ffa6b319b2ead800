"""What the journal's records hold comes back as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import InternalError
from dsms.intake.convert import Refusal
from dsms.settings import Settings
from dsms.storage import journal, records
from tests.physical import INT64, TYPES, columns


def packed(record) -> bytes:
    return b"".join(map(bytes, records.encode(record)))


def again(kind: int, record):
    return records.decode(kind, memoryview(packed(record)))


REFUSALS = st.builds(
    Refusal, st.text(max_size=9), st.integers(1, 99), st.integers(0, 99), st.text(max_size=9)
)


@given(st.data(), TYPES)
def test_rows_of_every_type_come_back(data, types):
    cols = data.draw(columns(types))
    now, client = data.draw(st.none() | INT64), data.draw(st.none() | st.text(max_size=5))
    kept = data.draw(st.none() | st.just(np.arange(len(cols[0])) * 3))
    refusals = tuple(data.draw(st.lists(REFUSALS, max_size=2)))
    made = records.StreamRows(
        cols, now, kept, client, data.draw(st.none() | st.integers(0, 2**60)), 7, False, refusals
    )
    back = again(records.ROWS, made)
    assert back.columns == cols and [c.type for c in back.columns] == [t.arrow for t in types]
    assert (back.kept is None) == (kept is None) and (
        kept is None or back.kept.tolist() == kept.tolist()
    )
    fields = ("now", "client", "seq", "done", "last", "refusals")
    assert [getattr(back, f) for f in fields] == [getattr(made, f) for f in fields]
    said = again(records.PUNCTUATION, records.Punctuation((0, 3), cols, 2**63 - 1))
    assert (said.columns, said.values, said.upto) == ((0, 3), cols, 2**63 - 1)
    late = again(records.LATE, records.Late(cols, now))
    assert (late.columns, late.now) == (cols, now)


@given(INT64)
def test_instants_come_back(at):
    for kind, made in [
        (records.HEARTBEAT, records.Heartbeat(at)),
        (records.MOVED, records.Moved(at)),
        (records.ADVANCE, records.Advance(at)),
    ]:
        assert again(kind, made) == made
    assert again(records.ENDED, records.Ended()) == records.Ended()


def test_many_columns_find_room():
    cols = tuple(pa.array([None, i], pa.int64()) for i in range(1000))
    assert again(records.ROWS, records.StreamRows(cols)).columns == cols


def test_slices_leave_the_rest_behind():
    words = pa.array([f"word {i}" for i in range(100_000)])
    for whole in (pa.array(np.arange(100_000)), words, pa.array([None, True] * 50_000)):
        assert len(packed(records.StreamRows((whole.slice(50_001, 3),)))) < 1000


def test_columns_are_aligned_and_do_not_need_the_log_any_more():
    """The log of a record may be written over while its rows are still in a window."""
    made = records.StreamRows((pa.array([1, 2, 3]), pa.array(["a", None, "c"])))
    for shift in range(8):
        log = bytearray(bytes(shift) + packed(made))
        back = records.decode(records.ROWS, memoryview(log)[shift:])
        log[:] = b"\xff" * len(log)
        assert back.columns == made.columns and back.columns[0].to_numpy().flags.aligned


def test_an_unknown_record_is_our_mistake():
    with pytest.raises(InternalError, match="DS931"):
        records.encode("rows")


def test_rows_that_were_recovered_outlive_the_log_that_they_came_from(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(journal, "WORTH", 1)
    name, settings = str(tmp_path), Settings(checkpoint_bytes=0)
    engine = Engine(name, settings)
    engine.execute("CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h SUBWINDOW 1 h")
    engine.ingest("s", {"v": [0] * 1000, "t": list(range(1000))})
    assert engine.saver is not None
    engine.saver.catalog.close()  # killed
    engine = Engine(name, settings)
    for part in (1, 2, 3):
        ts = list(range(part * 1000, part * 1000 + 1000))
        engine.ingest("s", {"v": [-1] * 1000, "t": ts})
        assert engine.saver is not None and engine.saver.checkpoint()
    engine.heartbeat("s", 10_000)
    (found,) = engine.execute("SELECT v, COUNT(*) FROM s [RANGE 1 h] GROUP BY v ORDER BY v")
    assert [c.to_pylist() for c in found.data.columns] == [[-1, 0], [3000, 1000]]  # type: ignore[union-attr]
    engine.close()
