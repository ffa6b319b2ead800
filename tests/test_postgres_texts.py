"""What a text sent by PostgreSQL's clients asks for, how it is read by the engine, and how by the
catalog."""

from __future__ import annotations

import pytest

from dsms.api import Cancel
from dsms.errors import DsmsError, UsageError
from dsms.sql.listed import Declared
from dsms.sql.types import INT, STRING, Field
from dsms_server.postgres.adapt import adapted
from dsms_server.postgres.catalog import Catalogs
from dsms_server.postgres.rewrite import Session, rewritten
from dsms_server.postgres.settings import Settings, seconds
from dsms_server.postgres.statements import statements


def known(name: str) -> bool:
    return name.lower() in ("s", "q", "version")


@pytest.mark.parametrize(
    ("text", "verbs"),
    [
        ("select 1; BEGIN;; commit", ["ask", "begin", "commit"]),
        ("SELECT * FROM s", ["ask"]),
        ("with a as (select 1 as x) select * from a", ["ask"]),
        ("(SELECT 1)", ["ask"]),
        ("SELECT 'pg_class' FROM s", ["ask"]),
        ("SELECT version FROM version", ["ask"]),
        ("SELECT s.version, current_user FROM s", ["ask"]),
        ("SELECT relname FROM pg_class, s", ["catalog"]),
        ("SELECT version()", ["catalog"]),
        ("SELECT current_schema", ["catalog"]),
        ("SELECT 'x'::regclass", ["catalog"]),
        ("values (1)", ["catalog"]),
        ("SELECT * FROM information_schema.s", ["catalog"]),
        ("EXPLAIN SELECT 1; SHOW STREAMS; DESCRIBE s; LOOKUP q (1)", ["ask", "ask", "ask", "ask"]),
        ("SHOW TIME ZONE; show a.b; SHOW ALL", ["show", "show", "show"]),
        (
            "SET a TO b; SET LOCAL a = 'b'; SET TIME ZONE 'UTC'; SET NAMES 'utf8'",
            ["set", "set", "set", "set"],
        ),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY; SET ROLE x",
            ["nothing", "nothing"],
        ),
        (
            "RESET ALL; RESET a; DISCARD ALL; DEALLOCATE ALL",
            ["reset", "reset", "discard", "deallocate"],
        ),
        (
            "SAVEPOINT a; RELEASE a; ROLLBACK TO a; UNLISTEN *; END",
            ["nothing", "nothing", "nothing", "nothing", "commit"],
        ),
        (
            "DECLARE c CURSOR FOR SELECT 1; FETCH 1 c; MOVE c; CLOSE c",
            ["declare", "fetch", "move", "close"],
        ),
        ("SUBSCRIBE TO q; SUBSCRIBE q", ["subscribe", "subscribe"]),
        ("-- nothing\n ; /* at all */", []),
    ],
)
def test_what_is_asked_for(text, verbs):
    assert [one.verb for one in statements(text, known)] == verbs


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("DROP STREAM s", "DS627"),
        ("CLOSE SESSION 4", "DS627"),
        ("END STREAM s", "DS627"),
        ("COPY s FROM STDIN", "DS627"),
        ("EXECUTE x", "DS627"),
        ("FETCH PRIOR c", "DS627"),
        ("SET a", "DS101"),
        ("SET a =", "DS101"),
        ("DECLARE c", "DS101"),
        ("FETCH", "DS101"),
        ("SUBSCRIBE", "DS101"),
        ("CLOSE", "DS102"),
        ("SELECT 'x", "DS103"),
        ("RESET", "DS102"),
        ("DECLARE c CURSOR FOR DELETE FROM r", "DS627"),
        ("FETCH 9999999999999999999 c", "DS106"),
    ],
)
def test_what_is_refused(text, code):
    with pytest.raises(DsmsError) as error:
        list(statements(text, known))
    assert error.value.code == code


def test_names_and_values_of_what_is_asked_for():
    def one(text):
        (found,) = statements(text, known)
        return found.name, found.value

    assert one("SET \"a\".b TO 'x', y") == ("a.b", "x, y")
    assert one("SET statement_timeout = 5 s") == ("statement_timeout", "5 s")
    assert one('FETCH FORWARD ALL IN "C d"') == ("C d", "")
    assert one("FETCH 7 FROM c WITH (timeout = '5s')") == ("c", "7")
    (fetch,) = statements("FETCH 7 c WITH (timeout = '5s')", known)
    assert fetch.inner is not None and fetch.inner.value == "5s"
    (_, second) = statements("BEGIN;\n SELECT 1", known)
    assert second.start == 6 and second.text == "\n SELECT 1"


