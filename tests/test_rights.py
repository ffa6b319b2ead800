"""Who may do what: each statement and request needs its right, owners, administrators and roles,
and what a grant of parts of an object shows."""

from __future__ import annotations

from typing import get_args

import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.rights.needs import OPS, needs
from dsms.sql import ast
from dsms_client import protocol
from tests.users import SECOND, declared, rows, told


@pytest.fixture
def engine() -> Engine:
    return declared()


# statement, and the grants to alice without one of which it is refused
MATRIX = [
    ("SELECT * FROM s [RANGE 1 MIN]", ["SELECT ON s"]),
    ("SELECT * FROM s [RANGE 1 MIN], d WHERE s.k = d.k", ["SELECT ON s", "SELECT ON d"]),
    ("SELECT * FROM (SELECT k FROM s [RANGE 1 MIN]) x", ["SELECT ON s"]),
    (
        "SELECT * FROM s [RANGE 1 MIN] WHERE EXISTS (SELECT * FROM d WHERE d.k = s.k)",
        ["SELECT ON s", "SELECT ON d"],
    ),
    ("SELECT * FROM s [RANGE 1 MIN] WHERE k IN (SELECT k FROM d)", ["SELECT ON s", "SELECT ON d"]),
    ("SELECT k FROM s [RANGE 1 MIN] UNION SELECT k FROM d", ["SELECT ON s", "SELECT ON d"]),
    ("SELECT * FROM q", ["SELECT ON q"]),
    ("LOOKUP ready", ["SELECT ON ready"]),
    ("CREATE STREAM n (a INT)", ["CREATE ON ALL"]),
    (
        "CREATE STREAM n (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t LATE INTO late",
        ["CREATE ON ALL", "INSERT ON late"],
    ),
    ("CREATE TABLE n (a INT)", ["CREATE ON ALL"]),
    ("CREATE QUERY n AS SELECT * FROM s [RANGE 1 MIN]", ["CREATE ON ALL", "SELECT ON s"]),
    ("DROP QUERY q", ["ADMIN ON q"]),
    ("ALTER STREAM s SET CLOCK TO TIMESTAMP '2030-01-01'", ["ADMIN ON s"]),
    ("ALTER STREAM fresh SET SINCE TO TIMESTAMP '2026-01-01'", ["ADMIN ON fresh"]),
    ("ALTER STREAM fresh SET (shed = none)", ["ADMIN ON fresh"]),
    ("ALTER STREAM s REOPEN", ["ADMIN ON s"]),
    ("ALTER STREAM s ADD COLUMN z INT", ["ADMIN ON s"]),
    ("ALTER STREAM s RENAME TO z", ["ADMIN ON s"]),
    ("ALTER TABLE d RENAME COLUMN n TO m", ["ADMIN ON d"]),
    (
        "INSERT INTO d VALUES ('z', 1) ON CONFLICT (k) DO UPDATE SET n = 1",
        ["INSERT ON d", "SELECT ON d"],
    ),
    (
        "CREATE OR REPLACE QUERY q AS SELECT k FROM s [RANGE 1 MIN]",
        ["CREATE ON ALL", "ADMIN ON q", "SELECT ON s"],
    ),
    ("PAUSE QUERY q", ["ADMIN ON q"]),
    ("RESUME QUERY q", ["ADMIN ON q"]),
    ("ALTER QUERY q RENAME TO other", ["ADMIN ON q"]),
    ("ALTER QUERY q SET (max_state = 1000000)", ["ADMIN ON q"]),
    ("COMMENT ON STREAM s IS 'of cars'", ["ADMIN ON s"]),
    ("DESCRIBE s", ["INSERT ON s"]),
    ("HEARTBEAT s AT TIMESTAMP '1970-01-01 00:00:05'", ["INSERT ON s"]),
    ("END STREAM s", ["INSERT ON s"]),
    ("PUNCTUATE s WHERE k = 'a'", ["INSERT ON s"]),
    ("SHOW CREATE STREAM s", ["INSERT ON s"]),
    ("SHOW CREATE TABLE d", ["SELECT ON d"]),
    ("SHOW CREATE QUERY q", ["ADMIN ON q", "ADMIN ON s"]),
    ("SHOW CREATE ROLE staff", []),
    ("SHOW CREATE ALL", ["ADMIN ON ALL"]),
    ("CREATE FUNCTION plus(x INT) AS x + 1", ["CREATE ON ALL"]),
    ("CREATE AGGREGATE total(x INT) AS SUM(x)", ["CREATE ON ALL"]),
    ("DROP FUNCTION IF EXISTS plus", []),
    ("INSERT INTO d VALUES ('z', 1)", ["INSERT ON d"]),
    ("INSERT INTO d SELECT k, 1 FROM s [RANGE 1 MIN]", ["INSERT ON d", "SELECT ON s"]),
    ("UPDATE d SET n = 2 WHERE n = 1", ["INSERT ON d", "SELECT ON d"]),
    ("DELETE FROM d WHERE n = 1", ["INSERT ON d", "SELECT ON d"]),
    ("EXPLAIN SELECT * FROM s [RANGE 1 MIN]", ["SELECT ON s"]),
    ("EXPLAIN CREATE QUERY n AS SELECT * FROM s [RANGE 1 MIN]", ["SELECT ON s"]),
    ("EXPLAIN QUERY q", ["ADMIN ON q", "ADMIN ON s"]),
    ("SET query_scheduler = none", ["ADMIN ON ALL"]),
    ("SHOW WINDOWS", ["ADMIN ON ALL"]),
    ("SHOW SHARING", ["ADMIN ON ALL"]),
    ("CREATE USER carl TOKEN", ["ADMIN ON ALL"]),
    ("ALTER USER bob TOKEN", ["ADMIN ON ALL"]),
    ("DROP USER bob", ["ADMIN ON ALL"]),
    ("CREATE ROLE crew", ["ADMIN ON ALL"]),
    ("DROP ROLE staff", ["ADMIN ON ALL"]),
    ("GRANT SELECT ON s TO bob", ["ADMIN ON s"]),
    ("REVOKE SELECT ON s FROM bob", ["ADMIN ON s"]),
    ("GRANT CREATE ON ALL TO bob", ["ADMIN ON ALL"]),
    ("GRANT staff TO bob", ["ADMIN ON ALL"]),
    ("REVOKE staff FROM bob", ["ADMIN ON ALL"]),
    ("SHOW MEMORY", ["ADMIN ON ALL"]),
    ("SHOW SOURCES", ["ADMIN ON ALL"]),
    ("SHOW SINKS", ["ADMIN ON ALL"]),
    ("DROP SOURCE IF EXISTS b", ["ADMIN ON ALL"]),
    ("SHOW SESSIONS", []),
    ("ALTER USER alice TOKEN", []),
    ("SHOW STREAMS", []),
    ("SHOW TABLES", []),
    ("SHOW QUERIES", []),
    ("SHOW ARCHIVES", []),
    ("SHOW FUNCTIONS", []),
    ("SHOW AGGREGATES", []),
    ("SHOW SETTINGS", []),
    ("SHOW USERS", []),
    ("SHOW GRANTS", []),
    ("SHOW QUOTAS", []),
    ("ALTER USER alice WITH (queries = 1)", ["ADMIN ON ALL"]),
]


