"""dsms dump, dsms restore: what was declared in one server is declared in another."""

from __future__ import annotations

import contextlib
import io
import re
import tarfile
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.python_functions import Functions, host
from dsms.sql.types import FLOAT, STRING, decimal
from dsms_client import connect, literals
from dsms_client.cli import main
from tests.effort import examples, thinned
from tests.listed import LISTS
from tests.server.harness import Running

HERE = Path(__file__).parent.parent / "folders"
FOLDERS = sorted(HERE.glob("*.tar.xz"))
DECLARED = """
CREATE STREAM s (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 HOUR;
CREATE TABLE "T x" (k STRING PRIMARY KEY, n INT);
CREATE QUERY q AS SELECT s.k, COUNT(*) AS n FROM s [RANGE 1 MIN] GROUP BY s.k;
CREATE ROLE crew WITH (queries = 2); CREATE USER ann PASSWORD 'correct horse battery';
GRANT crew TO ann; GRANT SELECT ON s TO crew WHERE v > 1;
"""


def ran(server: Running, *words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command at that server."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*words, "--port", str(server.port)])
    return code, out.getvalue(), err.getvalue()


def told(engine: Engine, *statements: str) -> list[Any]:
    return [engine.execute(text)[-1].data.to_pylist() for text in statements]  # type: ignore[union-attr]


def moved(serve: Callable[..., Running], before: Engine, place: Path) -> tuple[Engine, str, str]:
    """A fresh engine in which the dump of another was run; the dump, and what restore said."""
    code, text, _ = ran(serve(before), "dump", "--tables")
    assert code == 0
    place.write_bytes(text.encode())
    after = Engine(str(place.parent / "moved"))
    code, said, complaints = ran(serve(after), "restore", str(place))
    assert code == 0, complaints
    assert all(line.startswith("NOTE: ") for line in complaints.splitlines())
    return after, text, said


def test_all_is_there_again(serve: Any, tmp_path: Path) -> None:
    before = Engine()
    before.execute(DECLARED)
    before.execute("INSERT INTO \"T x\" VALUES ('it''s\r\n;--', 1), ('', NULL)")
    after, text, said = moved(serve, before, tmp_path / "all.sql")
    assert "correct horse" not in text
    assert "-- Passwords and tokens can't be read back." in text
    assert re.fullmatch(
        r"user ann created; its token, which is shown this once: \S+\n"
        r"restored: 1 role, 1 user, 1 stream, 1 table, 1 query\n",
        said,
        re.DOTALL,
    ), said
    shown = ("SHOW CREATE ALL", "SHOW GRANTS", 'SELECT * FROM "T x"', 'DESCRIBE "T x"')
    assert told(after, *shown) == told(before, *shown)


def test_without_tables_no_rows_are_there(serve: Any) -> None:
    before = Engine()
    before.execute(DECLARED + "INSERT INTO \"T x\" VALUES ('a', 1)")
    assert "INSERT" not in ran(serve(before), "dump")[1]


def test_one_that_fails_is_told_with_its_place(serve: Any, tmp_path: Path) -> None:
    place = tmp_path / "all.sql"
    place.write_text("-- a note\nCREATE TABLE t (a INT);\nCREATE TABLE t (a INT);\n")
    code, out, err = ran(serve(Engine()), "restore", str(place))
    assert (code, out) == (1, "")
    assert err.startswith("QueryError DS213 at line 3, column 14")
    assert err.endswith("1 of 2 statements ran before that\n")
    assert ran(serve(Engine()), "restore", str(tmp_path / "none.sql"))[0] == 2


@pytest.fixture
def functions() -> Iterator[None]:
    """The folder of functions in Python is named that some of the queries of older folders call."""
    host.name(Functions(str(HERE / "functions")))
    yield
    host.close()


@thinned(3)
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name.partition(".")[0])
@pytest.mark.usefixtures("functions")
def test_what_stands_in_older_folders_can_be_moved(
    serve: Any, tmp_path: Path, folder: Path
) -> None:
    with tarfile.open(folder) as tar:
        tar.extractall(tmp_path, filter="data")
    before = Engine(str(tmp_path / "stopped"))
    after, _, _ = moved(serve, before, tmp_path / "all.sql")
    made, said = (told(e, "SHOW CREATE ALL")[0] for e in (after, before))
    statements = {line["statement"] for line in said}
    assert {line["statement"] for line in made} == {s for s in statements if s[:2] != "--"}
    for line in told(before, "SHOW TABLES")[0]:
        rows = [
            told(e, f"SELECT * FROM {literals.name(line['table'])}")[0] for e in (before, after)
        ]
        assert sorted(map(str, rows[0])) == sorted(map(str, rows[1]))


