"""Quotas without a server: what holds, who may have no more, what is told and kept."""

from __future__ import annotations

import shutil

import pytest

from dsms import Engine
from dsms.api import Cancel
from dsms.errors import DsmsError, UsageError
from dsms.operators.pieces import finished
from dsms.rights.model import Rights, User
from dsms.rights.quotas import Limit, limit_of
from dsms.settings import Settings
from dsms.sizes import size_of
from dsms_server.quotas import Quotas, parse
from tests.users import told

DECLARED = """
CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE ROLE small WITH (queries = 1, state = '1 MB'); CREATE ROLE large WITH (queries = 3);
CREATE USER alice TOKEN WITH (rows_per_second = 100); CREATE USER bob TOKEN; CREATE USER carl TOKEN;
GRANT small TO alice; GRANT small, large TO bob; GRANT CREATE, SELECT, INSERT ON ALL TO alice, bob, carl;
"""  # noqa: E501


@pytest.fixture
def engine() -> Engine:
    made = Engine(settings=Settings(quota={"queries": 2}))
    made.execute(DECLARED)
    return made


def quotas(engine: Engine, text: str = "SHOW QUOTAS", user: str | None = None) -> dict:
    found = engine.execute(text, user=user)[0].data.to_pylist()
    return {(row["user"], row["quota"]): (row["limit"], row["used"], row["of"]) for row in found}


def query(name: str) -> str:
    return f"CREATE QUERY {name} AS SELECT k FROM s [RANGE 1 MIN]"


def test_ones_own_holds_then_the_largest_of_ones_roles_then_the_servers():
    def holder(name: str, roles: tuple[str, ...] = (), **quota: int) -> User:
        return User(name, roles=roles, quota=tuple(quota.items()))

    roles = {r.name: r for r in (holder("a", queries=1), holder("b", ("a",), queries=5))}
    users = [holder("own", ("a", "b"), queries=2), holder("roles", ("b",)), holder("none")]
    rights = Rights({u.name: u for u in users}, roles)
    default = {"queries": 9}
    assert limit_of(rights, default, "own", "queries") == Limit(2, "own")
    assert limit_of(rights, default, "roles", "queries") == Limit(5, "b")
    assert limit_of(rights, default, "none", "queries") == Limit(9)
    assert limit_of(rights, {}, "none", "queries") is None
    assert limit_of(rights, default, "none", "sessions") is None
    assert limit_of(rights, default, "admin", "queries") is None
    chief = rights.changed(
        {"grants": [["none", "", "ADMIN", {"columns": [], "masks": [], "where": None}]]}
    )
    assert limit_of(chief, default, "none", "queries") is None


@pytest.mark.parametrize(
    ("text", "size"),
    [("64 MB", 64 << 20), ("1g", 1 << 30), ("512", 512), ("2 KiB", 2048), ("x", None), ("-1", None),
     ("9999999999 TB", None)],
)  # a table  # fmt: skip
def test_sizes(text: str, size: int | None):
    assert size_of(text) == size


def test_options_of_a_server():
    assert parse(("queries=10", " state = 64M")) == {"queries": 10, "state": 64 << 20}
    for wrong in ("queries", "rows=1", "queries=many", "queries=-1"):
        with pytest.raises(UsageError, match="name=number") as found:
            parse((wrong,))
        assert found.value.code == "DS640"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("ALTER USER alice WITH (qeries = 1)", "DS214"),
        ("ALTER USER alice WITH (queries = -1)", "DS215"),
        ("ALTER USER alice WITH (queries = '1 MB')", "DS215"),
        ("ALTER USER alice WITH (queries = TRUE)", "DS215"),
        ("ALTER USER alice WITH (state = 'much')", "DS215"),
        ("ALTER USER alice WITH (state = 1.5)", "DS215"),
        ("ALTER USER alice WITH (queries = 1, queries = 2)", "DS109"),
        ("ALTER USER small WITH (queries = 1)", "DS671"),
        ("ALTER ROLE alice WITH (queries = 1)", "DS671"),
        ("ALTER ROLE none WITH (queries = 1)", "DS671"),
        ("CREATE ROLE r WITH (nothing = 1)", "DS214"),
        ("SHOW USERS FOR alice", "DS110"),
    ],
)
def test_what_is_no_quota(engine: Engine, text: str, code: str):
    before = engine.rights
    assert told(engine, text, None)[:5] == code and engine.rights is before