@pytest.mark.parametrize("way", ["user", "role"])
@pytest.mark.parametrize(("text", "grants"), MATRIX)
def test_a_statement_needs_its_rights_and_no_others(
    engine: Engine, text: str, grants: list[str], way: str
):
    who = "alice" if way == "user" else "staff"
    engine.execute("CREATE STREAM fresh (v INT, t TIMESTAMP) TIMESTAMP BY t WITH (shed = none)")
    engine.execute("GRANT staff TO alice")
    engine.execute("; ".join(f"GRANT {grant} TO {who}" for grant in grants))
    for grant in grants:
        engine.execute(f"REVOKE {grant} FROM {who}")
        assert told(engine, text)[:5] in ("DS670", "DS203", "DS401", "DS213"), grant
        engine.execute(f"GRANT {grant} TO {who}")
    assert told(engine, text) == ""


def test_the_matrix_has_every_statement():
    from dsms.sql.parser import parse_one

    kinds = {kind.__name__ for kind in ast.Statement.__subclasses__()}
    # see tests/server/test_server_users.py, tests/test_connector_language.py
    of_servers = {"CancelSession", "CreateConnector", "PauseConnector", "ResumeConnector"}
    assert {type(parse_one(text)).__name__ for text, _ in MATRIX} == kinds - of_servers
    assert {kind.__name__ for kind in get_args(ast.AnyStatement)} == kinds
    shown = [s for t, _ in MATRIX if isinstance(s := parse_one(t), ast.Show)]
    assert {show.what for show in shown} == set(ast.ShowKind)
    assert all(isinstance(needs(parse_one(text)), tuple) for text, _ in MATRIX)