VALUES = {
    "INT": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(),
    "DECIMAL(8,3)": st.decimals(-9999, 9999, places=3).map(lambda d: f"{d:.3f}"),
    "STRING": st.text(st.characters(exclude_categories=("Cs",)), max_size=8),
    "BYTES": st.binary(max_size=5),
    "BOOL": st.booleans(),
    "TIMESTAMP": st.integers(-62135596800000000, 253402300799999999),
    "INTERVAL": st.integers(-(2**61), 2**61),
    "LIST(STRING)": LISTS[STRING],
    "LIST(FLOAT)": LISTS[FLOAT],
    "LIST(DECIMAL(8,3))": LISTS[decimal(8, 3)],
}


@settings(max_examples=examples(120), deadline=None)
@given(st.tuples(*(st.none() | values for values in VALUES.values())))
def test_any_value_reads_back(values: tuple[Any, ...]) -> None:
    engine = Engine()
    columns = ", ".join(f"c{n} {sql}" for n, sql in enumerate(VALUES))
    engine.execute(f"CREATE TABLE t ({columns})")
    text = literals.row(values, tuple(VALUES))
    engine.execute(f"INSERT INTO t VALUES {text}")
    (found,) = told(engine, "SELECT * FROM t")[0]
    back = [f"{v:.3f}" if isinstance(v, Decimal) else v for v in found.values()]
    assert list(map(repr, back)) == list(map(repr, values))


KEPT = """
CREATE STREAM s (k INT, b BYTES, d DECIMAL(9,2), n INTERVAL, t INT, twice INT AS (k * 2))
    TIMESTAMP BY t UNIT ms SLACK 5 s RETAIN 1 HOUR;
CREATE STREAM "Empty ones" (k INT);
CREATE STREAM stamped (k INT);
CREATE STREAM keyed (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t KEY (k);
CREATE QUERY held AS SELECT SUM(v) AS v FROM keyed;
CREATE STREAM made AS SELECT Istream(k) FROM s [NOW];
CREATE TABLE t (k INT PRIMARY KEY, x STRING);
INSERT INTO t VALUES (1, 'one'), (2, 'two'); END STREAM stamped;
CREATE QUERY q AS SELECT k, COUNT(*) AS n, SUM(d) AS d FROM s [RANGE 1 MIN] GROUP BY k;
CREATE QUERY p AS SELECT twice, COUNT(*) AS n FROM s [RANGE 1 MIN SLIDE 10 s] GROUP BY twice;
CREATE QUERY last AS SELECT s.k, x FROM s [ROWS 3], t WHERE s.k = t.k;
COMMENT ON STREAM s IS 'it''s
the one'; COMMENT ON QUERY q IS 'counts'; COMMENT ON TABLE t IS '-- names';
"""
ASKED = ("SELECT * FROM s [RANGE UNBOUNDED]", "SELECT * FROM made [RANGE UNBOUNDED]",
         "SELECT * FROM q ORDER BY k", "SELECT * FROM p ORDER BY twice", "SELECT * FROM t",
         "SELECT * FROM last ORDER BY k, x", "SELECT * FROM stamped [RANGE UNBOUNDED]",
         "SELECT * FROM keyed ORDER BY k", "SELECT * FROM held",
         "SELECT k, FIRST(d) FROM s [RANGE 20 s] GROUP BY k ORDER BY k",
         "SHOW STREAMS WHERE stream IN ('s', 'stamped')")  # questions  # fmt: skip


