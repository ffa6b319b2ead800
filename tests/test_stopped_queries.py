"""Queries that have stopped stay stopped, whoever asks them, and are named once; queries ON LOOKUP
have no subscribers."""

from __future__ import annotations

import shutil
from collections import Counter
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.settings import Settings
from tests.effort import examples

DECLARED = """
CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE USER alice TOKEN; GRANT SELECT ON s TO alice; GRANT CREATE ON ALL TO alice;
"""
LOOKUPS = {
    "synopses": "SELECT SUM(k) FROM s [RANGE 1 MIN] ON LOOKUP",
    "operators": "SELECT k FROM s [RANGE 1 MIN] WHERE k > 0 ON LOOKUP",
}


@pytest.fixture
def engine() -> Engine:
    made = Engine()
    made.execute(DECLARED)
    return made


def told(engine: Engine, text: str, user: str | None = "alice") -> str:
    try:
        engine.execute(text, user=user)
    except DsmsError as error:
        return error.code
    return ""


@pytest.mark.parametrize("kind", LOOKUPS)
def test_a_look_up_of_a_query_whose_rights_are_gone_is_refused_each_time(engine, kind: str):
    engine.execute(f"CREATE QUERY q AS {LOOKUPS[kind]}", user="alice")
    engine.ingest("s", [(1, 1), (2, 2_000_000)])
    assert told(engine, "LOOKUP q") == ""
    engine.execute("REVOKE SELECT ON s FROM alice")
    assert [told(engine, "LOOKUP q") for _ in range(3)] == ["DS673"] * 3
    assert told(engine, "LOOKUP q", None) == "DS673"
    (shown,) = engine.execute("SHOW QUERIES FULL")
    assert shown.data.to_pylist()[0]["status"].startswith("stopped: DS673")


def test_a_look_up_whose_operators_have_failed_does_not_go_on(engine):
    engine.execute(
        "CREATE QUERY q AS SELECT 10 / k AS x FROM s [RANGE 1 MIN] ON LOOKUP WITH (on_error = stop)"
    )
    engine.ingest("s", [(1, 1), (0, 2), (5, 3)])
    engine.heartbeat("s", 4)
    assert [told(engine, "LOOKUP q", None) for _ in range(3)] == ["DS701"] * 3
    assert engine.runtime.queries["q"].failure is not None


def test_what_was_stopped_before_is_not_named_again(engine):
    for name, text in LOOKUPS.items():
        engine.execute(f"CREATE QUERY {name} AS {text}", user="alice")
    engine.execute("CREATE QUERY view AS SELECT k FROM s [RANGE 1 MIN]", user="alice")
    (done,) = engine.execute("GRANT SELECT ON s TO alice WHERE k > 1")
    assert done.warnings[0].endswith(": synopses, operators, view")
    for text in ("LOOKUP operators", "LOOKUP synopses", "SELECT * FROM view"):
        told(engine, text)
    for change in ("GRANT SELECT ON s TO alice WHERE k > 2", "REVOKE SELECT ON s FROM alice"):
        (done,) = engine.execute(change)
        assert done.warnings == ()


@pytest.mark.parametrize("start", [None, 0])
@pytest.mark.parametrize("kind", LOOKUPS)
def test_nobody_subscribes_to_a_query_on_lookup(engine, kind: str, start: int | None):
    engine.execute(f"CREATE QUERY q AS {LOOKUPS[kind]}")
    with pytest.raises(DsmsError, match="tells nothing") as problem:
        engine.subscribe("q", start)
    assert problem.value.code == "DS329" and "LOOKUP q" in (problem.value.hint or "")
    with pytest.raises(DsmsError) as problem:
        engine.subscribe("q", conflate=True)
    assert problem.value.code in ("DS329", "DS646")


@pytest.mark.parametrize(
    ("grant", "code"),
    [
        ("GRANT SELECT (k, k) ON s TO alice", "DS212"),
        ("GRANT SELECT (k, K) ON s TO alice", "DS212"),
        ("GRANT SELECT ON s TO alice MASK (k AS 1, k AS 2)", "DS212"),
        ("GRANT SELECT (k), SELECT (t) ON s TO alice", "DS109"),
        ("GRANT INSERT, SELECT, INSERT ON s TO alice", "DS109"),
        ("ALTER USER alice DROP TOKEN '1'", "DS671"),
    ],
)
def test_what_is_said_twice_is_refused(engine, grant: str, code: str):
    before = engine.rights
    assert told(engine, grant, None) == code
    assert engine.rights is before


# ---------------------------------------------------------------- what stands

SUMS = (
    "SELECT k, SUM(v) AS s, COUNT(*) AS n FROM a [RANGE 3 s] GROUP BY k",
    "SELECT k, SUM(v) AS s FROM a [RANGE 3 s] GROUP BY k HAVING COUNT(*) > 1",
    "SELECT SUM(v) AS s FROM a [ROWS 3]",
    "SELECT k, SUM(v) AS s FROM a [RANGE 3 s] GROUP BY k WITH (strategy = 'nt')",
    "SELECT k + 1 AS k, s FROM (SELECT k, SUM(v) AS s FROM a [RANGE 2 s] GROUP BY k) AS x",
    "SELECT SUM(v) AS s, MAX(k) AS k FROM a [RANGE 4 s SLIDE 2 s]",
    "SELECT k, COUNT(*) AS n FROM a [RANGE 3 s] GROUP BY k HAVING 9 / COUNT(v) > 1 "
    "WITH (on_error = stop)",
    "SELECT k, 9 / COUNT(v) AS n FROM a [RANGE 3 s] GROUP BY k WITH (on_error = stop)",
    "SELECT DISTINCT 9 / (v - 5) AS n FROM a [RANGE 3 s] WITH (on_error = stop)",
)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 1, None]),
            st.sampled_from([2**62, 2**62 - 1, 5, None, -(2**62)]),
            st.integers(0, 2),
        ),
        min_size=3,
        max_size=14,
    ),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from([None, "killed", "closed"]),
)
def test_the_view_of_a_stopped_query_is_what_its_log_comes_to(
    rows: list[tuple], step: int, shared: bool, restart: str | None
) -> None:
    with TemporaryDirectory() as folder:
        engine = Engine(f"{folder}/0", Settings(shared_parts=shared))
        engine.execute("CREATE STREAM a (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t")
        for n, sql in enumerate((*SUMS, *SUMS)):
            engine.execute(f"CREATE QUERY q{n} AS {sql}")
        at, came = 0, []
        for k, v, later in rows:
            at += later
            came.append([k, v, at * 500_000])
        for first in range(0, len(came), step):
            engine.ingest("a", came[first : first + step])
        engine.heartbeat("a", at * 500_000 + 2_000_000)
        if restart == "closed":
            engine.close()
        if restart is not None:
            shutil.copytree(f"{folder}/0", f"{folder}/1")
            engine = Engine(f"{folder}/1", Settings(shared_parts=shared))
        for n, sql in enumerate((*SUMS, *SUMS)):
            pushes = engine.subscribe(f"q{n}", 0).take()
            stands: Counter[tuple] = Counter()
            for push in (p for p in pushes if p.data is not None):
                found = Counter(map(tuple, zip(*(c.to_pylist() for c in push.data), strict=True)))
                if push.kind == "result":
                    stands = Counter()
                stands += found if push.kind != "delete" else Counter()
                stands -= found if push.kind == "delete" else Counter()
            (view,) = engine.execute(f"SELECT * FROM q{n}")
            assert Counter(tuple(r.values()) for r in view.data.to_pylist()) == stands, sql
        engine.close()