REQUESTS = [
    ("ingest", "s", "INSERT"),
    ("heartbeat", "s", "INSERT"),
    ("end", "s", "INSERT"),
    ("subscribe", "q", "SUBSCRIBE"),
]


def test_every_request_of_the_protocol_has_its_entry():
    assert OPS.keys() == protocol.OPS.keys()
    assert {op for op, need in OPS.items() if need.right} == {op for op, _, _ in REQUESTS}


@pytest.mark.parametrize(("op", "name", "right"), REQUESTS)
def test_a_request_needs_its_right(engine: Engine, op: str, name: str, right: str):
    def refusal(name: str) -> str:
        with pytest.raises(DsmsError) as caught:
            engine.check_request("alice", op, name)
        return f"{caught.value.code} {caught.value.message} {caught.value.hint}"

    assert refusal(name).replace(f" {name} ", " X ") == refusal("nothing").replace(
        " nothing ", " X "
    )
    engine.execute(f"GRANT SELECT ON {name} TO alice")
    assert refusal(name).startswith(f"DS670 alice has no right {right} on {name}")
    engine.execute(f"GRANT {right} ON {name} TO alice")
    engine.check_request("alice", op, name)
    engine.check_request(None, op, name)


def test_who_knows_of_what(engine: Engine):
    keys = ("s", "late", "d", "q", "ready")
    for grant in (
        "SELECT ON s",
        "SUBSCRIBE ON q",
        "ADMIN ON d",
        "CREATE ON ALL",
        "INSERT ON ALL",
        "ADMIN ON ALL",
    ):
        engine.execute(f"GRANT {grant} TO alice")
        known = engine.rights.known("alice")
        assert [k for k in keys if known is None or k in known] == [
            k for k in keys if engine.rights.knows("alice", k)
        ]
    assert known is None and engine.rights.known("bob") == set()


# -- owners, administrators


def test_who_makes_an_object_may_do_all_with_it(engine: Engine):
    engine.execute("GRANT CREATE ON ALL TO alice")
    engine.execute("CREATE STREAM own (a INT, t TIMESTAMP) TIMESTAMP BY t", user="alice")
    engine.execute("GRANT SELECT ON own TO bob; SHOW GRANTS", user="alice")
    assert rows(engine, "SHOW STREAMS", "bob")[0]["stream"] == "own"
    assert told(engine, "DROP STREAM own", "bob")[:5] == "DS670"
    engine.execute("DROP STREAM own", user="alice")
    engine.execute("CREATE STREAM own (a INT)")  # another one of that name, of nobody
    assert "unknown" in told(engine, "SELECT * FROM own", "bob")
    assert told(engine, "DROP STREAM own")[:5] == "DS401"


