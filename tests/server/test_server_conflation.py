"""A reader that only wants the present: net changes, in process and over TCP."""

from __future__ import annotations

import contextlib
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms import Engine
from dsms.api import NetChange, Push
from dsms.errors import UsageError
from dsms.running import conflating
from dsms_client import columns, connect, present
from dsms_client import subscription as reading
from dsms_server.config import Config
from dsms_server.serve import make_engine
from tests.effort import examples, thinned
from tests.server.harness import Proxy
from tests.waiting import WAIT

SECOND = 1_000_000
DDL = """
CREATE STREAM s (k INT, x FLOAT, w STRING, t TIMESTAMP) TIMESTAMP BY t;
CREATE STREAM r (k INT, t TIMESTAMP) TIMESTAMP BY t;
"""
VIEWS = {
    "grouped": "SELECT k, COUNT(*) AS n, MAX(x) AS m FROM s [RANGE 4 s] GROUP BY k",
    "once": "SELECT DISTINCT x, w FROM s [RANGE 3 s]",
    "pairs": "SELECT s.x, r.k FROM s [RANGE 4 s] LEFT JOIN r [RANGE 2 s] ON s.k = r.k",
    "newest": "SELECT Rstream(x, w) FROM s [ROWS 5]",
}
ANSWERS = {
    "periodic": "SELECT x, w FROM s [RANGE 4 s SLIDE 2 s] ORDER BY x, w",
    "total": "SELECT COUNT(*) AS n FROM s [RANGE 4 s SLIDE 2 s] HAVING COUNT(*) > 1",
}
QUERIES = VIEWS | ANSWERS

FEW = st.sampled_from([0, 1, None])
ROWS = st.lists(
    st.tuples(FEW, st.sampled_from([0.0, -0.0, float("nan"), 2.5, None]), st.sampled_from("ab")),
    max_size=6,
)


def bag(rows):
    """A bag of rows in which equal values are equal, NaN too."""
    return Counter(tuple(repr(v + 0.0 if isinstance(v, float) else v) for v in row) for row in rows)


def declared(engine):
    engine.execute(DDL)
    for name, text in QUERIES.items():
        engine.execute(f"CREATE QUERY {name} AS {text}")
    return engine


def held(have, item):
    """What a reader has after an item."""
    if isinstance(item, Push):
        return Counter() if item.data is None else bag(columns.batch_to_rows(item.data))
    assert isinstance(item, NetChange)
    rows = columns.batch_to_rows(item.data)
    signs = item.sign.tolist()
    assert signs == sorted(signs), "what has left comes first"
    if 0 in signs:
        return bag(rows)
    have = Counter(have)
    gone = bag(r for r, sign in zip(rows, signs, strict=True) if sign < 0)
    come = bag(r for r, sign in zip(rows, signs, strict=True) if sign > 0)
    assert gone <= have, "only what the reader has can leave"
    assert not gone & come, "nothing leaves and comes"
    return have - gone + come


@settings(max_examples=examples(60), deadline=None)
@given(steps=st.lists(st.tuples(ROWS, ROWS, st.booleans()), max_size=12), few=st.booleans())
def test_the_net_change_leads_from_answer_to_answer(steps, few):
    """However much is summed up on the way, and whenever it is taken."""
    engine = declared(Engine())
    readers = {name: engine.subscribe(name, conflate=True, limit_bytes=1) for name in QUERIES}
    have = {name: Counter() for name in QUERIES}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conflating, "FEW_BYTES", 0 if few else 1 << 20)
        for second, (rows, others, takes) in enumerate(steps, 1):
            engine.ingest("s", [(*row, second * SECOND) for row in rows])
            engine.ingest("r", [(row[0], second * SECOND) for row in others])
            for stream in ("s", "r"):
                engine.heartbeat(stream, second * SECOND)
            if not takes:
                continue
            for name, reader in readers.items():
                for item in reader.take_chunks():
                    have[name] = held(have[name], item)
                    assert isinstance(item, Push) or item.seq == engine.next_seq(name)
                again = engine.subscribe(name).take()
                answer = again[0].data if again else None
                rows = [] if answer is None else columns.batch_to_rows(answer)
                assert have[name] == bag(rows), name
                assert not reader.closed


def test_from_a_row_on_the_net_change_is_told():
    engine = declared(Engine())
    engine.ingest("s", [(0, 1.0, "a", 0), (0, 2.0, "b", SECOND), (1, 2.0, "b", 2 * SECOND)])
    engine.heartbeat("s", 3 * SECOND)
    [change] = engine.subscribe("newest", 1, conflate=True).take_chunks()
    assert columns.batch_to_rows(change.data) == [(2.0, "b"), (2.0, "b")]
    assert (change.seq, change.upto, change.sign.tolist()) == (3, 2 * SECOND, [1, 1])


