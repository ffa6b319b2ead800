"""Pushes of the kind `changes` have the rows, numbers and instants of those of one kind, in every
form, and the answer that a client keeps up from them is the engine's."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsms.api import Chunk
from dsms.engine import Engine
from dsms.errors import UsageError
from dsms_client import columns
from dsms_client.changes import changes_of
from dsms_client.sync import connect
from dsms_client.view import View
from dsms_server import pushes
from dsms_server.changes import change_frames
from dsms_server.config import Config
from dsms_server.pushes import push_frames
from dsms_server.serve import make_engine
from tests.effort import thinned
from tests.waiting import WAIT

SECOND = 1_000_000
NAMES = ("b", "i", "f", "d", "s", "y", "t", "l", "i")
TYPES = ("BOOL", "INT", "FLOAT", "DECIMAL(10,2)", "STRING", "BYTES", "TIMESTAMP", "INTERVAL", "INT")
MARKS = {"insert": 1, "delete": -1, "result": 0}


# -- frames ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module", autouse=True)
def small_pieces():
    """Pieces so small that every way to cut is met."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pushes, "ROWS_PIECE", 8)
        patched.setattr(pushes, "ARROW_PIECE", 16)
        yield


def messages(pieces):
    out = []
    for data in pieces:
        while data:
            size = int.from_bytes(data[:4])
            out.append((size, msgpack.unpackb(data[4 : 4 + size], use_list=False)))
            data = data[4 + size :]
    return out


def numbers(low, high):
    return st.none() | st.integers(low, high)


ROW = st.tuples(
    st.none() | st.booleans(),
    numbers(-(2**63), 2**63 - 1),
    st.none() | st.floats(allow_nan=False),
    st.none() | st.decimals(-1000, 1000, places=2, allow_nan=False).map(lambda d: f"{d:f}"),
    st.none() | st.text(max_size=20),
    st.none() | st.binary(max_size=20),
    numbers(0, 10**15),
    numbers(-(10**15), 10**15),
    numbers(0, 1),
)


@st.composite
def chunk_lists(draw):
    """Neighbouring chunks whose rows enter and leave by turns, or are parts of answers; some before
    any clock."""
    periodic, early = draw(st.booleans()), draw(st.booleans())
    seq, now, out = draw(st.integers(0, 3000)), -(2**63) if early else 0, []
    for length in draw(st.lists(st.integers(1, 40), min_size=1, max_size=4)):
        now = max(now + 1, 0) if out else now
        sign, at = [], []
        for _ in range(length):
            now += draw(st.integers(0, 1)) if now >= 0 else 0
            sign.append(0 if periodic else draw(st.sampled_from((1, -1))))
            at.append(now)
        rows = draw(st.lists(ROW, min_size=length, max_size=length))
        data = columns.rows_to_batch(rows, NAMES, TYPES)
        out.append(Chunk(seq, np.array(sign, np.int8), np.array(at, np.int64), data))
        seq += length
    return out


def one_kind_at_a_time(chunks):
    """(seq, sign, instant, values) of each row, from pushes of one kind."""
    out = []
    for chunk in chunks:
        for _, m in messages(push_frames(chunk, "q", TYPES, "rows", 1 << 30)):
            sign = MARKS[m["kind"]]
            out += [(m["seq"] + i, sign, m["at"], tuple(row)) for i, row in enumerate(m["data"])]
    return out


def in_columns(found):
    """As `one_kind_at_a_time`, of pushes of the kind `changes`."""
    out = []
    for m in found:
        assert m["kind"] == "changes"
        told = changes_of(m, "q", NAMES, TYPES)
        rows = zip(told.sign.tolist(), told.ats.to_pylist(), told.rows, strict=True)
        out += [(told.seq + i, *row) for i, row in enumerate(rows)]
        assert told.next_seq == told.seq + len(told) and m["at"] == out[-1][2]
    return out


@given(
    chunk_lists(),
    st.sampled_from(("rows", "arrow", "auto")),
    st.sampled_from((150, 300, 1000, 10_000, 1 << 20)),
)
def test_changes_are_the_pushes_of_one_kind(chunks, form, limit):
    found = messages(change_frames(chunks, "q", TYPES, form, limit))
    rows = in_columns(m for _, m in found)
    assert rows == one_kind_at_a_time(chunks)
    ats = [[at for _, _, at, _ in in_columns([m])] for _, m in found]
    for (before, after), (_, m) in zip(pairwise(ats), found, strict=False):
        assert m.get("more", False) is (before[-1] == after[0])
        assert not m.get("more") or len({*before}) == 1 or form != "rows"
    assert not (found and found[-1][1].get("more"))
    for size, m in found:
        assert form != "rows" or size <= limit or len(m["data"]) == 1