def test_the_token_of_the_server_is_the_administrator(engine: Engine):
    assert [r["stream"] for r in rows(engine, "SHOW STREAMS", "admin")] == ["s", "late"]
    engine.execute("CREATE USER carl TOKEN", user="admin")
    assert told(engine, "CREATE USER Admin TOKEN", None)[:5] == "DS213"


def test_roles_have_roles_but_never_themselves(engine: Engine):
    engine.execute(
        "CREATE ROLE boss; GRANT staff TO boss; GRANT boss TO alice; GRANT SELECT ON s TO staff"
    )
    assert len(rows(engine, "SELECT * FROM s [RANGE 1 MIN]")) == 3
    assert told(engine, "GRANT boss TO staff", None)[:5] == "DS672"
    engine.execute("DROP ROLE boss")
    assert told(engine, "SELECT * FROM s [RANGE 1 MIN]")[:5] == "DS203"


# -- parts of objects


def test_rows_columns_and_masks(engine: Engine):
    engine.execute("GRANT SELECT (k, v) ON s TO alice MASK (k AS 'no') WHERE v > 1")
    assert rows(engine, "SELECT * FROM s [RANGE 1 MIN]") == [
        {"k": "no", "v": 3},
        {"k": "no", "v": 5},
    ]
    assert [r["column"] for r in rows(engine, "DESCRIBE s")] == ["k", "v"]
    assert [c.name for c in engine.names("alice")["streams"]["s"]] == ["k", "v"]
    assert rows(engine, "SELECT v FROM s [ROWS 1]") == [{"v": 5}]


def test_several_grants_show_no_more_than_each_of_them(engine: Engine):
    engine.execute(
        "GRANT staff TO alice; GRANT SELECT (v) ON s TO alice; GRANT SELECT (v, k) ON s TO staff "
        "WHERE v = 3"
    )
    found = rows(engine, "SELECT * FROM s [RANGE 1 MIN]")
    assert found == [{"k": None, "v": 1}, {"k": "b", "v": 3}, {"k": None, "v": 5}]
    engine.execute("GRANT SELECT (v) ON s TO alice WHERE v = 1")
    assert rows(engine, "SELECT * FROM s [RANGE 1 MIN]") == [
        {"k": None, "v": 1},
        {"k": "b", "v": 3},
    ]
    engine.execute("GRANT SELECT ON s TO staff")
    assert len(rows(engine, "SELECT * FROM s [RANGE 1 MIN]")[0]) == 3


def test_a_mask_gives_way_to_the_column(engine: Engine):
    engine.execute(
        "GRANT staff TO alice; GRANT SELECT ON s TO alice MASK (k AS '?'); GRANT SELECT ON s TO "
        "staff WHERE v = 3"
    )
    assert [r["k"] for r in rows(engine, "SELECT * FROM s [RANGE 1 MIN]")] == ["?", "b", "?"]


def test_the_condition_is_of_who_asks(engine: Engine):
    engine.execute(
        "GRANT staff TO alice, bob; GRANT SELECT ON s TO staff WHERE k = CURRENT_USER() OR v = 5"
    )
    engine.execute("CREATE USER c TOKEN; GRANT staff TO c")
    assert [r["k"] for r in rows(engine, "SELECT * FROM s [RANGE 1 MIN]", "c")] == ["c"]
    engine.ingest("s", {"k": ["bob"], "v": [9], "t": [3 * SECOND + 1]})
    engine.heartbeat("s", 4 * SECOND)
    assert [r["k"] for r in rows(engine, "SELECT * FROM s [RANGE 1 MIN]", "bob")] == ["c", "bob"]
    assert rows(engine, "SELECT CURRENT_USER() AS me") == [{"me": "alice"}]
    assert rows(engine, "SELECT CURRENT_USER() AS me", None) == [{"me": None}]


