"""Who may do what: each statement and request needs its right, and a refusal tells nothing of what
is hidden."""

from __future__ import annotations

import re
import shutil
from typing import get_args

import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.rights.needs import OPS, needs
from dsms.rights.secrets import fits, hash_token
from dsms.running.writers import FramePart, Writers
from dsms.secret_texts import hide, without_secrets
from dsms.sql import ast
from dsms_client import protocol

SECOND = 1_000_000
DECLARED = """
CREATE STREAM s (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 HOUR MAX FUTURE 1 HOUR;
CREATE STREAM late (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE TABLE d (k STRING PRIMARY KEY, n INT);
CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 1 MIN] GROUP BY k;
CREATE QUERY ready AS SELECT SUM(v) AS x FROM s [RANGE 1 MIN] ON LOOKUP;
CREATE USER alice TOKEN; CREATE USER bob TOKEN; CREATE ROLE staff;
"""


@pytest.fixture
def engine() -> Engine:
    made = Engine()
    made.execute(DECLARED)
    made.ingest("s", {"k": ["a", "b", "c"], "v": [1, 3, 5], "t": [0, SECOND, 2 * SECOND]})
    made.heartbeat("s", 3 * SECOND)
    return made


def told(engine: Engine, text: str, user: str | None = "alice") -> str:
    """The code of the refusal, and all that it says; empty if there is none."""
    try:
        engine.execute(text, user=user)
    except DsmsError as error:
        return f"{error.code} {error.message} {error.hint}"
    return ""


def rows(engine: Engine, text: str, user: str | None = "alice") -> list[dict]:
    return engine.execute(text, user=user)[-1].data.to_pylist()


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
    ("DESCRIBE s", ["INSERT ON s"]),
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
    ("SHOW SESSIONS", []),
    ("ALTER USER alice TOKEN", []),
    ("SHOW STREAMS", []),
    ("SHOW TABLES", []),
    ("SHOW QUERIES", []),
    ("SHOW ARCHIVES", []),
    ("SHOW FUNCTIONS", []),
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
    engine.execute("GRANT staff TO alice")
    engine.execute("; ".join(f"GRANT {grant} TO {who}" for grant in grants))
    for grant in grants:
        engine.execute(f"REVOKE {grant} FROM {who}")
        assert told(engine, text)[:5] in ("DS670", "DS203", "DS401"), grant
        engine.execute(f"GRANT {grant} TO {who}")
    assert told(engine, text) == ""


def test_the_matrix_has_every_statement():
    from dsms.sql.parser import parse_one

    kinds = {kind.__name__ for kind in ast.Statement.__subclasses__()}
    of_servers = {"CancelSession"}  # see tests/server/test_server_users.py
    assert {type(parse_one(text)).__name__ for text, _ in MATRIX} == kinds - of_servers
    assert {kind.__name__ for kind in get_args(ast.AnyStatement)} == kinds
    assert {parse_one(t).what for t, _ in MATRIX if t.startswith("SHOW")} == set(ast.ShowKind)
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


# -- nothing is told of what is hidden

PROBES = [
    "SELECT * FROM {}", "SELECT * FROM ARCHIVE {}",
    "CREATE QUERY n AS SELECT * FROM {} [RANGE 1 MIN]", "LOOKUP {}",
    "EXPLAIN SELECT * FROM {}", "EXPLAIN QUERY {}", "DESCRIBE {}", "DESCRIBE STREAM {}",
    "DROP STREAM {}",
    "DROP QUERY IF EXISTS {}", "DROP TABLE {}", "INSERT INTO {} VALUES (1)", "UPDATE {} SET a = 1",
    "DELETE FROM {}",
    "GRANT SELECT ON {} TO bob", "REVOKE SELECT ON {} FROM bob", "EXPLAIN ANALYZE QUERY {}",
    "CREATE STREAM n (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t LATE INTO {}",
    "SELECT * FROM own WHERE EXISTS (SELECT * FROM {})",
]  # a table  # fmt: skip


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("hidden", ["s", "d", "q", "ready"])
def test_a_hidden_object_is_like_none(engine: Engine, probe: str, hidden: str):
    engine.execute("GRANT CREATE ON ALL TO alice")
    engine.execute("CREATE STREAM own (a INT)", user="alice")
    found = told(engine, probe.format(hidden)), told(engine, probe.format("zz"))
    assert re.sub(rf"\b{hidden}\b", "X", found[0]) == re.sub(r"\bzz\b", "X", found[1])
    assert found[0] or "IF EXISTS" in probe
    assert not any(word in found[0] for word in ("late", "MAX FUTURE", "GROUP"))