@given(chunk_lists(), st.data())
def test_from_any_row_on_the_rest_comes(chunks, data):
    rows = one_kind_at_a_time(chunks)
    first = data.draw(st.integers(0, len(rows)))
    seq = chunks[0].seq + first
    rest = [chunk.after(seq) for chunk in chunks if chunk.seq + len(chunk) > seq]
    for form in ("rows", "arrow"):
        found = messages(change_frames(rest, "q", TYPES, form, 1 << 20))
        assert in_columns(m for _, m in found) == rows[first:]


def test_many_small_chunks_are_one_push():
    one = columns.rows_to_batch([[1]], ["k"], ["INT"])
    chunks = [Chunk(i, np.array([1], np.int8), np.array([i]), one) for i in range(10)]
    ((_, push),) = messages(change_frames(chunks, "q", ("INT",), "arrow", 1 << 20))
    table = columns.from_ipc(push["data"])
    assert table.column_names == ["k", "$sign", "$at"] and table.num_rows == 10


# -- the view --------------------------------------------------------------------------------------


def told(kind, rows, **fields):
    at = fields.pop("at", 5)
    return changes_of({"seq": 0, "kind": kind, "at": at, "data": rows, **fields}, "q", NAMES, TYPES)


@given(st.lists(ROW, min_size=1, max_size=6), st.data())
def test_a_view_counts_rows_of_all_types(rows, data):
    view, bag = View(NAMES, TYPES), Counter()
    for _ in range(data.draw(st.integers(1, 5))):
        picked = data.draw(st.lists(st.sampled_from(rows), max_size=8))
        gone = [row for row in bag.elements() if data.draw(st.booleans())]
        signs = [-1] * len(gone) + [1] * len(picked)
        some = told("changes", [*gone, *picked], signs=signs, ats=[5] * len(signs))
        view.add(some)
        bag.update(picked)
        bag.subtract(gone)
        bag = +bag
        if data.draw(st.booleans()):
            assert shown(view.rows) == shown(bag.elements())
    assert len(view) == bag.total()
    assert view.polars().shape == view.pandas().shape == (bag.total(), len(NAMES))


def test_a_snapshot_in_parts_is_one_answer():
    row = (None,) * len(NAMES)
    view = View(NAMES, TYPES)
    view.add(told("insert", [row]))
    view.add(told("snapshot", [row, row], more=True))
    view.add(told("snapshot", [row]))
    assert len(view) == 3
    view.add(told("snapshot", [row]))
    view.add(told("delete", [row], at=6))
    assert (len(view), view.at) == (0, 6)


def test_an_answer_in_parts_is_one_answer():
    one, two = ((None, n, *[None] * 7) for n in (1, 2))
    view = View(NAMES, TYPES)
    view.add(told("result", [one, two], more=True))
    view.add(told("result", [one]))
    assert view.rows == [one, two, one]
    view.add(told("changes", [one, two, two], signs=[0] * 3, ats=[5, 6, 6], at=6))
    assert view.rows == [two, two]


def test_changes_that_are_not_whole_are_refused():
    with pytest.raises(UsageError, match="DS510"):
        told("changes", [(None,) * 9], signs=[1, 1], ats=[5])


# -- over TCP --------------------------------------------------------------------------------------

