"""A fault of ours, wherever it happens in a query, stops that query and what shares it; all other
queries go on."""

from __future__ import annotations

import pytest

from dsms.engine import Engine
from dsms.periodic.query import PeriodicQuery
from dsms.running.query import RunningQuery
from dsms.running.sources import StreamSource
from dsms.settings import Settings
from dsms.sharing.group import Group
from dsms.sharing.join_group import JoinGroup
from dsms.sharing.stream_group import StreamGroup
from tests.effort import thinned

S = 10**6
DECLARED = """
CREATE STREAM s (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 min;
CREATE STREAM u (k STRING, w INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE STREAM good (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE TABLE r (k STRING PRIMARY KEY, n INT);
CREATE QUERY fine AS SELECT COUNT(*) FROM s [RANGE 10 s];
CREATE QUERY rows AS SELECT k, n FROM r;
"""
CONTINUOUS = "SELECT k, COUNT(*) FROM s [RANGE 10 s] GROUP BY k"
PERIODIC = "SELECT k, SUM(v) FROM s [RANGE 10 s SLIDE 2 s] GROUP BY k"
ALONE = "SELECT k, v FROM s [RANGE 10 s SLIDE 2 s]"
JOINED = "SELECT COUNT(*) FROM s [RANGE 4 s SLIDE 2 s], u [RANGE 4 s SLIDE 2 s] WHERE s.k = u.k"
TABLES = "SELECT n FROM r WHERE n > 1"


def fault(*args, **options):
    raise ZeroDivisionError("as planned")


def fed(engine: Engine, first: int, last: int) -> None:
    for i in range(first, last):
        row = [["ab"[i % 2], i, i * S]]
        assert engine.ingest("s", row).accepted == engine.ingest("u", row).accepted == 1
        engine.work()


def break_(engine: Engine, monkeypatch: pytest.MonkeyPatch, owner: type, method: str) -> None:
    """From now on the query `bad`, or its group, fails there."""
    bad = engine.runtime.queries["bad"]
    whole = getattr(owner, method)

    def broken(self, *args, **options):
        group = isinstance(self, Group) and any(m.query is bad for m in self.members)
        source = isinstance(self, StreamSource) and any(self is p for p in bad.sources_of("s"))
        return (fault if self is bad or group or source else whole)(self, *args, **options)

    monkeypatch.setattr(owner, method, broken)


@thinned()
@pytest.mark.parametrize(
    ("sql", "owner", "method"),
    [
        (CONTINUOUS, RunningQuery, "advance"),
        (CONTINUOUS, RunningQuery, "publish"),
        (CONTINUOUS, RunningQuery, "sources_of"),
        (CONTINUOUS, StreamSource, "push"),
        (PERIODIC, PeriodicQuery, "begin"),
        (PERIODIC, PeriodicQuery, "report"),
        (PERIODIC, StreamGroup, "take"),
        (PERIODIC, StreamGroup, "begin"),
        (PERIODIC, StreamGroup, "advance"),
        (PERIODIC, StreamGroup, "answers"),
        (PERIODIC, StreamGroup, "_trim"),
        (ALONE, PeriodicQuery, "heard"),
        (ALONE, PeriodicQuery, "begin"),
        (ALONE, PeriodicQuery, "advance"),
        (ALONE, PeriodicQuery, "sources_of"),
        (JOINED, JoinGroup, "take"),
        (JOINED, JoinGroup, "begin"),
        (JOINED, JoinGroup, "advance"),
        (JOINED, JoinGroup, "_within_limits"),
        (TABLES, RunningQuery, "advance"),
    ],
)
@pytest.mark.parametrize("early", [True, False])
def test_a_fault_stops_one_query(monkeypatch, sql, owner, method, early):
    engine = Engine()
    engine.execute(DECLARED + f"CREATE QUERY bad AS {sql};")
    fed(engine, 0, 0 if early else 9)
    break_(engine, monkeypatch, owner, method)
    fed(engine, 9, 30)
    engine.execute("INSERT INTO r VALUES ('a', 2)")
    shown = {
        q["query"]: q["status"] for q in engine.execute("SHOW QUERIES FULL")[0].data.to_pylist()
    }
    if method != "begin" or early:
        assert (
            shown["bad"].startswith("DS900") or "ZeroDivisionError('as planned')" in shown["bad"]
        ), shown["bad"]
    assert shown["fine"] == shown["rows"] == "running"
    assert engine.runtime.queries["fine"].answer().column(0)[0].as_py() == 10
    assert engine.runtime.queries["rows"].answer().num_rows == 1
    monkeypatch.undo()
    engine.execute(f"CREATE QUERY again AS {sql}")
    fed(engine, 30, 60)
    assert (
        engine.runtime.queries["again"].failure is None and engine.runtime.queries["again"].seq > 0
    )
    engine.execute("DROP QUERY bad; DROP QUERY again; SHOW WINDOWS; SHOW SHARING")


@pytest.mark.parametrize("sql", [PERIODIC, ALONE, JOINED])
def test_a_fault_of_an_elastic_query_stops_it(monkeypatch, sql):
    engine = Engine(settings=Settings(deferred=True))
    engine.execute(DECLARED + f"CREATE QUERY bad AS {sql} WITH (boundaries = elastic);")
    fed(engine, 0, 9)
    owner = {PERIODIC: StreamGroup, ALONE: PeriodicQuery, JOINED: JoinGroup}[sql]
    break_(engine, monkeypatch, owner, "refresh")
    fed(engine, 9, 30)
    assert "as planned" in engine.runtime.queries["bad"].failure.message
    assert engine.runtime.queries["fine"].answer().column(0)[0].as_py() == 10
    while engine.work():
        pass
    engine.execute("DROP QUERY bad")


def test_a_fault_in_what_two_queries_share_stops_both_and_no_other_group(monkeypatch):
    engine = Engine()
    too, other = (
        PERIODIC.replace("10 s", "4 s"),
        PERIODIC.replace("FROM s", "FROM u").replace("SUM(v)", "SUM(w)"),
    )
    engine.execute(
        DECLARED
        + f"CREATE QUERY bad AS {PERIODIC}; CREATE QUERY too AS {too}; CREATE QUERY other AS "
        f"{other}"
    )
    fed(engine, 0, 9)
    break_(engine, monkeypatch, StreamGroup, "take")
    fed(engine, 9, 12)
    failed = {name for name, query in engine.runtime.queries.items() if query.failure is not None}
    assert failed == {"bad", "too"}


def test_a_record_that_meets_a_fault_does_not_keep_the_engine_from_starting(tmp_path, monkeypatch):
    engine = Engine(str(tmp_path))
    engine.execute(DECLARED)
    fed(engine, 0, 5)
    engine.saver.catalog.close()
    whole = Engine.take

    def broken(self, key, *args, **options):
        return (fault if key == "u" else whole)(self, key, *args, **options)

    monkeypatch.setattr(Engine, "take", broken)
    engine = Engine(str(tmp_path))
    assert (
        len([n for n in engine.saver.recovered.notes if "failed again: ZeroDivisionError" in n])
        == 5
    )
    assert engine.runtime.queries["fine"].answer().column(0)[0].as_py() == 4
    engine.close()