def test_near_names_are_those_that_are_seen(engine: Engine):
    engine.execute("CREATE TABLE people (name STRING PRIMARY KEY, salary INT, town STRING)")
    engine.execute("GRANT SELECT (name, town) ON people TO alice WHERE salary < 100")
    for text in (
        "SELECT salry FROM people",
        "SELECT salary FROM people",
        "SELECT name FROM people ORDER BY salary",
        "SELECT p.salary FROM people p, people o WHERE p.salary = o.salary",
        "SELECT name FROM people GROUP BY name HAVING MAX(salary) > 1",
        "SELECT name FROM people WHERE EXISTS (SELECT * FROM people x WHERE x.salary = "
        "people.salary)",
        "SELECT people.salarx FROM people JOIN people o USING (salary)",
    ):
        said = told(engine, text)
        assert (
            said[:5] == "DS201" and "salary, " not in said and "did you mean salary" not in said
        ), text
    assert "people" not in told(engine, "SELECT * FROM peple", "bob")
    assert "late" not in told(engine, "SELECT * FROM lat")
    assert told(engine, "CREATE TABLE people (a INT)", "bob")[:5] == "DS670"
    engine.execute("GRANT CREATE ON ALL TO bob")
    assert told(engine, "CREATE STREAM people (a INT)", "bob").startswith(
        "DS213 the name people is taken choose"
    )


def test_lists_leave_out_what_is_hidden(engine: Engine):
    for what in ("STREAMS", "TABLES", "QUERIES", "GRANTS", "ARCHIVES"):
        assert rows(engine, f"SHOW {what}") == []
    assert [r["name"] for r in rows(engine, "SHOW USERS")] == ["alice"]
    assert engine.names("alice") == {"streams": {}, "tables": {}, "queries": {}}
    engine.execute("GRANT SUBSCRIBE ON q TO alice; GRANT SELECT ON d TO bob WHERE n < 7")
    (line,) = rows(engine, "SHOW QUERIES")
    assert line["query"] == "q" and line["waits_for"] is None
    assert [r["object"] for r in rows(engine, "SHOW GRANTS")] == ["q"]
    (line,) = rows(engine, "SHOW GRANTS", "bob")
    assert (line["object"], line["condition"]) == ("d", None)
    (line,) = rows(engine, "SHOW GRANTS FOR bob", None)
    assert line["condition"] == "n < 7"


def test_errors_of_a_query_are_for_its_owner(engine: Engine):
    engine.execute(
        "CREATE QUERY bad AS SELECT CAST(k AS INT) AS x FROM s [RANGE 1 HOUR] WITH (on_error = "
        "stop)"
    )
    engine.execute("GRANT SELECT, SUBSCRIBE ON bad TO alice")
    status = {r["query"]: (r["status"], r["first_error"]) for r in rows(engine, "SHOW QUERIES")}
    assert status == {"bad": ("stopped", None)}
    (line,) = rows(engine, "SHOW QUERIES LIKE 'bad'", None)
    assert line["status"].startswith("stopped: DS703") and "'a'" in line["status"]


