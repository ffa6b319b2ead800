"""The port that speaks PostgreSQL's protocol, message by message: queries, prepared statements,
portals, cursors, errors, settings, subscriptions."""

from __future__ import annotations

import struct

import pytest
from postgres_peer import (
    SYNC,
    Wire,
    bind,
    close,
    describe,
    execute,
    fields,
    message,
    parse,
    query,
    row,
)

from dsms.engine import Engine

DECLARED = """
CREATE STREAM s (k STRING, v INT, f FLOAT, t TIMESTAMP) TIMESTAMP BY t;
CREATE TABLE r (id INT PRIMARY KEY, x STRING);
CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 1 MIN] GROUP BY k;
INSERT INTO r VALUES (1, 'one'), (2, 'two'), (3, 'three');
"""
INT8, TEXT = 20, 25


@pytest.fixture
def running(serve):
    engine = Engine()
    engine.execute(DECLARED)
    engine.ingest("s", {"k": ["a", "b", "a"], "v": [1, 2, 3], "f": [0.5, 1.5, 2.5], "t": [0, 1, 2]})
    engine.heartbeat("s", 3)
    return serve(engine, postgres_port=0)


@pytest.fixture
def wire(running):
    with Wire(running.server.postgres_port) as made:
        yield made.begin()


def kinds(found) -> str:
    return "".join(kind.decode() for kind, _ in found)


def test_a_query_is_answered_with_its_rows(wire):
    found = wire.ask(query("SELECT k, v FROM s ORDER BY v; SELECT 7 AS seven"))
    assert kinds(found) == "TDDDCTDCZ"
    assert [row(b) for k, b in found if k == b"D"] == [
        (b"a", b"1"),
        (b"b", b"2"),
        (b"a", b"3"),
        (b"7",),
    ]
    assert [b for k, b in found if k == b"C"] == [b"SELECT 3\0", b"SELECT 1\0"]
    assert wire.told["dsms.as_of"] == ""  # of the last one, which reads nothing
    wire.rows("SELECT k FROM s")
    assert wire.told["dsms.as_of"] == "1970-01-01T00:00:00.000003Z"
    assert wire.ask(query(" ; ;")) == [(b"I", b""), (b"Z", b"I")]


def test_names_in_the_schema_public_and_types_of_postgresql(wire):
    assert wire.rows('SELECT "public"."s"."k" AS "k" FROM "public"."s" WHERE v = 1::int8') == [
        (b"a",)
    ]
    assert wire.rows("SELECT v::float8 FROM public.s WHERE t > '1970-01-01 00:00:00'") == [
        (b"2",),
        (b"3",),
    ]


def test_errors_have_sqlstate_code_hint_and_place(wire):
    asked = 'SELECT v,\n  nothing FROM "public"."s"'
    problem = wire.error(query(asked))
    assert problem["S"] == "ERROR" and problem["C"] == "42703"
    assert problem["M"].startswith("DS201: ") and problem["H"]
    assert asked[int(problem["P"]) - 1 :].startswith("nothing")
    behind = 'SELECT 1;  SELECT v + "public".k FROM "public".s'
    found = wire.ask(query(behind))
    (problem,) = (fields(b) for k, b in found if k == b"E")
    assert kinds(found) == "TDCEZ" and problem["C"] == "42804"
    for sql, state in (
        ("SELEC 1", "42601"),
        ("SELECT 1/0", "22012"),
        ("SELECT * FROM nobody", "42P01"),
        ("SELECT v FROM s WHERE v = 'x'", "42804"),
    ):
        assert wire.error(query(sql))["C"] == state, sql


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("DROP STREAM s", "25006"),
        ("INSERT INTO r VALUES (4, 'x')", "25006"),
        ("CREATE STREAM x (a INT)", "25006"),
        ("SET max_queries = 1; DELETE FROM r", "25006"),
        ("CANCEL SESSION 1", "25006"),
        ("END STREAM s", "25006"),
        ("COPY r TO STDOUT", "0A000"),
        ("PREPARE x AS SELECT 1", "0A000"),
        ("WITH a AS (DELETE FROM r) SELECT 1", "42601"),
        ("EXPLAIN DELETE FROM r", "42601"),
    ],
)
def test_nothing_can_be_changed(wire, sql, state):
    problem = wire.error(query(sql))
    assert problem["C"] == state
    assert wire.rows("SELECT COUNT(*) FROM r") == [(b"3",)]