def test_nothing_new_is_told_with_its_instant():
    engine = declared(Engine())
    reader = engine.subscribe("grouped", conflate=True)
    engine.ingest("s", [(0, 1.0, "a", 0)])
    engine.heartbeat("s", 9 * SECOND)
    told = reader.take_changes()
    assert (told.rows, told.upto) == (None, 4 * SECOND)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x FROM s",
        "SELECT Istream(x) FROM s [RANGE 1 s]",
        "SELECT Dstream(x) FROM s [RANGE 1 s]",
        "SELECT Istream(COUNT(*)) FROM s [RANGE 2 s SLIDE 1 s]",
        "SELECT Rstream-restore(COUNT(*)) FROM s [RANGE 2 s SLIDE 1 s]",
    ],
)
def test_only_an_answer_has_a_present(text):
    engine = declared(Engine())
    engine.execute(f"CREATE QUERY q AS {text}")
    with pytest.raises(UsageError) as problem:
        engine.subscribe("q", conflate=True)
    assert problem.value.code == "DS646"
    assert engine.runtime.queries["q"].readers == []


# -- over TCP --------------------------------------------------------------------------------------


def feed(db, first, last):
    """Three rows in each of these seconds."""
    for second in range(first, last):
        rows = [[k, (second + k) % 4 / 2, "ab"[second % 2], second * SECOND + k] for k in range(3)]
        db.ingest("s", rows)
        db.ingest("r", [[second % 3, second * SECOND]])
    for stream in ("s", "r"):
        db.heartbeat(stream, last * SECOND - 1)


def answered(db, name):
    return bag(db.query(f"SELECT * FROM {name}").rows)


class Reader:
    """The changes of a query, and the answer that they lead to."""

    def __init__(self, db, name, running):
        self.name, self.engine, self.have = name, running.engine, 0
        self.changes = db.changes(name, conflate=True)
        self.view = self.changes.view()
        self.kinds = set()

    def read(self):
        """All that there is; the answer."""
        more = False
        while more or self.have < self.engine.next_seq(self.name):
            changes = self.changes.next(timeout=WAIT)
            self.have, more = changes.next_seq, changes.more
            self.kinds.add(changes.kind)
        return bag(self.view.rows)


@thinned()
@pytest.mark.parametrize("form", ["rows", "arrow", "auto"])
@pytest.mark.parametrize("max_frame", [1 << 26, 700], ids=["whole", "in parts"])
def test_the_view_is_the_answer(serve, form, max_frame):
    running = serve(make_engine(Config()), max_frame=max_frame)
    with connect(port=running.port, data=form) as db:
        declared(db)
        readers = [Reader(db, name, running) for name in QUERIES]
        for first in range(0, 24, 4):
            feed(db, first, first + 4)
            for reader in readers:
                assert reader.read() == answered(db, reader.name), reader.name


@pytest.mark.parametrize("form", ["rows", "arrow"])
def test_a_slow_reader_gets_the_present_and_is_never_ended(serve, form, monkeypatch):
    """What waits in the client is summed up as well."""
    monkeypatch.setattr(reading, "PRESENT_BYTES", 1)
    running = serve(make_engine(Config()), subscriber_bytes=1)
    with connect(port=running.port, data=form) as db:
        declared(db)
        readers = [Reader(db, name, running) for name in QUERIES]
        for first in range(0, 60, 2):
            feed(db, first, first + 2)
        for reader in readers:
            assert reader.read() == answered(db, reader.name), reader.name
            assert running.server.core.delivery.slow_readers == 0


def test_after_a_lost_connection_the_net_change_comes_or_the_answer_anew(serve):
    running = serve(make_engine(Config()))
    with (
        contextlib.closing(Proxy(running.port)) as proxy,
        connect(port=proxy.port) as db,
        connect(port=running.port) as writer,
    ):
        declared(writer)
        writer.execute("CREATE QUERY short AS SELECT x, w FROM s [ROWS 5] WITH (result_log = 1)")
        readers = [Reader(db, name, running) for name in ("once", "short")]
        for first in (0, 10):
            feed(writer, first, first + 10)
            proxy.passing.set()
            for reader in readers:
                reader.kinds.clear()
                assert reader.read() == answered(writer, reader.name), reader.name
            proxy.passing.clear()
            proxy.cut()
        proxy.passing.set()
        assert [r.kinds for r in readers] == [{"changes"}, {"snapshot"}]


def test_what_cannot_be_conflated_is_refused(serve):
    running = serve(make_engine(Config()))
    with connect(port=running.port) as db, running.peer() as peer:
        declared(db)
        db.execute("CREATE QUERY rows AS SELECT x FROM s")
        with pytest.raises(UsageError) as problem:
            db.changes("rows", conflate=True)
        assert problem.value.code == "DS646"
        refused = peer.ask("subscribe", query="once", conflate=True, changes=False)
        assert refused["error"]["code"] == "DS604"
        assert peer.ask("subscribe", query="once", conflate=1)["error"]["code"] == "DS604"


def test_parts_of_the_newest_answer_stay_together():
    def part(seq, rows, at, more, sign=0):
        message = {"data": rows, "signs": [sign] * len(rows), "ats": [at] * len(rows)}
        return present_changes({"seq": seq, "kind": "changes", "at": at, "more": more} | message)

    parts = [part(0, [[1]], 5, False), part(1, [[2]], 9, True), part(2, [[3]], 9, False)]
    assert present.present(parts) == parts[1:]
    nothing = present_changes({"seq": 3, "kind": "progress", "at": 10, "data": None})
    assert present.present([*parts, nothing]) == [nothing]


def present_changes(message):
    from dsms_client.changes import changes_of

    return changes_of(message, "q", ("k",), ("INT",))
