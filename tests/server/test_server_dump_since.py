"""dsms dump --windows, dsms restore: answers that lack rows say so where they have been moved to,
as they did before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dsms.engine import Engine
from dsms.errors import UsageError
from dsms.settings import Settings
from dsms_client import connect
from tests.server.harness import Running
from tests.server.test_server_dump import ran

S = 1_000_000
DECLARED = """
CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t MAX FUTURE 5 s;
CREATE STREAM r (k INT, t INT) TIMESTAMP BY t UNIT s SLACK 1 s MAX FUTURE 1 h RETAIN 10 s;
CREATE STREAM "St" (k INT);
CREATE STREAM keyed (k INT, t TIMESTAMP) TIMESTAMP BY t KEY (k);
CREATE STREAM none (k INT, t TIMESTAMP) TIMESTAMP BY t;
CREATE STREAM d TIMESTAMP BY at AS SELECT Istream(k) FROM s [NOW];
CREATE STREAM e AS SELECT Istream(k) FROM s [NOW];
CREATE STREAM f AS SELECT Istream(k) FROM "St" [NOW];
CREATE STREAM g TIMESTAMP BY at RETAIN 1 h AS SELECT Istream(k) FROM r [NOW];
CREATE STREAM h AS SELECT Istream(k) FROM g [NOW];
CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE 3 s];
"""
ASKED = [
    f"SELECT COUNT(*) AS n, MIN(k) AS k FROM {stream} [{window}]"
    for stream in ("s", "r", "keyed", "none", "d", "e", "g", "h")
    for window in ("RANGE 2 s", "RANGE 9 s", "RANGE 20 s", "RANGE UNBOUNDED", "SINCE 1 min",
                   "ROWS 1", "ROWS 30")
    if stream != "keyed" or not window.startswith("ROWS")
]  # questions  # fmt: skip


def filled() -> Engine:
    """Streams that have let go of rows, one over a gap that a heartbeat closed."""
    engine = Engine(settings=Settings(retain_default=10 * S, retain_default_rows=0))
    engine.execute(DECLARED)
    engine.advance(50 * S)
    for n in range(0, 56, 2):
        engine.ingest("s", [(n % 4, n * S)])
        engine.ingest("r", [(n % 4, n)])
        engine.ingest("keyed", [(n % 4 + n // 3 % 2, n * S)])
        engine.advance(50 * S + n * S)
        engine.ingest("St", [(n,)])
    for stream in ("s", "keyed"):
        engine.heartbeat(stream, 62 * S)
    engine.ingest("s", [(7, 64 * S)])
    for stream in ("s", "keyed"):
        engine.heartbeat(stream, 66 * S)
    engine.heartbeat("r", 60 * S)
    return engine


def restored(serve: Any, before: Running, folder: Path) -> tuple[Running, str]:
    """Another server with what the first one keeps, and the dump."""
    code, _, complaints = ran(before, "dump", "--windows", str(folder))
    assert code == 0, complaints
    after = serve(Engine(settings=before.engine.runtime.settings))
    code, _, complaints = ran(after, "restore", str(folder / "dump.sql"))
    assert code == 0, complaints
    return after, (folder / "dump.sql").read_text()


def asked(server: Running, *questions: str) -> list[Any]:
    with connect(port=server.port) as db:
        answers = [db.query(sql) for sql in questions]
    return [(one.rows, one.as_of, one.since) for one in answers]


def partial(server: Running) -> list[Any]:
    """What is said of queries that are registered now."""
    with connect(port=server.port) as db:
        for number, sql in enumerate(ASKED):
            db.execute(f"CREATE QUERY p{number} AS {sql}")
        answer = db.query("SHOW QUERIES FULL WHERE query LIKE 'p%'")
    names = [answer.columns.index(name) for name in ("query", "partial_until", "partial")]
    return [[row[n] for n in names] for row in answer.rows]


def test_answers_lack_the_same_rows(serve: Any, tmp_path: Path) -> None:
    before = serve(filled())
    after, text = restored(serve, before, tmp_path / "copy")
    said = asked(before, *ASKED)
    assert asked(after, *ASKED) == said
    assert any(since is not None for *_, since in said)
    again, same = restored(serve, after, tmp_path / "again")
    assert same == text and asked(again, *ASKED) == said
    assert partial(after) == partial(before)


def test_the_dump_says_since_when(serve: Any, tmp_path: Path) -> None:
    _, text = restored(serve, serve(filled()), tmp_path / "copy")
    lines = [line for line in text.splitlines() if "SET SINCE" in line]
    at = "TIMESTAMP '1970-01-01 00:00:54.000001'"
    assert lines == [
        f'ALTER STREAM "s" SET SINCE TO {at};',
        "ALTER STREAM \"r\" SET SINCE TO TIMESTAMP '1970-01-01 00:00:50.000001';",
        'ALTER STREAM "St" SET SINCE TO NOW;',  # its rows are stamped anew
        "ALTER STREAM \"keyed\" SET SINCE TO TIMESTAMP '1970-01-01 00:01:06.000001';",  # its clock
        f'ALTER STREAM "d" SET SINCE TO {at};',
        f'ALTER STREAM "e" SET SINCE TO {at};',  # its rows come again
        'ALTER STREAM "f" SET SINCE TO NOW;',
        "ALTER STREAM \"h\" SET SINCE TO TIMESTAMP '1970-01-01 00:00:50.000001';",
    ]
    assert text.index("SET SINCE TO NOW") < text.index("CREATE QUERY q")


def test_restore_tells_what_is_still_partial(serve: Any, tmp_path: Path) -> None:
    """And not what was over before the dump."""
    engine = filled()
    engine.execute(
        "CREATE QUERY long AS SELECT COUNT(*) AS n FROM s [RANGE 20 s];"
        "CREATE QUERY short AS SELECT COUNT(*) AS n FROM s [RANGE 9 s]"
    )
    folder, after = tmp_path / "copy", serve(Engine(settings=engine.runtime.settings))
    after.engine.execute("CREATE STREAM mine (k INT)")
    assert ran(serve(engine), "dump", "--windows", str(folder))[0] == 0
    code, _, complaints = ran(after, "restore", str(folder / "dump.sql"))
    assert code == 0
    assert [line for line in complaints.splitlines() if "partial" in line] == [
        "NOTE: query long: answers are partial until 1970-01-01T00:01:14Z"
    ]
    with connect(port=after.port) as db:
        found = db.query("SHOW QUERIES FULL")
        names = [found.columns.index(name) for name in ("query", "partial_until", "partial")]
        shown = {row[names[0]]: [row[n] for n in names[1:]] for row in found.rows}
    assert shown["q"] == shown["short"] == [None, None]
    assert shown["long"] == [74 * S, "until 1970-01-01T00:01:14Z"]


def test_what_must_be_complete_is_refused_where_it_was(serve: Any, tmp_path: Path) -> None:
    after, _ = restored(serve, serve(filled()), tmp_path / "copy")
    with connect(port=after.port) as db:
        for stream in ("s", "r", '"St"', "d", "e", "f"):
            with pytest.raises(UsageError, match="DS407"):
                db.query(f"SELECT * FROM {stream} [RANGE 1 DAY] WITH (complete = required)")
        for source in ("keyed", "s [RANGE 1 s]", "none [RANGE UNBOUNDED]"):
            db.query(f"SELECT * FROM {source} WITH (complete = required)")


@pytest.mark.parametrize("slack", ["", " SLACK 2 s"])
def test_rows_further_apart_than_max_future_are_there_again(
    serve: Any, tmp_path: Path, slack: str
) -> None:
    """The clock came there by heartbeats."""
    before = serve(Engine())
    with connect(port=before.port) as db:
        db.execute(
            f"CREATE STREAM s (at INT, t TIMESTAMP) TIMESTAMP BY t{slack} MAX FUTURE 1 h RETAIN "
            "1 DAY WITH (description = 'MAX FUTURE 9 DAYS')"
        )
        for hours in (0, 3, 3.5, 9):
            for early in range(0, int(hours * 60), 30):
                db.heartbeat("s", early * 60 * S)
            at = int(hours * 3600) * S
            db.ingest("s", [[n, at + n * S] for n in (0, 1, 1, 2)])
        db.heartbeat("s", 10 * 3600 * S - 1)
    after, text = restored(serve, before, tmp_path / "copy")
    assert text.count("COPY") == text.count("HEARTBEAT") == 3
    questions = ("SELECT * FROM s [RANGE UNBOUNDED]", "SHOW STREAMS")
    assert asked(after, *questions) == asked(before, *questions)


def test_rows_of_a_stream_that_sheds_come_back(serve: Any, tmp_path: Path) -> None:
    """Without their weights, and the dump says so."""
    before = serve(Engine())
    with connect(port=before.port) as db:
        db.execute(
            "CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h WITH (shed = random)"
        )
        db.ingest("s", [[1, 0], [2, S]])
        db.heartbeat("s", S)
    after, text = restored(serve, before, tmp_path / "copy")
    assert "of rows that were left out it knows no more" in text
    assert asked(after, "SELECT k, shed_weight FROM s")[0][0] == [(1, 1.0), (2, 1.0)]


def test_promises_are_made_anew_by_who_knows(serve: Any, tmp_path: Path) -> None:
    """They are of what follows where they were made: the dump says that there were some."""
    engine = Engine()
    engine.execute(
        "CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;"
        "CREATE STREAM r (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h"
    )
    engine.ingest("s", [(1, S)])
    engine.execute("PUNCTUATE s WHERE k IN (1, 2)")
    assert engine.ingest("s", [(1, 2 * S), (3, 2 * S)]).late == 1
    after, text = restored(serve, serve(engine), tmp_path / "copy")
    notes = [line for line in text.splitlines() if "promised" in line]
    assert [note[:32] for note in notes] == ['-- stream "s": of 2 combinations']
    assert "PUNCTUATE s" not in text
    with connect(port=after.port) as db:
        found = db.query("SHOW STREAMS")
        at = found.columns.index("promised")
        assert [row[at] for row in found.rows] == [0, 0]
    assert after.engine.ingest("s", [(1, 3 * S)]).late == 0