def test_queries_are_counted_by_owner_and_others_go_on(engine: Engine):
    assert told(engine, query("a1")) == ""
    refusal = told(engine, query("a2"))
    assert refusal.startswith(
        "DS680 alice may have no more queries: the quota queries is 1 (of small), and 1 are used"
    )
    assert "ALTER USER alice WITH (queries = n)" in refusal
    assert [told(engine, query(f"b{n}"), "bob")[:5] for n in range(4)] == ["", "", "", "DS680"]
    assert [told(engine, query(f"c{n}"), "carl")[:5] for n in range(3)] == ["", "", "DS680"]
    assert told(engine, query("mine"), None) == ""  # whoever may do all
    engine.execute("DROP QUERY a1", user="alice")
    assert told(engine, query("a2")) == ""
    engine.execute("ALTER USER alice WITH (queries = 2)")
    assert told(engine, query("a3")) == ""
    engine.execute("ALTER USER alice WITH (queries = 0)")  # what is there stays
    assert told(engine, query("a4"))[:5] == "DS680"
    engine.execute("ALTER USER alice WITH (queries = NULL)")
    assert quotas(engine)["alice", "queries"] == (1, 2, "small")


def test_state_is_that_of_what_one_owns(engine: Engine):
    engine.execute("CREATE TABLE mine (k INT); CREATE STREAM a (k INT) RETAIN 1 HOUR", user="alice")
    engine.advance(0)
    assert finished(engine.minding_quotas()) == {}
    engine.ingest("a", {"k": list(range(200_000))})
    engine.advance(1)
    limit, used, whose = quotas(engine)["alice", "state"]
    assert (limit, whose) == (1 << 20, "small") and used > limit
    lines = engine.execute("SHOW MEMORY")[0].data.to_pylist()
    assert used == sum(line["bytes"] for line in lines if line["holder"] in ("mine", "a"))
    for text in (
        "CREATE STREAM b (k INT)",
        "INSERT INTO mine VALUES (1)",
        "ALTER STREAM a ADD COLUMN c INT",
        query("a1"),
    ):
        assert told(engine, text)[:5] == "DS681"
    assert told(engine, "SELECT 1; SHOW STREAMS; DELETE FROM mine") == ""
    other = told(engine, "INSERT INTO mine VALUES (1)", "bob")
    assert other.startswith("DS681 mine takes no more rows") and "alice" not in other
    assert told(engine, "CREATE TABLE his (k INT); INSERT INTO his VALUES (1)", "bob") == ""
    assert list(finished(engine.minding_quotas())) == ["alice"]
    engine.execute("DROP STREAM a", user="alice")
    assert finished(engine.minding_quotas()) == {}
    assert told(engine, "INSERT INTO mine VALUES (1)") == ""


def test_the_largest_query_of_who_has_much_more_than_he_may_is_stopped(engine: Engine):
    engine.execute("ALTER USER alice WITH (queries = 9, state = '1 MB')")
    engine.execute("CREATE QUERY little AS SELECT COUNT(*) AS n FROM s", user="alice")
    engine.execute("CREATE QUERY big AS SELECT DISTINCT k FROM s", user="alice")
    engine.execute("CREATE QUERY his AS SELECT DISTINCT k FROM s", user="carl")
    engine.ingest("s", {"k": list(range(300_000)), "t": list(range(300_000))})
    used = quotas(engine)["alice", "state"][1]
    engine.execute(f"ALTER USER alice WITH (state = {used - 1})")
    assert list(finished(engine.minding_quotas())) == ["alice"]  # no more, but nothing is stopped
    engine.execute("ALTER USER alice WITH (state = '1 MB')")
    finished(engine.minding_quotas())
    status = {
        r["query"]: r["status"] for r in engine.execute("SHOW QUERIES FULL")[0].data.to_pylist()
    }
    assert status["little"] == status["his"] == "running" and "DS681" in status["big"]


def test_who_sees_what(engine: Engine):
    assert {user for user, _ in quotas(engine)} == {"alice", "bob", "carl"}
    assert {user for user, _ in quotas(engine, user="alice")} == {"alice"}
    assert {user for user, _ in quotas(engine, "SHOW QUOTAS FOR small")} == {"alice", "bob"}
    assert quotas(engine, "SHOW QUOTAS FOR bob", "alice") == {}
    assert quotas(engine, "SHOW QUOTAS FOR carl") == {
        ("carl", "queries"): (2, 0, "the server"),
        ("carl", "state"): (None, 0, None),
        ("carl", "rows_per_second"): (None, None, None),  # an engine in a program counts neither
        ("carl", "sessions"): (None, None, None),
    }
    assert engine.stats()["users"]["alice"] == {
        "queries": 0,
        "queries_limit": 1,
        "state": 0,
        "state_limit": 1 << 20,
        "rows_per_second_limit": 100,
    }