def test_an_answer_in_part(engine: Engine):
    engine.execute(
        "GRANT SELECT ON q TO alice WHERE k <> 'b'; GRANT SELECT (x) ON ready TO bob WHERE x > 0"
    )
    assert [r["k"] for r in rows(engine, "SELECT * FROM q")] == ["a", "c"]
    assert told(engine, "LOOKUP ready", "bob")[:5] == "DS670"
    engine.execute("GRANT INSERT ON d TO alice; GRANT SELECT (k) ON d TO alice")
    assert told(engine, "DELETE FROM d WHERE n = 1")[:5] == "DS670"


def test_a_slide_in_rows_would_count_hidden_rows(engine: Engine):
    engine.execute("GRANT CREATE ON ALL TO alice; GRANT SELECT ON s TO alice WHERE v > 1")
    for source in ("s [ROWS 4 SLIDE 2]", "(SELECT * FROM s) [ROWS 4 SLIDE 2]"):
        text = f"SELECT SUM(v) AS x FROM {source}"
        assert told(engine, f"CREATE QUERY n AS {text}").startswith(
            "DS308 SLIDE in rows counts all rows of s"
        )
    engine.execute("GRANT SELECT (v) ON s TO alice")
    assert told(engine, f"CREATE QUERY n AS {text}") == ""


@pytest.mark.parametrize(
    ("text", "code"),
    [
        # can fail, on rows that are hidden
        ("GRANT SELECT ON s TO alice WHERE 10 / v > 1", "DS672"),
        ("GRANT SELECT ON s TO alice WHERE v + 1 > 1", "DS672"),
        ("GRANT SELECT ON s TO alice MASK (v AS v * 2)", "DS672"),
        ("GRANT SELECT ON s TO alice MASK (v AS CAST(k AS INT))", "DS672"),
        ("GRANT SELECT ON s TO alice MASK (v AS 'text')", "DS672"),
        ("GRANT SELECT (k) ON s TO alice MASK (v AS 1)", "DS672"),
        ("GRANT SELECT ON s TO alice WHERE w > 1", "DS201"),
        ("GRANT SELECT (w) ON s TO alice", "DS201"),
        ("GRANT SELECT ON s TO alice WHERE v", "DS209"),
        ("GRANT SELECT ON s TO alice WHERE EXISTS (SELECT * FROM d)", "DS320"),
        ("GRANT SELECT ON s TO alice WHERE COUNT(*) > 1", "DS301"),
        ("GRANT INSERT ON s TO alice WHERE v > 1", "DS672"),
        ("GRANT INSERT (k) ON s TO alice", "DS672"),
        ("GRANT SELECT ON ALL TO alice WHERE v > 1", "DS672"),
        ("GRANT SELECT ON nrr TO alice WHERE n > 1", "DS672"),
        ("GRANT SUBSCRIBE ON s TO alice", "DS672"),
        ("GRANT INSERT ON q TO alice", "DS672"),
        ("GRANT CREATE ON s TO alice", "DS672"),
        ("REVOKE SELECT (k) ON s FROM alice", "DS672"),
        ("GRANT SELECT ON nothing TO alice", "DS401"),
        ("GRANT SELECT ON s TO nobody", "DS671"),
        ("GRANT nothing TO alice", "DS671"),
        ("DROP ROLE alice", "DS671"),
        ("ALTER USER staff TOKEN", "DS671"),
        ("ALTER USER alice DROP TOKEN '12345678'", "DS671"),
        ("CREATE USER carl TOKEN 'short'", "DS672"),
        ("CREATE USER carl PASSWORD 'short'", "DS672"),
        ("CREATE USER staff TOKEN", "DS213"),
    ],
)
def test_what_can_not_be_granted(engine: Engine, text: str, code: str):
    engine.execute("CREATE TABLE nrr (k STRING PRIMARY KEY, n INT) NON RETROACTIVE")
    before = engine.rights
    assert told(engine, text, None)[:5] == code
    assert engine.rights is before