@pytest.mark.parametrize(
    ("text", "read", "oids"),
    [
        ('SELECT "public"."s"."k" FROM public.s', 'SELECT "s"."k" FROM s', {}),
        ("SELECT s.public FROM s", "SELECT s.public FROM s", {}),
        ("SELECT a::float8, b::INT4", "SELECT a::FLOAT, b::INT", {}),
        ("SELECT a::character varying(10)", "SELECT a::STRING", {}),
        ("SELECT $1::VARCHAR, $2::double precision", "SELECT $1, $2", {1: 1043, 2: 701}),
        ("SELECT CAST(a AS timestamptz)", "SELECT CAST(a AS TIMESTAMP)", {}),
        ("SELECT 1 AS float8, '::float8'", "SELECT 1 AS float8, '::float8'", {}),
        ("SELECT a::", "SELECT a::", {}),
    ],
)
def test_texts_as_the_engine_reads_them(text, read, oids):
    found = adapted(text)
    assert (found.text, found.oids) == (read, oids)
    for word in ("FROM", "SELECT"):
        if word in read:
            assert text[found.sent(read.index(word)) :].startswith(word)


def test_texts_that_are_instants():
    text = "SELECT 1 WHERE t BETWEEN '2020-01-01T00:00:00Z' AND '2020-01-02' AND k = '2020'"
    assert adapted(text, instants=True).text == (
        "SELECT 1 WHERE t BETWEEN TIMESTAMP '2020-01-01T00:00:00Z' AND TIMESTAMP '2020-01-02' "
        "AND k = '2020'"
    )
    assert adapted("TIMESTAMP '2020-01-01'", instants=True).text == "TIMESTAMP '2020-01-01'"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("SELECT pg_catalog.f(x)", "SELECT f(x)"),
        ("FROM information_schema.tables t", "FROM information_schema_tables t"),
        (
            "a OPERATOR(pg_catalog.~) 'x' COLLATE pg_catalog.default",
            "a ~ ('(?s:.*(?:' || 'x' || ').*)')",
        ),
        ("a !~ E'x'", "a !~ ('(?s:.*(?:' || E'x' || ').*)')"),
        ("c.oid::regclass::text", "_regclass(c.oid)::text"),
        ("f(a, (b))::pg_catalog.regtype", "_regtype(f(a, (b)))"),
        ("x IN ('s'::regclass)", "x IN (_regclass('s'))"),
        ("a::name, b::int2vector", "a::varchar, b::bigint[]"),
        ("current_user, u.user, current_database()", "'me', u.user, 'dsms'"),
        ("= ANY ('{r,v}'::char[])", "= any (['r', 'v']::char[])"),
        ("$1 = $2", "'it''s' = NULL"),
        ("current_setting('TimeZone', true)", "'UTC'"),
        ("'a'::text::regclass", "_regclass('a'::text)"),
        ("f(CAST(CAST(a.b AS REGCLASS) AS TEXT))", "f(CAST(_regclass(a.b) AS TEXT))"),
        ("CAST(x AS pg_catalog.name)", "CAST(x as varchar)"),
        ("json_build_object('a', 1)", "json_object('a', 1)"),
    ],
)
def test_texts_as_the_catalog_reads_them(text, read):
    assert rewritten(text, Session(Settings("me", None), 3), ["it's", None]) == read


def test_the_catalog_takes_one_select_and_stops_when_asked():
    objects = (Declared("stream", "s", (Field("k", STRING), Field("v", INT))),)
    catalogs = Catalogs()
    ask = lambda text, cancel=None: catalogs.answer(text, None, objects, cancel or Cancel())  # noqa: E731
    assert ask("SELECT relname FROM pg_class").to_pylist() == [{"relname": "s"}]
    for text in (
        "SELECT 1; SELECT 2",
        "DROP VIEW pg_class",
        "COPY (SELECT 1) TO '/tmp/x'",
        "SELECT",
        "",
        "SELECT * FROM read_csv('/etc/passwd')",
        "ATTACH '/tmp/x.db'",
        "SET threads = 5",
        "SELECT * FROM nothing",
        "INSTALL httpfs",
        "PRAGMA database_list",
    ):
        with pytest.raises(UsageError, match="DS628"):
            ask(text)
    with pytest.raises(UsageError, match="DS623"):
        ask("SELECT repeat('x', 1000000) FROM range(1000)")
    stopped = Cancel()
    stopped.set()
    with pytest.raises(UsageError, match="DS610"):
        ask("SELECT count(*) FROM range(10000000000) a, range(1000) b", stopped)
    more = (*objects, Declared("query", "q", (Field("n", INT),)))
    before = ask("SELECT oid FROM pg_class")
    objects = more
    assert ask("SELECT oid FROM pg_class ORDER BY 1").slice(0, 1) == before
    catalogs.close()


def test_settings_of_a_session():
    found = Settings("me", None)
    assert found.set("TIMEZONE", "Asia/Tokyo") == ("TimeZone", "Asia/Tokyo")
    assert found.get("timezone") == "Asia/Tokyo" and found.reset("TimeZone") == ("TimeZone", "UTC")
    assert found.set("client_encoding", "'utf8'".strip("'")) is None
    for name, value in (("client_encoding", "latin1"), ("server_version", "9"), ("x", "y" * 9999)):
        with pytest.raises(UsageError, match="DS618"):
            found.set(name, value)
    with pytest.raises(UsageError, match="too many"):
        for k in range(1000):
            found.set(f"a{k}", "1")
    assert [seconds(t) for t in ("1500", "5s", "2 min", "0")] == [1.5, 5, 120, 0]
    with pytest.raises(UsageError, match="DS618"):
        seconds("soon")