@pytest.mark.parametrize("crash", [False, True])
def test_a_folder_that_is_over_its_quota_opens(tmp_path, crash: bool):
    folder = tmp_path / "data"
    engine = Engine(str(folder))
    engine.execute(DECLARED)
    for n in range(3):
        engine.execute(query(f"b{n}"), user="bob")
    engine.execute("ALTER USER bob WITH (queries = 1, state = 0)")
    engine.execute("ALTER ROLE small WITH (queries = NULL); REVOKE small FROM alice")
    before = engine.rights
    if crash:
        engine.sync()
        shutil.copytree(folder, tmp_path / "copy")
        folder = tmp_path / "copy"
    else:
        assert engine.saver is not None and engine.saver.checkpoint()
    engine.close()
    engine = Engine(str(folder), Settings(quota={"queries": 0}))
    assert engine.rights == before and engine.recovered.notes == []
    assert quotas(engine)["bob", "queries"] == (1, 3, "bob")
    assert quotas(engine)["alice", "queries"] == (0, 0, "the server")
    status = {r["status"] for r in engine.execute("SHOW QUERIES FULL")[0].data.to_pylist()}
    assert status == {"running"} and told(engine, query("b4"), "bob")[:5] in ("DS680", "DS681")
    engine.close()


def test_quotas_of_earlier_versions_are_none():
    value = {"name": "u", "password": None, "tokens": [], "roles": []}
    assert Rights().changed({"users": [["u", value]]}).users["u"].quota == ()


def test_a_query_counts_while_it_is_filled(engine: Engine):
    engine.execute("ALTER ROLE small WITH (state = NULL)")
    engine.execute("CREATE STREAM kept (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 HOUR")
    engine.ingest("kept", {"k": list(range(50_000)), "t": list(range(50_000))})
    text = "CREATE QUERY {} AS SELECT DISTINCT k FROM kept [RANGE 1 HOUR]"
    cancel = Cancel()
    filling = engine.slices(text.format("a1"), cancel, user="alice")
    while "a1" not in engine.runtime.queries:
        next(filling)
    assert "a1" in engine.runtime.beginnings
    assert told(engine, text.format("a2"))[:5] == "DS680"
    cancel.set()
    with pytest.raises(DsmsError, match="DS610"):
        list(filling)
    assert told(engine, text.format("a2")) == ""
    assert quotas(engine)["alice", "queries"] == (1, 1, "small")


def test_a_column_whose_defaults_are_more_than_the_quota_is_refused(engine: Engine):
    engine.execute("CREATE STREAM a (k INT) RETAIN 1 HOUR", user="alice")
    engine.advance(0)
    engine.ingest("a", {"k": list(range(1000))})
    engine.advance(1)
    add = "ALTER STREAM a ADD COLUMN {} STRING DEFAULT '{}'"
    refused = told(engine, add.format("c", "x" * 1100))
    assert refused.startswith("DS681 alice may have no statement that keeps 1104000 bytes more")
    assert told(engine, add.format("c", "x" * 100)) == ""
    assert told(engine, add.format("d", "x" * 960)).startswith("DS681")
    assert quotas(engine)["alice", "state"][1] < 1 << 20


def test_nothing_at_all_is_a_quota(engine: Engine):
    engine.execute("ALTER USER alice WITH (queries = 0, rows_per_second = 0)")
    assert told(engine, query("q")).startswith("DS680")
    engine.execute("ALTER USER alice WITH (queries = NULL, state = 0)")
    assert told(engine, "CREATE STREAM mine (k INT)").startswith("DS681")
    made, limit = Quotas(lambda: engine.rights, {}, list, float, print), "the quota rows_per_second"
    made.check_rows("alice", "s", 0)
    with pytest.raises(UsageError, match=f"alice may send no rows: {limit} is 0") as problem:
        made.check_rows("alice", "s", 1)
    assert problem.value.code == "DS682" and "frames" not in (problem.value.hint or "")
    engine.execute("ALTER USER alice WITH (rows_per_second = 10)")
    with pytest.raises(UsageError, match="and this one has 601"):
        made.check_rows("alice", "s", 601)