def test_explain_shows_no_condition(engine: Engine):
    engine.execute(
        "GRANT SELECT ON s TO alice MASK (k AS 'hush') WHERE v < 77; GRANT CREATE ON ALL TO alice"
    )
    for text in (
        "SELECT k FROM s [RANGE 1 MIN] WHERE v > 2",
        "SELECT k, SUM(v) FROM s [RANGE 2 s SLIDE 1 s] GROUP BY k",
    ):
        for form in ("", "FORMAT MERMAID ", "FORMAT GRAPHVIZ "):
            plan = "\n".join(r["plan"] for r in rows(engine, f"EXPLAIN {form}{text}"))
            assert "77" not in plan and "hush" not in plan
    assert "of s is read what alice may see" in "\n".join(
        r["plan"] for r in rows(engine, f"EXPLAIN {text}")
    )
    engine.execute(f"CREATE QUERY own AS {text}", user="alice")
    assert told(engine, "EXPLAIN QUERY own")[:5] == "DS670"
    assert "77" in str(rows(engine, "EXPLAIN QUERY own", None))
    assert "77" not in str(rows(engine, "SHOW QUERIES"))


BARRIERS = [
    "SELECT 10 / (v - 3) AS x FROM s [RANGE 1 HOUR]",
    "SELECT v FROM s [RANGE 1 HOUR] WHERE 10 / (v - 3) > -100",
    "SELECT v FROM s [RANGE 1 HOUR] WHERE v < 100 AND 10 / (v - 3) > -100 AND k <> 'z'",
    "SELECT v FROM s [ROWS 2] WHERE 10 / (v - 3) > -100",
    "SELECT SUM(10 / (v - 3)) AS x FROM s [RANGE 1 HOUR]",
    "SELECT COUNT(*) FILTER (WHERE 10 / (v - 3) > 0) AS x FROM s [RANGE 1 HOUR]",
    "SELECT 10 / (v - 3) AS x, COUNT(*) AS n FROM s [RANGE 1 HOUR] GROUP BY 10 / (v - 3)",
    "SELECT a.v FROM s [RANGE 1 HOUR] a, s [RANGE 1 HOUR] b WHERE a.v = b.v AND 10 / (a.v - 3) > "
    "-100 + b.v",
    "SELECT v FROM s [RANGE 1 HOUR] WHERE EXISTS (SELECT * FROM s [NOW] o WHERE o.v = s.v AND 9 / "
    "(o.v - 3) < 9)",
    "SELECT x FROM (SELECT 10 / (v - 3) AS x FROM s [RANGE 1 HOUR]) y WHERE x < 100",
    "SELECT CAST(k AS INT) AS x FROM s [RANGE 1 HOUR] WHERE v = 7",
]


@pytest.mark.parametrize("text", BARRIERS)
@pytest.mark.parametrize("slide", ["", " SLIDE 1 s"])
def test_hidden_rows_are_gone_before_an_expression_could_fail_on_them(
    engine: Engine, text: str, slide: str
):
    engine.execute(
        "GRANT SELECT ON s TO alice WHERE v <> 3 AND v < 6; GRANT CREATE ON ALL TO alice"
    )
    assert told(engine, text) == ""
    text = text.replace("[RANGE 1 HOUR]", f"[RANGE 1 HOUR{slide}]").replace(
        "[ROWS 2]", f"[RANGE 2 s{slide}]"
    )
    engine.execute(f"CREATE QUERY mine AS {text} WITH (on_error = stop)", user="alice")
    engine.ingest("s", {"k": ["x", "y"], "v": [3, 4], "t": [4 * SECOND, 5 * SECOND]})
    engine.heartbeat("s", 9 * SECOND)
    (line,) = rows(engine, "SHOW QUERIES")
    assert (line["status"], line["errors"]) == ("running", 0)
    if "v - 3" in text and not slide:
        assert told(engine, f"CREATE QUERY all_rows AS {text} WITH (on_error = stop)", None) == ""
        engine.ingest("s", {"k": ["x"], "v": [3], "t": [10 * SECOND]})
        engine.heartbeat("s", 12 * SECOND)
        assert {r["query"]: r["status"][:7] for r in rows(engine, "SHOW QUERIES", None)}[
            "all_rows"
        ] == "stopped"


# -- queries of users