def test_prepared_statements_and_portals(wire):
    found = wire.ask(
        parse("p", "SELECT id, x FROM r WHERE id > $1 ORDER BY id", INT8),
        describe("S", "p"),
        bind("", "p", (b"1",)),
        describe("P"),
        execute(),
        SYNC,
    )
    assert kinds(found) == "1tT2TDDCZ"
    assert found[1][1] == struct.pack(">HI", 1, INT8)
    assert [row(b) for k, b in found if k == b"D"] == [(b"2", b"two"), (b"3", b"three")]
    found = wire.ask(
        bind("", "p", (struct.pack(">q", 2),), (1,), (1, 0)), execute(), close("S", "p"), SYNC
    )
    assert [row(b) for k, b in found if k == b"D"] == [(struct.pack(">q", 3), b"three")]
    assert wire.error(bind("", "p", (b"1",)), SYNC)["C"] == "26000"
    assert wire.error(execute("none"), SYNC)["C"] == "34000"


def test_portals_give_so_many_rows_at_a_time(wire):
    wire.ask(query("BEGIN"))
    found = wire.ask(
        parse("", "SELECT id FROM r ORDER BY id"),
        bind("c"),
        execute("c", 2),
        execute("c", 2),
        execute("c", 2),
        SYNC,
    )
    assert kinds(found) == "12DDsDCCZ"
    assert [row(b) for k, b in found if k == b"D"] == [(b"1",), (b"2",), (b"3",)]
    assert found[-1][1] == b"T"
    wire.ask(query("COMMIT"))
    assert wire.error(execute("c", 2), SYNC)["C"] == "34000"


def test_types_of_parameters_are_told_by_their_places(wire):
    sql = "SELECT k FROM s WHERE v = $1 AND k = $2 AND f < $3 AND t > $4 LIMIT $5"
    found = wire.ask(parse("", sql), describe("S"), SYNC)
    assert kinds(found) == "1tTZ"
    assert struct.unpack(">H5I", found[1][1]) == (5, INT8, TEXT, 701, 1184, INT8)
    found = wire.ask(
        parse("", "SELECT k FROM s WHERE v = $1"), bind(values=(b"2",)), execute(), SYNC
    )
    assert [row(b) for k, b in found if k == b"D"] == [(b"b",)]
    cast = wire.ask(parse("", "SELECT $1::VARCHAR AS a"), bind(values=(b"it's",)), execute(), SYNC)
    assert [row(b) for k, b in cast if k == b"D"] == [(b"it's",)]


def test_after_an_error_all_is_passed_over_up_to_the_next_sync(wire):
    found = wire.ask(
        parse("", "SELECT nothing FROM s"), bind(), execute(), parse("", "SELECT 1"), SYNC
    )
    assert kinds(found) == "12EZ"
    assert wire.rows("SELECT 1") == [(b"1",)]


def test_a_failed_transaction_takes_nothing_but_its_end(wire):
    assert wire.ask(query("BEGIN"))[-1] == (b"Z", b"T")
    wire.error(query("SELECT 1/0"))
    assert wire.error(query("SELECT 1"))["C"] == "25P02"
    assert wire.ask(query("COMMIT")) == [(b"C", b"ROLLBACK\0"), (b"Z", b"I")]
    assert wire.ask(query("ROLLBACK"))[0] == (b"C", b"ROLLBACK\0")
    assert wire.notices == ["there is no transaction"]


def test_cursors(wire):
    wire.ask(query('BEGIN; DECLARE "c" CURSOR FOR SELECT id, x FROM r ORDER BY id'))
    assert kinds(wire.ask(describe("P", "c"), SYNC)) == "TZ"
    assert wire.rows('FETCH FORWARD 2 FROM "c"') == [(b"1", b"one"), (b"2", b"two")]
    assert wire.ask(query("FETCH ALL c"))[-2] == (b"C", b"FETCH 1\0")
    assert wire.rows("FETCH c") == []
    assert wire.error(query("FETCH BACKWARD 1 FROM c"))["C"] == "0A000"
    wire.ask(query("ROLLBACK"))
    assert wire.error(query("FETCH c"))["C"] == "34000"
    wire.ask(query("DECLARE d CURSOR FOR SHOW QUERIES"))
    assert len(wire.rows("MOVE 1 d; FETCH d")) == 0
    assert wire.ask(query("CLOSE d"))[0] == (b"C", b"CLOSE CURSOR\0")
    assert wire.error(query("CLOSE d"))["C"] == "34000"


def test_settings(wire):
    assert wire.told["server_version"] == "15.0" and wire.told["TimeZone"] == "UTC"
    assert wire.rows("SHOW server_version") == [(b"15.0",)]
    assert wire.rows("SHOW TRANSACTION ISOLATION LEVEL") == [(b"read committed",)]
    wire.ask(query("SET application_name TO 'x y'; SET TIME ZONE 'Europe/Paris'; SET a.b = 1"))
    assert wire.told["application_name"] == "x y" and wire.told["TimeZone"] == "Europe/Paris"
    assert wire.rows("SHOW a.b") == [(b"1",)]
    assert wire.error(query("SET DateStyle = 'German'"))["C"] == "22023"
    assert wire.error(query("SHOW nothing_such"))["C"] == "42704"
    wire.ask(query("RESET ALL"))
    assert wire.told["TimeZone"] == "UTC"
    assert len(wire.rows("SHOW ALL")) > 20
    assert wire.rows("SELECT current_setting('server_version'), current_user") == [(b"15.0", b"me")]
    assert kinds(wire.ask(query("DISCARD ALL; DEALLOCATE ALL; UNLISTEN *"))) == "CCCZ"


