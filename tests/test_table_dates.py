"""When changes of tables happen: the first rows, the clock that a table follows, what no query will
see, restarts."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsms.api import Done
from dsms.engine import Engine
from dsms.errors import UsageError
from dsms.settings import Settings
from tests.stories.play import rows_of, snapshot

S = 1_000_000
DECLARED = """
    CREATE STREAM metrics (v INT, t TIMESTAMP) TIMESTAMP BY t;
    CREATE STREAM readings (p STRING, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
    CREATE TABLE places (p STRING PRIMARY KEY, name STRING)"""
JOIN = "SELECT Rstream(r.p, name) FROM readings [RANGE 1 h] r JOIN places p ON r.p = p.p"
OLD, NEW = 34 * 365 * 86_400 * S, 44 * 365 * 86_400 * S


def declared(data: Path | None = None) -> Engine:
    engine = Engine(None if data is None else str(data))
    engine.execute(DECLARED)
    return engine


def done(engine: Engine, sql: str) -> Done:
    (result,) = engine.execute(sql)
    assert isinstance(result, Done)
    return result


def join_rows(engine: Engine) -> list[tuple]:
    return sorted(snapshot(engine.subscribe("q")))


# ---------------------------------------------------------------- the first rows, and whom a table
# follows


@pytest.mark.parametrize(
    "registered", [0, 1, 2], ids=["before all", "after the metrics", "after the places"]
)
@pytest.mark.parametrize(
    "insert",
    [
        "INSERT INTO places VALUES ('a', 'A'), ('b', 'B')",
        "INSERT INTO places (name, p) VALUES ('A', 'a'), ('B', 'b')",
        "INSERT INTO places SELECT p, name FROM others",
    ],
)
def test_rows_older_than_other_streams_find_the_first_rows_of_a_table(
    insert: str, registered: int
) -> None:
    engine = declared()
    engine.execute(
        "CREATE TABLE others (p STRING, name STRING); INSERT INTO others VALUES ('a', 'A'), ('b', "
        "'B')"
    )
    steps = [lambda: engine.ingest("metrics", [[1, NEW]]), lambda: engine.execute(insert)]
    for number, step in enumerate(steps):
        if number == registered:
            engine.execute(f"CREATE QUERY q AS {JOIN}")
        step()
    if registered == len(steps):
        engine.execute(f"CREATE QUERY q AS {JOIN}")
    engine.ingest("readings", [["a", 1, OLD], ["b", 2, OLD]])
    engine.heartbeat("readings", OLD)
    assert join_rows(engine) == [("a", "A"), ("b", "B")]
    (rows,) = engine.execute(JOIN.replace("Rstream(r.p, name)", "r.p, name"))
    assert sorted(rows_of(rows.data)) == [("a", "A"), ("b", "B")]  # type: ignore[union-attr]


def test_at_says_otherwise() -> None:
    engine = declared()
    engine.execute(f"CREATE QUERY q AS {JOIN}")
    assert done(engine, "INSERT INTO places VALUES ('a', 'A') AT 5 s").message.endswith(
        "as of 1970-01-01T00:00:05Z"
    )
    engine.ingest("readings", [["a", 1, 4 * S]])
    engine.heartbeat("readings", 4 * S)
    assert join_rows(engine) == []
    engine.heartbeat("readings", 5 * S)
    assert join_rows(engine) == [("a", "A")]


def test_a_table_that_was_emptied_had_its_first_rows() -> None:
    engine = declared()
    engine.ingest("readings", [["a", 1, 7 * S]])
    assert done(engine, "INSERT INTO places VALUES ('a', 'A')").message == "1 row inserted"
    assert done(engine, "DELETE FROM places").message == "1 row deleted as of 1970-01-01T00:00:07Z"
    assert (
        done(engine, "INSERT INTO places VALUES ('a', 'A')").message
        == "1 row inserted as of 1970-01-01T00:00:07Z"
    )


def test_first_rows_come_after_the_answers_that_were_given_without_them() -> None:
    engine = declared()
    engine.execute(f"CREATE QUERY q AS {JOIN}")
    engine.ingest("readings", [["a", 1, 7 * S]])
    engine.heartbeat("readings", 7 * S)
    assert done(engine, "INSERT INTO places VALUES ('a', 'A')").message.endswith(
        "as of 1970-01-01T00:00:07.000001Z"
    )
    engine.heartbeat("readings", 8 * S)
    assert join_rows(engine) == [("a", "A")]


@pytest.mark.parametrize(
    "change",
    ["INSERT INTO places VALUES ('z', 'Z')", "UPDATE places SET name = 'Z'", "DELETE FROM places"],
)
def test_later_changes_follow_the_streams_whose_queries_read_the_table(change: str) -> None:
    engine = declared()
    engine.execute("INSERT INTO places VALUES ('a', 'A')")
    engine.ingest("metrics", [[1, 9 * S]])
    engine.ingest("readings", [["a", 1, 7 * S]])
    engine.execute(
        f"CREATE QUERY q AS {JOIN}; CREATE QUERY other AS SELECT COUNT(*) FROM metrics [NOW]"
    )
    assert done(engine, change).message.endswith("as of 1970-01-01T00:00:07Z")
    engine.execute("DROP QUERY q")  # now no query reads it: any stream
    assert done(engine, "INSERT INTO places VALUES ('y', 'Y')").message.endswith(
        "as of 1970-01-01T00:00:09Z"
    )


def test_a_query_whose_streams_have_ended_does_not_hold_a_table_back() -> None:
    engine = declared()
    engine.execute(
        f"CREATE QUERY q AS {JOIN}; CREATE QUERY m AS SELECT v, name FROM metrics JOIN places ON "
        "p = 'a'"
    )
    engine.ingest("metrics", [[1, NEW]])
    engine.end("metrics")
    told = done(engine, "INSERT INTO places VALUES ('a', 'A')")
    assert (told.message, told.warnings) == (
        "1 row inserted",
        ("query m will not see this: its streams have ended",),
    )
    engine.ingest("readings", [["a", 1, OLD]])
    assert done(engine, "INSERT INTO places VALUES ('b', 'B')").message.endswith(
        "as of 2003-12-24T00:00:00Z"
    )


# ---------------------------------------------------------------- what nobody will see


def test_a_change_far_ahead_of_a_stream_is_noted() -> None:
    engine = declared()
    engine.execute(
        f"CREATE QUERY q AS {JOIN}; CREATE QUERY m AS SELECT v, name FROM metrics JOIN places ON "
        "p = 'a'"
    )
    assert done(engine, "INSERT INTO places VALUES ('a', 'A')").warnings == ()
    engine.ingest("metrics", [[1, NEW]])
    told = done(engine, "INSERT INTO places VALUES ('b', 'B')")
    assert told.message.endswith("as of 2013-12-21T00:00:00Z")
    assert told.warnings == (
        "query q will not see this before then: stream readings has had no rows yet",
    )
    engine.ingest("readings", [["a", 1, OLD]])
    (note,) = done(engine, "INSERT INTO places VALUES ('c', 'C')").warnings
    assert (
        note
        == "query q will not see this before then: stream readings has come to 2003-12-24T00:00:00Z"
    )
    engine.heartbeat("readings", NEW - S)  # that is near enough
    assert done(engine, "INSERT INTO places VALUES ('d', 'D')").warnings == ()
    assert done(engine, "DELETE FROM places WHERE p = 'none'").warnings == ()


def test_a_query_over_a_table_that_changed_later_is_told_so() -> None:
    engine = declared()
    engine.ingest("metrics", [[1, NEW]])
    engine.execute("INSERT INTO places VALUES ('a', 'A'); INSERT INTO places VALUES ('b', 'B')")
    (note,) = done(engine, f"CREATE QUERY q AS {JOIN}").warnings
    assert note == (
        "table places last changed at 2013-12-21T00:00:00Z, and earlier rows do not see that: "
        "stream readings has had no rows yet"
    )


def test_a_change_that_comes_when_all_has_ended_is_noted_with_at_too() -> None:
    engine = declared()
    engine.execute(f"CREATE QUERY q AS {JOIN}")
    engine.ingest("readings", [["a", 1, 7 * S]])
    engine.end("readings")
    for sql in (
        "INSERT INTO places VALUES ('a', 'A')",
        "INSERT INTO places VALUES ('b', 'B') AT 9 s",
    ):
        assert done(engine, sql).warnings == ("query q will not see this: its streams have ended",)


# ---------------------------------------------------------------- before there is any time, and
# after a restart


def lines(engine: Engine, name: str, start: int) -> list[tuple]:
    pushes = engine.subscribe(name, start).take()
    return [(p.kind, p.at, row) for p in pushes if p.data is not None for row in rows_of(p.data)]


def test_queries_over_tables_alone_are_answered_before_there_is_time_also_after_a_restart(
    tmp_path: Path,
) -> None:
    engine = Engine(str(tmp_path))
    engine.execute(
        "CREATE TABLE p (a STRING, b INT); CREATE STREAM s (a STRING, t TIMESTAMP) TIMESTAMP BY t"
    )
    engine.execute("CREATE QUERY v AS SELECT a, COUNT(*) AS n FROM p GROUP BY a")
    engine.execute(
        "CREATE QUERY u AS SELECT Rstream(a) FROM p UNION ALL SELECT a FROM s [RANGE 5 s]"
    )
    reader = engine.subscribe("v")
    reader.take()
    engine.execute("INSERT INTO p VALUES ('x', 1), ('x', 2)")
    assert [(p.kind, p.at, rows_of(p.data)) for p in reader.take()] == [
        ("insert", None, [("x", 2)])
    ]
    engine.saver.durable.commit()  # type: ignore[union-attr]
    for _ in range(2):  # out of the journal, then out of a checkpoint
        told = {name: lines(engine, name, 0) for name in "uv"}
        engine = _again(engine, tmp_path, checkpoint=len(told["v"]) > 1)
        assert {name: lines(engine, name, 0) for name in "uv"} == told
        (last,) = [row for kind, _, row in told["v"] if kind == "insert"][-1:]
        assert snapshot(engine.subscribe("v")) == [last]
        engine.execute("INSERT INTO p VALUES ('x', 3)")
        assert lines(engine, "v", len(told["v"])) == [
            ("delete", None, last),
            ("insert", None, ("x", last[1] + 1)),
        ]
        assert lines(engine, "u", len(told["u"])) == [("insert", None, ("x",))]
        for sql in ("SELECT * FROM v", "SELECT a, COUNT(*) FROM p GROUP BY a"):
            (rows,) = engine.execute(sql)
            assert rows_of(rows.data) == [("x", last[1] + 1)]  # type: ignore[union-attr]
    engine.ingest("s", [["y", 5 * S]])
    engine.heartbeat("s", 5 * S)
    assert sorted(snapshot(engine.subscribe("u"))) == [("x",)] * 4 + [("y",)]
    engine.close()


def _again(engine: Engine, data: Path, checkpoint: bool) -> Engine:
    """What a process that is killed, or stopped, finds when it comes back."""
    assert engine.saver is not None
    if checkpoint:
        engine.close()
    else:
        engine.saver.durable.close()
        engine.saver.catalog.close()
    return Engine(str(data))


def test_the_date_of_a_change_is_not_decided_anew_after_a_restart(tmp_path: Path) -> None:
    engine = declared(tmp_path)
    engine.ingest("metrics", [[1, NEW]])
    engine.execute("INSERT INTO places VALUES ('a', 'A')")
    engine.ingest("readings", [["a", 1, OLD]])
    engine.execute("INSERT INTO places VALUES ('b', 'B')")
    engine.execute(f"CREATE QUERY q AS {JOIN}")
    engine = _again(engine, tmp_path, checkpoint=False)
    table = engine.runtime.tables["places"]
    assert table.versions().ts.tolist()[1] == NEW and table.last_change == NEW
    assert table.versions(OLD).ts.tolist() == [table.versions().ts.tolist()[0]]
    engine.close()


def test_a_read_of_an_answer_over_tables_alone_holds_now() -> None:
    """Beside a stream it is as of the stream's clock, not of the table's last change."""
    engine = declared()
    engine.execute(
        "CREATE QUERY v AS SELECT p, name FROM places; INSERT INTO places VALUES ('a', 'A') AT 1 s"
    )
    engine.ingest("readings", [["a", 1, 7_000 * S]])
    engine.heartbeat("readings", 7_000 * S)
    (rows,) = engine.execute("SELECT r.p, v.name FROM readings [RANGE 10 s] r JOIN v ON r.p = v.p")
    assert rows_of(rows.data) == [("a", "A")] and rows.as_of == 7_000 * S  # type: ignore[union-attr]


def test_one_time_queries_read_tables_that_changed_before_any_time() -> None:
    engine = declared()
    engine.execute(f"CREATE QUERY q AS {JOIN}; INSERT INTO places VALUES ('a', 'A')")
    (rows,) = engine.execute("SELECT name FROM places UNION ALL SELECT p FROM readings [RANGE 1 s]")
    assert rows_of(rows.data) == [("A",)] and rows.as_of is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "more",
    [
        "",
        "CREATE QUERY v AS SELECT p, name FROM places",
        f"CREATE QUERY v AS SELECT p, name FROM places; CREATE QUERY j AS {JOIN}",
    ],
)
def test_versions_that_ended_before_any_time_are_freed(more: str) -> None:
    engine = declared()
    engine.execute(f"INSERT INTO places VALUES ('a', '0'); {more}")
    for i in range(700):
        engine.execute(f"UPDATE places SET name = '{i}'")
    engine.execute("CREATE QUERY late AS SELECT name FROM places")
    table = engine.runtime.tables["places"]
    assert len(table.versions()) < 600
    engine.ingest("readings", [["a", 1, 7 * S]])
    engine.heartbeat("readings", 7 * S)
    engine.execute(f"CREATE QUERY after AS {JOIN}")
    for query in ("late", "after", *(["v"] if more else []), *(["j"] if " j " in more else [])):
        (rows,) = engine.execute(f"SELECT name FROM {query}")
        found = rows_of(rows.data)  # type: ignore[union-attr]
        assert found == [("699",)], query


@pytest.mark.parametrize("shared", [False, True])
def test_the_first_rows_of_a_table_are_behind_what_queries_that_share_a_join_have_answered(
    shared: bool,
) -> None:
    engine = Engine(settings=Settings(shared_parts=shared))
    engine.execute(DECLARED)
    join = "FROM readings [RANGE 1 h] r JOIN places p ON r.p = p.p"
    engine.execute(f"CREATE QUERY q AS {JOIN}")
    engine.execute(f"CREATE QUERY n AS SELECT name, COUNT(*) {join} GROUP BY name")
    engine.ingest("readings", [["a", 1, 5 * S]])
    engine.ingest("readings", [["a", 2, 7 * S]])
    with pytest.raises(UsageError, match=r"answers up to 1970-01-01T00:00:06\.999999Z") as error:
        engine.execute("INSERT INTO places VALUES ('a', 'A') AT 6 s")
    assert error.value.code == "DS523"
    told = done(engine, "INSERT INTO places VALUES ('a', 'A')").message
    assert told == "1 row inserted as of 1970-01-01T00:00:07Z"
    engine.heartbeat("readings", 8 * S)
    (asked,) = engine.execute(f"SELECT r.p, name {join}")
    assert join_rows(engine) == sorted(rows_of(asked.data))  # type: ignore[union-attr]