def test_a_query_reads_what_its_creator_may(engine: Engine):
    engine.execute("GRANT SELECT ON s TO alice WHERE v < 4; GRANT CREATE ON ALL TO alice")
    engine.execute("CREATE QUERY mine AS SELECT k, v FROM s [RANGE 1 HOUR]", user="alice")
    engine.execute("GRANT SELECT ON mine TO bob", user="alice")
    assert [r["v"] for r in rows(engine, "SELECT * FROM mine", "bob")] == [1, 3]
    assert [r["v"] for r in rows(engine, "SELECT * FROM mine", None)] == [1, 3]


@pytest.mark.parametrize(
    "change",
    [
        "REVOKE SELECT ON s FROM alice",
        "GRANT SELECT ON s TO alice WHERE v < 2",
        "GRANT SELECT ON s TO alice",
        "DROP USER alice",
    ],
)
def test_a_query_stops_when_that_changes(engine: Engine, change: str):
    engine.execute(
        "GRANT SELECT ON s TO alice WHERE v < 4; GRANT CREATE ON ALL TO alice; GRANT SELECT ON d "
        "TO alice"
    )
    engine.execute("CREATE QUERY mine AS SELECT k, v FROM s [RANGE 1 HOUR]", user="alice")
    engine.execute(
        "CREATE QUERY sums AS SELECT k, SUM(v) FROM s [RANGE 2 s SLIDE 1 s] GROUP BY k",
        user="alice",
    )
    engine.execute("CREATE QUERY other AS SELECT * FROM d", user="alice")
    reader = engine.subscribe("mine")
    reader.take()
    (done,) = engine.execute(change)
    stopped = ["mine", "other", "sums"] if change.startswith("DROP") else ["mine", "sums"]
    assert done.warnings[0].endswith(
        ": " + ", ".join(n for n in ("mine", "sums", "other") if n in stopped)
    )
    status = {r["query"]: r["status"][:14] for r in rows(engine, "SHOW QUERIES", None)}
    assert {name for name, said in status.items() if said == "stopped: DS673"} == set(stopped)
    engine.ingest("s", {"k": ["new"], "v": [1], "t": [4 * SECOND]})
    engine.heartbeat("s", 9 * SECOND)
    assert [(p.kind, p.code) for p in reader.take()] == [("end", "DS673")]
    # the last answer
    assert [r["k"] for r in rows(engine, "SELECT * FROM mine", None)] == ["a", "b"]


def test_queries_with_different_conditions_share_nothing(engine: Engine):
    engine.execute(
        "GRANT CREATE ON ALL TO alice, bob;GRANT SELECT ON s TO alice WHERE v < 4; GRANT SELECT "
        "ON s TO bob WHERE v > 1"
    )
    text = "SELECT SUM(v) AS x, COUNT(*) AS n FROM s [RANGE 10 s SLIDE 1 s]"
    for user in ("alice", "bob", None):
        engine.execute(f"CREATE QUERY of_{user} AS {text}", user=user)
    readers = {user: engine.subscribe(f"of_{user}") for user in ("alice", "bob", None)}
    engine.ingest(
        "s", {"k": ["d"] * 5, "v": [1, 2, 3, 4, 5], "t": [4 * SECOND + i for i in range(5)]}
    )
    engine.heartbeat("s", 5 * SECOND)
    last = {
        user: [p for p in r.take() if p.data is not None][-1].data.to_pylist()
        for user, r in readers.items()
    }
    assert last == {
        "alice": [{"x": 1 + 3 + 1 + 2 + 3, "n": 5}],
        "bob": [{"x": 3 + 5 + 2 + 3 + 4 + 5, "n": 6}],
        None: [{"x": 1 + 3 + 5 + 1 + 2 + 3 + 4 + 5, "n": 8}],
    }


# -- secrets


def test_secrets_are_kept_as_hashes_and_told_once(engine: Engine):
    (done,) = engine.execute("CREATE USER carl TOKEN")
    token = done.message.rpartition(" ")[2]
    assert engine.rights.of_token(hash_token(token)).name == "carl"
    engine.execute("ALTER USER carl PASSWORD 'correct horse'")
    user = engine.rights.users["carl"]
    assert fits("correct horse", user.password) and not fits("Correct horse", user.password)
    assert not fits("anything", None)
    said = str(rows(engine, "SHOW USERS", None)) + repr(engine.rights)
    assert token not in said and "argon2" not in said and hash_token(token) not in said