def test_a_statement_timeout_is_that_of_the_session(running, wire):
    (session,) = running.server.sessions
    wire.ask(query("SET statement_timeout = 1500"))
    assert session.account.statement_timeout == 1.5
    wire.ask(query("SET statement_timeout TO '2min'"))
    assert session.account.statement_timeout == 120
    wire.ask(query("RESET statement_timeout"))
    assert session.account.statement_timeout == 0


def test_a_subscription_streams_its_changes(running, wire):
    wire.raw(query("SUBSCRIBE TO q"))
    found = wire.until(b"T")
    while len(found) < 3:
        found += wire.until(b"D")
    assert sorted(row(b) for k, b in found[1:]) == [
        (b"snapshot", b"1970-01-01 00:00:00.000003+00", b"a", b"2"),
        (b"snapshot", b"1970-01-01 00:00:00.000003+00", b"b", b"1"),
    ]
    with running.peer() as other:
        other.ask("ingest", stream="s", rows=[["c", 1, 0.5, 10]], wait=True)
        other.ask("heartbeat", stream="s", ts=11)
    assert row(wire.until(b"D")[-1][1])[::2] == (b"insert", b"c")
    with Wire(running.server.postgres_port, None) as other:
        other.raw(struct.pack(">IIII", 16, 80877102, *wire.key))
        assert other.rest() == b""
    found = wire.ready()
    assert fields(found[-2][1])["C"] == "57014"
    assert wire.rows("SELECT 1") == [(b"1",)]
    assert running.on_loop(lambda: [len(s.requests.feeds) for s in running.server.sessions]) == [0]


def test_a_cursor_over_a_subscription_gives_what_has_come(running, wire):
    wire.ask(query("DECLARE c CURSOR FOR SUBSCRIBE TO q"))
    assert len(wire.rows("FETCH 1 c")) == 1 and len(wire.rows("FETCH ALL c")) == 1
    assert wire.rows("FETCH ALL c WITH (timeout = '1ms')") == []
    with running.peer() as other:
        other.ask("ingest", stream="s", rows=[["a", 1, 0.5, 10]], wait=True)
        other.ask("heartbeat", stream="s", ts=11)
    found = wire.rows("FETCH 1 c") + wire.rows("FETCH 1 c")
    assert [(r[0], *r[2:]) for r in found] == [(b"delete", b"a", b"2"), (b"insert", b"a", b"3")]
    assert wire.error(query("SUBSCRIBE TO q"))["M"].startswith("DS643")
    wire.ask(query("CLOSE c"))
    wire.raw(query("SUBSCRIBE TO q"))
    wire.until(b"D")
    with running.peer() as other:
        other.ask("execute", sql="DROP QUERY q")
    assert kinds(wire.ready())[-2:] == "EZ"


def test_sessions_and_metrics_show_them(running, wire):
    assert wire.rows("SELECT 1")
    shown = wire.rows("SHOW SESSIONS")
    assert len(shown) == 1
    text = running.server.metrics.text().decode()
    assert 'dsms_requests_total{op="postgres_query"} 2.0' in text
    with running.peer() as other:
        reply = other.ask("execute", sql=f"CLOSE SESSION {shown[0][0].decode()}")
        assert reply["ok"]
    assert wire.fatal()["C"] == "57P01"


def test_the_catalog_is_asked_with_parameters(wire):
    sql = "SELECT relname FROM pg_catalog.pg_class WHERE relkind = $1 AND relname ~ $2 ORDER BY 1"
    found = wire.ask(parse("", sql), describe("S"), bind(values=(b"r", b"^[rs]$")), execute(), SYNC)
    assert kinds(found) == "1tT2DDCZ"
    assert wire.error(query("SELECT * FROM pg_catalog.no_such_thing"))["M"].startswith("DS628")
    refused = wire.error(query("SELECT pg_catalog.read_text('/etc/hostname')"))
    assert refused["M"].startswith("DS628")
    for sql in ("SELECT * FROM read_text('/etc/hostname'), pg_class", "VALUES (getenv('HOME'))"):
        assert wire.error(query(sql))["M"].startswith("DS628"), sql
    assert wire.error(message(b"F", b"\0\0\0\1\0\0\0\0\0\0"))["C"] == "0A000"
