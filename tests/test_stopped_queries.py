"""Queries that have stopped stay stopped, whoever asks them, and are named once; queries ON LOOKUP
have no subscribers."""

from __future__ import annotations

import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError

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