def test_tokens_are_rotated(engine: Engine):
    def made(text: str) -> str:
        return hash_token(engine.execute(text, user="alice")[0].message.rpartition(" ")[2])

    first = made("ALTER USER alice TOKEN")
    second = made("ALTER USER alice ADD TOKEN")
    assert engine.rights.of_token(first) is engine.rights.of_token(second) is not None
    engine.execute(f"ALTER USER alice DROP TOKEN '{first[:8]}'", user="alice")
    assert engine.rights.of_token(first) is None is not engine.rights.of_token(second)
    third = made("ALTER USER alice TOKEN")
    assert engine.rights.of_token(second) is None is not engine.rights.of_token(third)
    for _ in range(7):
        made("ALTER USER alice ADD TOKEN")
    assert told(engine, "ALTER USER alice ADD TOKEN")[:5] == "DS672"


@pytest.mark.parametrize(
    "text",
    [
        "CREATE USER carl PASSWORD 'correct horse'",
        "CREATE USER carl PASWORD 'correct horse'",
        "CREATE USER carl 'correct horse'",
        "create user carl password'correct horse' and more",
        "ALTER /* x */ USER carl TOKEN 'correct horse",
        "CREATE USER 'correct horse'",
        "ALTER USER alice DROP TOKEN 'correct horse'",
        "-- it's\nCREATE USER carl PASSWORD 'correct horse'",
        'CREATE USER carl PASSWORD "correct horse"',
    ],
)
def test_no_error_and_no_log_repeats_a_secret(engine: Engine, text: str):
    assert "correct" not in told(engine, text, None)
    assert "correct" not in without_secrets(text)
    assert hide("near 'correct horse'", text) == "near '***'"


@pytest.mark.parametrize(
    "text",
    [
        "CREATE USER carl PASSWORD correct",
        "ALTER USER carl PASSWORD horses-correct",
        "CREATE USER carl PASSWORD ‘horses-correct’",
        "ALTER USER carl PASSWORD $$correct-horses$$",
        "SET PASSWORD FOR carl = 'correct'",
        "SET password = 'correct'",
        "SET PASSWORD TO correct",
        "GRANT SELECT ON s TO carl IDENTIFIED BY 'correct'",
        "CONNECT carl/correct",
        "CREATE USER \"carl PASSWORD 'a\"correct'",
        "CREATE USER carl PASSWORD 'horses' -- correct",
        "CREATE USER carl /* correct",
    ],
)
def test_what_is_written_wrongly_is_not_shown_either(engine: Engine, text: str):
    assert "correct" not in told(engine, text, None)
    assert "correct" not in without_secrets(text)


def test_the_quota_of_a_user_is_no_secret():
    text = "CREATE USER carl PASSWORD '{}' WITH (queries = 1, state = '64 MB')"
    assert without_secrets(text.format("64 MB")) == text.format("***")


def test_other_statements_are_shown_as_they_are():
    for text in ("SELECT * FROM s WHERE k = 'user'", "INSERT INTO t VALUES ('a b c')"):
        assert without_secrets(text) == text and hide("near 'a b c'", text) == "near 'a b c'"


@pytest.mark.parametrize(
    "text",
    [
        "CREATE STREAM n (k INT) CONFIDENTIAL FOR 1 s TO stuff",
        "GRANT SELECT ON own TO stuff",
        "REVOKE SELECT ON own FROM bobb",
    ],
)
def test_hints_name_no_users_to_others(engine: Engine, text: str):
    engine.execute("GRANT CREATE ON ALL TO alice")
    engine.execute("CREATE STREAM own (a INT)", user="alice")
    assert told(engine, text).endswith(" None")
    assert "staff" in told(engine, text, None) or "bob" in told(engine, text, None)