def test_rows_of_windows_are_there_again(serve: Any, tmp_path: Path, monkeypatch: Any) -> None:
    before, folder = Engine(), tmp_path / "copy"
    before.execute(KEPT)
    rows = [(i % 3, b"x" * (i % 99), Decimal(i) / 4, i * 1000, 60_000 + i * 50 - i % 4 * 900)
            for i in range(1000)]  # rows  # fmt: skip
    before.ingest("s", rows)
    before.heartbeat("s", 112_000_000)
    before.ingest("keyed", [(1, 1, 0), (2, 2, 1), (1, 3, 10**9), (2, 0, 10**9, "d"), (3, 4, 10**9)])
    before.heartbeat("keyed", 10**10)
    server = serve(before, max_reply=20_000)
    code, _, complaints = ran(server, "dump", "--windows", str(folder), "--comments")
    assert code == 0, complaints
    text = (folder / "dump.sql").read_text()
    assert "COPY \"s\" FROM 'stream0.parquet';" in text and 'COPY "Empty ones"' not in text
    assert '-- stream "made": its rows come again from what its sources keep' in text
    assert ran(server, "dump", "--windows", str(folder))[0] == 2  # it is not empty
    after = Engine()
    code, said, complaints = ran(serve(after), "restore", str(folder / "dump.sql"))
    assert (code, said) == (0, "restored: 5 streams, 1 table, 4 queries, 1002 rows\n"), complaints
    assert told(after, *ASKED) == told(before, *ASKED)
    comments = ("SHOW QUERIES FULL WHERE comment IS NOT NULL", "SHOW TABLES")
    assert [[one["comment"] for one in lines] for lines in told(after, *comments)] == [
        ["counts"], ["-- names"],
    ]  # comments  # fmt: skip


def test_rows_that_wait_or_lack_are_told(serve: Any, tmp_path: Path) -> None:
    before, folder = Engine(), tmp_path / "copy"
    before.execute(KEPT)
    before.ingest("s", [(1, b"", Decimal(1), 0, at) for at in (60_000, 64_000)])
    assert ran(serve(before), "dump", "--windows", str(folder))[0] == 0
    place = folder / "dump.sql"
    assert '-- stream "s": 2 rows wait behind its clock' in place.read_text()
    place.write_text(place.read_text().replace("HEARTBEAT", "COPY s FROM 'none.parquet';HEARTBEAT"))
    code, _, complaints = ran(serve(Engine()), "restore", str(place))
    assert code == 1 and "DS530" in complaints


