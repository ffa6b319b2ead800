"""A refusal tells nothing of what is hidden: not in answers, lists, hints, errors, nor logs."""

from __future__ import annotations

import re

import pytest

from dsms.engine import Engine
from dsms.rights.secrets import fits, hash_token
from dsms.secret_texts import hide, without_secrets
from tests.users import SECOND, declared, rows, told


@pytest.fixture
def engine() -> Engine:
    return declared()


# -- nothing is told of what is hidden

PROBES = [
    "SELECT * FROM {}", "SELECT * FROM ARCHIVE {}",
    "CREATE QUERY n AS SELECT * FROM {} [RANGE 1 MIN]", "LOOKUP {}",
    "EXPLAIN SELECT * FROM {}", "EXPLAIN QUERY {}", "DESCRIBE {}", "DESCRIBE STREAM {}",
    "SHOW CREATE STREAM {}", "SHOW CREATE QUERY {}",
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
    (line,) = rows(engine, "SHOW QUERIES FULL")
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
    status = {
        r["query"]: (r["status"], r["first_error"]) for r in rows(engine, "SHOW QUERIES FULL")
    }
    assert status == {"bad": ("stopped", None)}
    (line,) = rows(engine, "SHOW QUERIES FULL LIKE 'bad'", None)
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
    assert "77" not in str(rows(engine, "SHOW QUERIES FULL"))


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
    (line,) = rows(engine, "SHOW QUERIES FULL")
    assert (line["status"], line["errors"]) == ("running", 0)
    if "v - 3" in text and not slide:
        assert told(engine, f"CREATE QUERY all_rows AS {text} WITH (on_error = stop)", None) == ""
        engine.ingest("s", {"k": ["x"], "v": [3], "t": [10 * SECOND]})
        engine.heartbeat("s", 12 * SECOND)
        assert {r["query"]: r["status"][:7] for r in rows(engine, "SHOW QUERIES FULL", None)}[
            "all_rows"
        ] == "stopped"


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
