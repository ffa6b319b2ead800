"""Streams with KEY in the engine: what they hold stays, whoever comes late and whatever restarts;
whatever way rows come in; and what does not go with them says so."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.frames import Frame
from dsms.intake.convert import to_batch
from dsms.settings import Settings
from tests.answers_world import Play, answers, entries, graphs
from tests.derived_world import Definition
from tests.effort import examples
from tests.oracle import Row, ambiguous
from tests.test_answers_oracle import _chosen, _whole
from tests.test_derived_oracle import cut
from tests.ways import over_wire

S = 1_000_000
STREAMS = (
    "CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t KEY (k)",
    "CREATE STREAM r (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t KEY (k, v) SLACK 3 s RETAIN 1 h",
)
WINDOWS = ("", "", "[RANGE UNBOUNDED]", "[RANGE 3 s]", "[NOW]", "[RANGE 4 s UNTIL 1 s AGO]")
ACC = "CREATE STREAM acc (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t KEY (k)"


@st.composite
def changes(draw: st.DrawFn) -> list[tuple[str, list[Any]]]:
    """Rows as they come; those of r are late by up to 2 s of its SLACK."""
    made, now = [], 0
    for _ in range(draw(st.integers(1, 25))):
        now += draw(st.sampled_from([0, 0, 1, 1, 2, 5]))
        name = draw(st.sampled_from("ssr"))
        at = now - draw(st.integers(0, 2)) if name == "r" else now
        row = [draw(st.integers(0, 2)), draw(st.integers(-1, 2)), at * S]
        made.append((name, [*row, draw(st.sampled_from("UUD"))]))
    return made


def complete(rows: list[tuple[str, list[Any]]]) -> dict[str, list[Row]]:
    """The rows of each stream in the order of (timestamp, arrival)."""
    found = {}
    for name in "sr":
        own = sorted((tuple(r) for n, r in rows if n == name), key=lambda r: r[2])
        found[name] = [Row(r[2], n, r) for n, r in enumerate(own)]
    return found


@pytest.mark.parametrize("restarted", [False, True])
def test_who_comes_late_finds_all_that_is_held(restarted: bool) -> None:
    @settings(max_examples=examples(90 if restarted else 150), deadline=None)
    @given(graphs(3, False, WINDOWS), changes(), st.data(), st.integers(0, 12))
    def run(queries: list[str], rows: list, data: st.DataObject, longer: int) -> None:
        clock = max(row[2] for _, row in rows) + longer * S // 2
        model = Definition()
        for sql in (*STREAMS, *queries):
            model.declare(sql)
        want = model.told(complete(rows), clock)
        assume(not any(ambiguous(plan.child) for plan in model.readers.values()))
        events = list(cut(data, rows))
        late: dict[int, list[str]] = {}
        at = 0
        for sql in queries:
            at = data.draw(st.integers(at, len(events) - 1))
            late.setdefault(at, []).append(sql)
        restarts = {
            n: data.draw(st.sampled_from(["closed", "killed"]))
            for n in range(len(events))
            if restarted and data.draw(st.integers(0, 3)) == 0
        }
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) if restarted else None
            play = Play(STREAMS, place, restarts, late, _chosen(data))
            told = play.told(events, clock)
        for name, plan in model.readers.items():
            since, shown = play.since[name], answers if _whole(plan) else entries
            if plan.slide is not None:  # to others there is nothing before the first boundary
                if plan.kind == "rstream":
                    assert from_(told[name], since) == from_(want[name], since), name
                continue
            assert shown(told[name], since) == shown(want[name], since), name

    run()


def from_(told: list[tuple], since: int) -> list[tuple]:
    return [line for line in told if line[0] > since]


def holds(engine: Engine, sql: str = "SELECT k, v FROM acc ORDER BY k") -> list[tuple]:
    (rows,) = engine.execute(sql)
    return [tuple(r.values()) for r in rows.data.to_pylist()]  # type: ignore[union-attr]


def test_what_is_held_outlives_what_is_kept(tmp_path: Path) -> None:
    engine = Engine(str(tmp_path), Settings(retain_default=0, retain_default_rows=0))
    engine.execute(f"{ACC} RETAIN 1 s; CREATE TABLE r (k INT PRIMARY KEY, w INT)")
    engine.execute("INSERT INTO r VALUES (1, 100) AT '1970-01-01'")
    engine.ingest("acc", [[1, 10, 0], [2, 20, 0]])
    engine.ingest("acc", [[9, 1, 3600 * S], [9, 1, 3601 * S, "D"]])
    engine.heartbeat("acc", 4000 * S)
    for _ in range(2):
        assert holds(engine) == [(1, 10), (2, 20)]
        assert holds(engine, "SELECT k FROM acc [RANGE 1 h]") == []
        (done,) = engine.execute(
            "CREATE OR REPLACE QUERY q AS SELECT acc.k, r.w FROM acc LEFT JOIN r ON acc.k = r.k"
        )
        assert "partial" not in str(done)
        assert holds(engine, "SELECT * FROM q ORDER BY k") == [(1, 100), (2, None)]
        # over one in which nothing is shared, and one with boundaries
        for name, more in (("n", "WITH (strategy = nt)"), ("e", "EVERY 10 s")):
            engine.execute(f"CREATE OR REPLACE QUERY {name} AS SELECT SUM(v) AS v FROM acc {more}")
        engine.heartbeat("acc", engine.runtime.inputs["acc"].completed + 20 * S)
        assert holds(engine, "SELECT * FROM n") == holds(engine, "SELECT * FROM e") == [(30,)]
        engine.close()
        engine = Engine(str(tmp_path))
    engine.ingest("acc", [[1, 0, 8000 * S, "D"]])
    engine.heartbeat("acc", 9000 * S)
    assert holds(engine) == [(2, 20)]
    assert holds(engine, "SELECT * FROM q") == [(2, None)]
    engine.close()


def test_state_is_of_the_keys_that_are_there() -> None:
    engine = Engine()
    engine.execute(ACC)
    n = 5000
    for part in range(6):
        keys = pa.array(range(part * n, part * n + n))
        for said, at in (("c", 2 * part), ("d", 2 * part + 1)):
            t = pa.array([at * S] * n)
            engine.ingest("acc", pa.table({"k": keys, "v": keys, "t": t, "_op": [said] * n}))
    engine.heartbeat("acc", 100 * S)
    own = engine.runtime.queries["acc_current"]
    assert not holds(engine)
    assert own.nbytes() < 40 * n * 4


def test_all_ways_in_do_the_same() -> None:
    lists: list[list[Any]] = [[1, 10, S], [2, 20, S], [1, 11, 2 * S, "u"], [2, None, 2 * S, "-"]]
    lists += [[3, 5, 3 * S, "x"], [None, 5, 3 * S, "I"], [4, 1, 3 * S, "r"]]
    dicts = [dict(zip(("k", "v", "t", "_OP"), row, strict=False)) for row in lists]
    full = [[*row, "I"][:4] for row in lists]
    columns = {n: [row[i] for row in full] for i, n in enumerate(("k", "v", "t", "_op"))}
    told = []
    for form in (lists, dicts, columns, pa.table(columns), "wire", "group"):
        engine = Engine()
        engine.execute(ACC)
        given = engine.runtime.inputs["acc"].definition.given
        if form == "wire":
            form = over_wire(lists, given)
        if form == "group":
            frames = [Frame(to_batch([row], given)) for row in lists]
            reports: list[Any] = engine.ingest_group("acc", frames)
            refused = sum(r.refused for r in reports)
        else:
            refused = engine.ingest("acc", form).refused
        engine.heartbeat("acc", 9 * S)
        told.append((holds(engine), refused))
    assert told == [([(1, 11), (4, 1)], 2)] * 6


def test_queries_feed_it_and_late_rows_leave_it() -> None:
    engine = Engine()
    engine.execute(
        """
        CREATE STREAM src (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t;
        CREATE STREAM acc (k INT, n INT, at TIMESTAMP) TIMESTAMP BY at KEY (k);
        CREATE QUERY gone AS INSERT INTO acc (k, _op)
            SELECT Dstream(DISTINCT k, 'd') FROM src [RANGE 3 s];
        CREATE QUERY come AS INSERT INTO acc
            SELECT Istream(k, COUNT(*)) FROM src [RANGE 3 s] GROUP BY k;
        CREATE STREAM late (k INT, v INT, t TIMESTAMP, op STRING);
        CREATE STREAM b (k INT, v INT AS (k * 2), t TIMESTAMP)
            TIMESTAMP BY t KEY (v) LATE INTO late;
        CREATE QUERY l AS SELECT Rstream(k, v, op) FROM late [RANGE UNBOUNDED];
        """
    )
    engine.advance(0)
    engine.ingest("src", [[1, 0, 0], [2, 0, 1 * S], [1, 0, 2 * S]])
    engine.heartbeat("src", 2 * S)
    assert holds(engine, "SELECT k, n FROM acc ORDER BY k") == [(1, 2), (2, 1)]
    engine.heartbeat("src", 4 * S)
    assert holds(engine, "SELECT k, n FROM acc ORDER BY k") == [(1, 1)]
    engine.ingest("b", [[1, 5 * S], [1, 6 * S], [2, 1 * S, "d"]])
    engine.heartbeat("b", 7 * S)
    engine.advance(10)
    assert holds(engine, "SELECT k, v, t FROM b") == [(1, 2, 6 * S)]
    assert holds(engine, "SELECT * FROM l") == [(2, 4, "D")]


def test_rights_are_decided_on_what_is_held() -> None:
    engine = Engine()
    engine.execute(ACC)
    engine.execute("CREATE USER bob PASSWORD 'b0b-b0b-b0b'; GRANT CREATE ON ALL TO bob")
    engine.execute("GRANT SELECT (k, v) ON acc TO bob WHERE v < 10")
    engine.execute("CREATE QUERY q AS SELECT * FROM acc", user="bob")
    engine.ingest("acc", [[1, 1, 0], [2, 2, 0], [1, 50, S]])
    engine.heartbeat("acc", 2 * S)
    for sql in ("SELECT * FROM acc", "SELECT * FROM acc [RANGE 1 h]", "SELECT * FROM q"):
        (rows,) = engine.execute(sql, user="bob")
        assert rows.data.to_pylist() == [{"k": 2, "v": 2}], sql  # type: ignore[union-attr]
    with pytest.raises(DsmsError, match=r"DS670|DS203"):
        engine.execute("SELECT * FROM acc_current", user="bob")


def test_what_is_ahead_is_seen_as_it_was() -> None:
    engine = Engine(None, Settings(result_log_rows=6))
    engine.execute(f"{ACC}; CREATE STREAM p (k INT, x INT, t TIMESTAMP) TIMESTAMP BY t")
    both = "SELECT acc.k, p.x FROM acc JOIN p ON p.k = acc.k"
    engine.execute(f"CREATE QUERY q AS {both}")
    engine.ingest("acc", [[1, 1, S], [2, 1, 2 * S]])
    engine.ingest("p", [[1, 1, S], [2, 2, 3 * S]])
    engine.ingest("acc", [[1, None, 5 * S, "D"], [3, 1, 9 * S]])
    assert holds(engine, both) == holds(engine, "SELECT * FROM q") == [(1, 1)]
    # the log forgets: what is still there since then is known, the rest is said to be missing
    for at in range(10, 20):
        engine.ingest("acc", [[4, at, at * S]])
    engine.heartbeat("p", 4 * S)
    (rows,) = engine.execute(both)
    assert rows.data.to_pylist() == [{"k": 2, "x": 2}]  # type: ignore[union-attr]
    assert rows.as_of == 4 * S and rows.since > 9 * S  # type: ignore[union-attr, operator]
    with pytest.raises(DsmsError, match=r"DS407.*stream acc holds"):
        engine.execute(f"{both} WITH (complete = required)")
    engine.heartbeat("p", rows.since)  # type: ignore[union-attr]
    (rows,) = engine.execute(f"{both} WITH (complete = required)")
    assert rows.since is None  # type: ignore[union-attr]
    assert holds(engine, both) == holds(engine, "SELECT * FROM q") == [(2, 2)]


def test_answers_that_are_ahead_are_those_of_then() -> None:
    engine = Engine()
    engine.execute(
        f"""
        {STREAMS[0].replace(" KEY (k)", "")};
        CREATE STREAM p (x INT, t TIMESTAMP) TIMESTAMP BY t;
        CREATE TABLE w (k INT PRIMARY KEY);
        CREATE QUERY e AS SELECT k, COUNT(*) AS n FROM s [RANGE 10 s] GROUP BY k EVERY 5 s;
        CREATE QUERY c AS SELECT k FROM s [ROWS 2 SLIDE 2];
        CREATE QUERY g AS SELECT k, MAX(v) AS v FROM s GROUP BY k;
        CREATE QUERY tq AS SELECT k FROM w;
        INSERT INTO w VALUES (1) AT '1970-01-01 00:00:09';
        INSERT INTO w VALUES (2) AT '1970-01-01 00:00:20';
        """
    )
    engine.ingest("p", [[1, 7 * S]])
    engine.heartbeat("p", 12 * S)
    for first, end in ((1, 28), (28, 31)):
        engine.ingest("s", [[n % 3, n, n * S] for n in range(first, end)])
    engine.heartbeat("s", 30 * S)
    assert holds(engine, "SELECT k, n FROM e, p ORDER BY k") == [(0, 3), (1, 3), (2, 3)]
    assert holds(engine, "SELECT k, v FROM g, p ORDER BY k") == [(0, 12), (1, 10), (2, 11)]
    assert holds(engine, "SELECT k FROM tq, p") == holds(engine, "SELECT k FROM w, p") == [(1,)]
    (rows,) = engine.execute("SELECT k FROM c, p")  # its boundaries count rows
    assert (rows.data.num_rows, rows.since) == (0, 30 * S)  # type: ignore[union-attr]
    engine.execute("ALTER QUERY g SET (result_log = 3)")
    with pytest.raises(DsmsError, match=r"DS407.*query g shows"):
        engine.execute("SELECT k FROM g, p WITH (complete = required)")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DROP QUERY acc_current", "DS405.*keeps what stream acc holds"),
        ("PAUSE QUERY acc_current", "DS431"),
        ("ALTER QUERY acc_current RENAME TO x", "DS433"),
        ("CREATE OR REPLACE QUERY acc_current AS SELECT k FROM acc", "DS438"),
        ("ALTER STREAM acc ADD COLUMN w INT", "DS235.*KEY"),
        ("ALTER STREAM acc RENAME TO x", "DS433.*called after it"),
        ("ALTER STREAM acc RENAME COLUMN v TO x", "DS439.*keeps what it holds"),
        ("ALTER STREAM acc SET CLOCK TO TIMESTAMP '1970-01-01'", "DS417.*KEY"),
        ("ALTER STREAM acc SET CLOCK TO TIMESTAMP '2970-01-01'", "DS417.*KEY"),
        ("ALTER STREAM acc SET CLOCK TO NOW", "DS417.*KEY"),  # though the time is not known
        ("SELECT * FROM ARCHIVE acc", "DS390"),
        ("SELECT _op FROM acc", "DS201"),
        ("GRANT SELECT ON acc TO u WHERE _op = 'U'", "DS201"),
        ("DROP STREAM acc", "DS405.*read by q"),
        (f"{ACC.replace('acc', 'taken')}", "DS213"),
        ("CREATE QUERY f AS INSERT INTO acc (k, _op) SELECT k, v FROM acc", "DS330|DS218"),
    ],
)
def test_what_does_not_go_with_it(sql: str, said: str) -> None:
    engine = Engine()
    engine.execute(f"{ACC}; CREATE QUERY q AS SELECT k FROM acc")
    engine.execute("CREATE QUERY taken_current AS SELECT k FROM acc")
    engine.execute("CREATE USER u PASSWORD 'u-u-u-u-u-u'")
    engine.ingest("acc", [[1, 1, 0]])
    engine.heartbeat("acc", S)
    with pytest.raises(DsmsError, match=said):
        engine.execute(sql)


def test_it_is_shown_and_goes_as_one() -> None:
    engine = Engine()
    engine.execute(f"{ACC} SLACK 1 s")
    engine.execute("CREATE QUERY q AS SELECT k FROM acc")
    engine.ingest("acc", [[5, 0, 0, "d"]])
    engine.heartbeat("acc", S)
    (shown,) = engine.execute("SHOW STREAMS")
    (line,) = shown.data.to_pylist()  # type: ignore[union-attr]
    assert (line["key"], line["unmatched"]) == ("k", 1)
    made = holds(engine, "SHOW CREATE ALL")
    assert [text for _, _, text in made] == [
        "CREATE STREAM acc (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t KEY (k) SLACK 1 s",
        "CREATE QUERY q AS SELECT k FROM acc",
    ]
    again = Engine()
    for _, _, text in made:
        again.execute(text)
    assert holds(again, "SHOW CREATE ALL") == made
    (note,) = again.execute(ACC.replace("STREAM acc", "STREAM IF NOT EXISTS acc"))
    assert "SLACK" in str(note) and "KEY" not in str(note)
    (note,) = again.execute(
        "CREATE STREAM IF NOT EXISTS acc (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t SLACK 1 s"
    )
    assert "KEY" in str(note)
    again.execute("DROP STREAM acc CASCADE")
    assert not again.runtime.queries and not again.runtime.catalog.queries
    again.execute(ACC)