FED = """
CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 MIN;
CREATE TABLE w (k INT PRIMARY KEY, x STRING); INSERT INTO w VALUES (1, 'one'), (2, 'AS (');
CREATE STREAM "Counts of" TIMESTAMP BY at RETAIN 1 HOUR
    WITH (description = 'n, WITH AS', on_error = null) AS
    SELECT Istream(s.k, COUNT(*) AS n, 'AS (' AS what) FROM s [RANGE 20 s], w WHERE s.k = w.k
    GROUP BY s.k;
CREATE STREAM gone TIMESTAMP BY at AS SELECT Dstream(DISTINCT k) FROM s [RANGE 3 s];
CREATE STREAM notes (k INT, n INT, at INT) TIMESTAMP BY at UNIT ms RETAIN 2 HOURS;
CREATE QUERY note AS INSERT INTO notes (k, n) SELECT k, n FROM "Counts of" WHERE n > 1;
CREATE QUERY left_ AS INSERT INTO notes (k) SELECT Istream(g.k) FROM gone [RANGE 10 s] g,
    "Counts of" [RANGE 10 s] c WHERE g.k = c.k;
CREATE STREAM last AS SELECT Istream(k) FROM notes [RANGE 5 s];
CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM notes [RANGE 30 s] GROUP BY k;
CREATE QUERY p AS SELECT k, SUM(n) AS n FROM "Counts of" [RANGE 1 MIN SLIDE 5 s] GROUP BY k;
CREATE QUERY both AS SELECT s.k, c.n FROM s [RANGE 2 s], "Counts of" [RANGE 2 s] c WHERE s.k = c.k;
CREATE ROLE crew; GRANT SELECT ON "Counts of_feed" TO crew; GRANT SELECT ON q TO crew;
"""
FED_ASKED = (
    'SELECT k, n, what, at FROM "Counts of" [RANGE UNBOUNDED] ORDER BY at, k, n',
    "SELECT k, at FROM gone [RANGE UNBOUNDED] ORDER BY at, k",
    "SELECT k, n, at FROM notes [RANGE UNBOUNDED] ORDER BY at, k, n",
    "SELECT k, n FROM q ORDER BY k", "SELECT k, n FROM p ORDER BY k",
    "SELECT k, n FROM both ORDER BY k, n",
    "SELECT k, SUM(n) FROM notes [RANGE 25 s] GROUP BY k ORDER BY k",
    "SELECT k, COUNT(*) FROM last [RANGE 4 s] GROUP BY k ORDER BY k",
    "SHOW GRANTS",
)  # questions  # fmt: skip


@pytest.mark.parametrize("ended", [False, True])
def test_rows_of_a_chain_are_there_again(serve: Any, tmp_path: Path, ended: bool) -> None:
    """Older ones than their sources keep, too; and what comes then is answered alike."""
    before, after, folder = Engine(), Engine(), tmp_path / "copy"
    before.execute(FED)
    rows = [(i % 3, i % 7, i * 250_000) for i in range(1, 800) if i % 100 < 80]
    before.ingest("s", rows)
    before.heartbeat("s", 210_000_000)
    if ended:
        before.end("s")
    servers = [serve(before), serve(after)]
    code, _, complaints = ran(servers[0], "dump", "--windows", str(folder))
    assert code == 0, complaints
    text = (folder / "dump.sql").read_text()
    assert 'stream "last": its rows come again' in text  # which have no column of instants
    kept = [text.index(f'COPY "{name}"') for name in ("notes", "gone", "Counts of", "s")]
    assert kept[0] < min(kept[1:3]) and max(kept[:3]) < kept[3]
    code, _, complaints = ran(servers[1], "restore", str(folder / "dump.sql"))
    assert code == 0, complaints
    assert told(after, *FED_ASKED) == told(before, *FED_ASKED)
    if not ended:
        found = []
        for server in servers:
            with connect(port=server.port) as db:
                rows = [[i % 4, i % 5, 210_000_000 + i * 300_000] for i in range(1, 90)]
                db.ingest("s", rows)
                db.heartbeat("s", 240_000_000)
                found.append([db.query(text).rows for text in FED_ASKED])
        assert found[0] == found[1]


def test_rows_that_rest_on_times_of_arrival_come_again(serve: Any, tmp_path: Path) -> None:
    before = Engine()
    before.execute(
        "CREATE STREAM s (k INT);"
        "CREATE STREAM d TIMESTAMP BY at AS SELECT Istream(k) FROM s [NOW];"
        "CREATE STREAM e TIMESTAMP BY at AS SELECT Istream(k) FROM d [NOW]"
    )
    assert ran(serve(before), "dump", "--windows", str(tmp_path / "copy"))[0] == 0
    text = (tmp_path / "copy" / "dump.sql").read_text()
    assert text.count("its rows come again") == 2 and "INSERT INTO" not in text