def test_late_rows_go_where_their_owner_may_write_now(engine: Engine):
    """And MAX FUTURE binds him there by that way, too."""
    engine.execute("GRANT CREATE ON ALL TO alice; GRANT INSERT ON s TO alice")
    engine.execute(
        "CREATE STREAM x (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t LATE INTO s", user="alice"
    )
    hour = 3600 * SECOND

    def late(at: int) -> int:
        assert engine.ingest("x", [["x", 0, at]]).late == 1
        return rows(engine, "SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED]", None)[0]["n"]

    engine.ingest("x", [["x", 0, 9 * hour]])
    assert late(4 * hour) == 3, "an hour ahead is the most"
    assert late(3 * SECOND + 1) == 3
    engine.heartbeat("s", hour // 2)
    assert rows(engine, "SELECT COUNT(*) AS n FROM s [RANGE 1 h]", None)[0]["n"] == 4
    engine.execute("REVOKE INSERT ON s FROM alice")
    late(hour // 2 + 1)
    engine.heartbeat("s", hour // 2 + 2)
    assert rows(engine, "SELECT COUNT(*) AS n FROM s [RANGE 1 h]", None)[0]["n"] == 4


# -- restarts


@pytest.mark.parametrize("crash", [False, True])
def test_users_and_rights_come_back(tmp_path, crash: bool):
    folder = tmp_path / "data"
    engine = Engine(str(folder))
    engine.execute(DECLARED)
    engine.execute(
        "CREATE USER carl PASSWORD 'correct horse'; CREATE USER dora TOKEN "
        "'a-token-of-my-own-making-1'"
    )
    engine.execute(
        "GRANT CREATE ON ALL TO alice; GRANT SELECT ON s TO alice MASK (k AS UPPER(k)) WHERE k <> "
        "CURRENT_USER()"
    )
    engine.execute("CREATE QUERY mine AS SELECT k, v FROM s [RANGE 1 HOUR]", user="alice")
    engine.execute("CREATE QUERY doomed AS SELECT v FROM s [RANGE 1 HOUR]", user="alice")
    engine.execute("CREATE STREAM gone (a INT)", user="alice")
    engine.execute(
        "GRANT SELECT ON gone TO bob; DROP STREAM gone; GRANT staff TO bob; DROP USER bob"
    )
    engine.ingest("s", {"k": ["a", "alice"], "v": [1, 2], "t": [0, 1]}, client="w", seq=1)
    if crash:
        shutil.copytree(folder, tmp_path / "copy")
        folder = tmp_path / "copy"
    before = engine.rights
    engine.close()
    held = b"".join(p.read_bytes() for p in folder.rglob("*") if p.is_file())
    assert b"correct horse" not in held and b"a-token-of-my-own-making-1" not in held
    engine = Engine(str(folder))
    assert engine.recovered.notes == [] and engine.rights == before
    assert engine.ingest(
        "s", {"k": ["a", "alice"], "v": [1, 2], "t": [0, 1]}, client="w", seq=1
    ).repeated
    engine.ingest("s", {"k": ["b", "alice"], "v": [3, 4], "t": [2, 3]})
    engine.heartbeat("s", 5)
    assert [r["k"] for r in rows(engine, "SELECT * FROM mine")] == ["A", "B"]
    engine.execute("REVOKE SELECT ON s FROM alice; DROP QUERY doomed")
    assert fits("correct horse", engine.rights.users["carl"].password)
    engine.close()


# -- writers


def test_no_user_uses_up_the_numbers_of_another():
    writers = Writers(limit=10)
    writers.note(FramePart("alice\x1fw", 7, 1, True), "s")
    for n in range(100):
        writers.note(FramePart(f"bob\x1f{n}", 1, 1, True), "s")
    assert writers.applied("alice\x1fw", "s", 7) is None and len(writers.newest) == 10
    assert writers.applied("bob\x1f0", "s", 1) == 0 and writers.applied("bob\x1f99", "s", 1) is None
    old = Writers(3, writers.newest)  # of a state of earlier versions
    old.note(FramePart("w", 1, 1, True), "s")
    assert old.applied("alice\x1fw", "s", 7) is None and len(old.newest) == 3
    old.forget("s")
    assert not old.newest and not old.by_user