SCRIPT = """
CREATE STREAM s (k INT, g INT, x FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
CREATE STREAM r (k INT, w STRING, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
CREATE QUERY grouped AS SELECT g, COUNT(*) AS n, SUM(x) AS x, MAX(k) AS m FROM s [RANGE 2 s]
  GROUP BY g;
CREATE QUERY once AS SELECT DISTINCT x FROM s [RANGE 3 s];
CREATE QUERY pairs AS SELECT s.g, r.w FROM s [RANGE 2 s], r [RANGE 3 s] WHERE s.g = r.k;
CREATE QUERY rows AS SELECT g, x FROM s [ROWS 7];
CREATE QUERY ever AS SELECT g FROM s WHERE k > 30;
CREATE QUERY periodic AS SELECT g, x FROM s [RANGE 2 s SLIDE 1 s] ORDER BY x DESC, g;
"""
QUERIES = ("grouped", "once", "pairs", "rows", "ever", "periodic")
S = [
    [k, k * 7 % 5 or None, (None, 0.0, -0.0, float("nan"), 1.5)[k % 5], k // 3 * SECOND // 2]
    for k in range(60)
]
R = [[k % 5, "xy"[k % 2], k * SECOND] for k in range(10)]


def shown(rows):
    """A bag of rows in which equal values are equal, NaN too."""
    return Counter(tuple(repr(v + 0.0 if isinstance(v, float) else v) for v in row) for row in rows)


def feed(db):
    """The rows, a second at a time; after each the instant."""
    for second in range(10):
        for name, rows in (("s", S), ("r", R)):
            due = [row for row in rows if row[-1] // SECOND == second]
            db.ingest(name, due)
            db.heartbeat(name, (second + 1) * SECOND - 1)
        yield (second + 1) * SECOND - 1


def taken(reader, have, upto):
    """Read until row `upto` is the next one; the number of the row that follows what was read."""
    while have < upto:
        have = reader.next(timeout=WAIT).next_seq
    return have


def answer_of(db, name, instant):
    """The engine's own; of a query that only adds, what was added so far."""
    if name == "ever":
        return [(row[1],) for row in S if row[0] > 30 and row[-1] <= instant]
    return db.query(f"SELECT * FROM {name}").rows


@thinned()
@pytest.mark.parametrize("form", ["rows", "arrow"])
@pytest.mark.parametrize("knows", [True, False], ids=["changes", "one kind"])
def test_the_view_is_the_answer_at_each_instant(serve, form, knows):
    """Also where the server doesn't know changes: then they are made of pushes of one kind."""
    running = serve(make_engine(Config()))
    with connect(port=running.port, data=form) as db:
        db.execute(SCRIPT)
        db._client._knows_changes = knows
        readers = {name: db.changes(name, 0) for name in QUERIES}
        views = {name: reader.view() for name, reader in readers.items()}
        have = dict.fromkeys(QUERIES, 0)
        for instant in feed(db):
            for name, reader in readers.items():
                have[name] = taken(reader, have[name], running.engine.next_seq(name))
                answer = answer_of(db, name, instant)
                assert shown(views[name].rows) == shown(answer), name
                assert len(views[name]) == len(answer)
        assert len(db.query("SELECT * FROM grouped")) == 5
        in_order = db.query("SELECT * FROM periodic").rows
        assert repr(views["periodic"].rows) == repr(in_order)


@pytest.mark.parametrize("max_frame", [1 << 26, 700])
@pytest.mark.parametrize("form", ["rows", "arrow"])
def test_a_view_begins_with_a_snapshot(serve, form, max_frame):
    running = serve(make_engine(Config()), max_frame=max_frame)
    with connect(port=running.port, data=form) as db:
        db.execute(SCRIPT)
        instants = feed(db)
        for _ in range(5):
            next(instants)
        readers = {name: db.changes(name) for name in ("grouped", "once", "rows", "periodic")}
        views = {name: reader.view() for name, reader in readers.items()}
        have = {name: running.engine.next_seq(name) for name in readers}
        for name, reader in readers.items():
            while (snapshot := reader.next(timeout=WAIT)).more:
                pass
            assert snapshot.kind == "snapshot" and len(views[name]) > 1
        for _ in instants:
            for name, reader in readers.items():
                have[name] = taken(reader, have[name], running.engine.next_seq(name))
                answer = db.query(f"SELECT * FROM {name}").rows
                assert shown(views[name].rows) == shown(answer), name


def test_an_empty_answer_of_a_periodic_query_empties_the_view(serve):
    running = serve(make_engine(Config()))
    with connect(port=running.port) as db:
        db.execute(SCRIPT)
        reader = db.changes("periodic")
        view = reader.view()
        db.ingest("s", S[:3])
        db.heartbeat("s", SECOND)
        while reader.next(timeout=WAIT).kind != "changes":
            pass
        assert len(view) == 3
        db.heartbeat("s", 9 * SECOND)
        while view.at != 9 * SECOND:  # each empty boundary on the way may be told, or not
            reader.next(timeout=WAIT)
        assert view.rows == []


@pytest.mark.parametrize("conflate", [False, True])
@pytest.mark.parametrize("form", ["rows", "arrow"])
def test_a_view_counts_lists_by_what_they_have(serve, form: str, conflate: bool) -> None:
    """Arrow groups by no lists, so the view ended with an error of Arrow's."""
    running = serve(make_engine(Config()))
    lists = [[1, None], [], None, [1, None], [float("nan")], [0.0], [-0.0], [float("nan")]]
    with connect(port=running.port, data=form) as db:
        db.execute(
            "CREATE STREAM l (v LIST(FLOAT), t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;"
            "CREATE QUERY n AS SELECT v, COUNT(*) AS n FROM l [RANGE 100 s] GROUP BY v"
        )
        reader = db.changes("n", conflate=conflate)
        view = reader.view()
        for n, value in enumerate(lists):
            db.ingest("l", [[value, n * SECOND]])
        db.heartbeat("l", 20 * SECOND)
        wanted = sorted(db.query("SELECT * FROM n").rows, key=repr)
        assert [n for _, n in wanted] == [2, 2, 2, 1, 1]
        while sorted(view.rows, key=repr) != wanted:
            reader.next(timeout=WAIT)


@pytest.mark.parametrize("form", ["rows", "arrow", "auto"])
def test_from_any_row_on_both_forms_say_the_same(serve, form):
    running = serve(make_engine(Config()))
    with connect(port=running.port, data=form) as db:
        db.execute(SCRIPT)
        for _ in feed(db):
            pass
        for name in QUERIES:
            last = running.engine.next_seq(name)
            want = one_by_one(db, name, last)
            for start in (0, 1, last // 2, last - 1):
                assert in_columns_from(db, name, start, last) == want[start:], name


def one_by_one(db, name, last):
    out = []
    with db.subscribe(name, 0) as pushes:
        while len(out) < last:
            push = next(pushes)
            rows = zip(push.instants, push.rows, strict=True)
            out += [(MARKS[push.kind], at, shown([row])) for at, row in rows]
    return out


def in_columns_from(db, name, start, last):
    out = []
    with db.changes(name, start) as reader:
        for changes in reader:
            assert changes.seq == start + len(out)
            rows = zip(changes.sign.tolist(), changes.ats.to_pylist(), changes.rows, strict=True)
            out += [(sign, at, shown([row])) for sign, at, row in rows]
            if changes.next_seq == last:
                break
    return out


def test_a_session_asks_for_changes_and_one_subscription_may_differ(server):
    with server.peer() as peer:
        assert peer.ask("hello", version=1)["changes"] is False
        assert peer.ask("hello", version=1, changes=True)["changes"] is True
        assert peer.ask("hello", version=1, changes=1)["error"]["code"] == "DS604"
        assert peer.ask("subscribe", query="q", changes=[])["error"]["code"] == "DS604"


def test_who_does_not_ask_gets_rows_of_one_kind(serve):
    running = serve(make_engine(Config()))
    with connect(port=running.port) as db, running.peer() as old, running.peer() as new:
        db.execute(SCRIPT)
        new.ask("hello", version=1, changes=True)
        old.ask("subscribe", query="grouped", **{"from": 0})
        new.ask("subscribe", query="grouped", **{"from": 0})
        new.ask("subscribe", query="ever", changes=False, **{"from": 0})
        for _ in feed(db):
            pass
        assert old.push().keys() == {"push", "seq", "kind", "at", "data"}
        kinds = set()
        while len(kinds) < 2:
            push = new.push()
            kinds.add((push["push"], push["kind"]))
        assert kinds == {("grouped", "changes"), ("ever", "insert")}


def test_in_process_changes_are_in_columns():
    engine = Engine()
    engine.execute(SCRIPT)
    readers = {name: (engine.subscribe(name, 0), engine.subscribe(name, 0)) for name in QUERIES}
    for _ in feed(engine):
        for name, (columnar, rowwise) in readers.items():
            told = columnar.take_changes()
            want = [
                (MARKS[p.kind], at, shown([row]))
                for p in rowwise.take()
                if p.data is not None
                for at, row in zip(
                    [p.at] * p.data.num_rows if p.ats is None else p.ats.to_pylist(),
                    columns.batch_to_rows(p.data),
                    strict=True,
                )
            ]
            assert len(told) == len(want)
            if told.rows is not None:
                values = [shown([row]) for row in columns.batch_to_rows(told.rows.data)]
                signs, ats = told.rows.sign.tolist(), told.rows.at.tolist()
                assert list(zip(signs, ats, values, strict=True)) == want, name
                assert told.upto == ats[-1]
    engine.execute("DROP QUERY ever")
    end = readers["ever"][0].take_changes()
    assert end.end is not None and len(end) == 0
