"""ALTER STREAM s SET SINCE: a stream is as if it had had earlier rows, and had let go of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from dsms import Engine
from dsms.errors import UsageError
from dsms.rights.needs import needs
from dsms.settings import Settings
from dsms.sql.parser import parse_one

S = 1_000_000
STREAM = "CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t{};"
SINCE = "ALTER STREAM s SET SINCE TO TIMESTAMP '1970-01-01 00:00:30.000001';"
WINDOWS = ("RANGE 5 s", "RANGE 20 s", "ROWS 3", "ROWS 20", "RANGE UNBOUNDED", "SINCE 20 s",
           "SINCE 40 s", "RANGE 20 s UNTIL 3 s AGO")  # windows  # fmt: skip
QUERIES = (
    *(f"SELECT COUNT(*) AS n FROM s [{window}]" for window in WINDOWS),
    "SELECT k FROM s WHERE k > 1",
    "SELECT Rstream(k) FROM s [RANGE 20 s]",
    "SELECT k, COUNT(*) AS n FROM s [RANGE 20 s SLIDE 4 s] GROUP BY k",
    "SELECT COUNT(*) AS n FROM s [RANGE 20 s SLIDE 4 s] a, s [RANGE 8 s SLIDE 4 s] b "
    "WHERE a.k = b.k",
    "SELECT COUNT(*) AS n FROM s [ROWS 20 SLIDE 4]",
    "SELECT MAX(k) AS n FROM s [RANGE 20 s] EVERY 4 s",
    "SELECT COUNT(*) AS n FROM (SELECT Istream(k) FROM s [RANGE 9 s]) x",
)


def engine_of(folder: Path | None = None) -> Engine:
    settings = Settings(retain_default=0, retain_default_rows=4)
    return Engine(None if folder is None else str(folder), settings=settings)


def told(engine: Engine, sql: str) -> list[dict[str, Any]]:
    return engine.execute(sql)[-1].data.to_pylist()  # type: ignore[union-attr]


def shown(engine: Engine) -> list[Any]:
    """All that tells of rows that are gone."""
    names = ("query", "partial", "partial_until", "result_rows", "live_rows")
    found: list[Any] = [[q[n] for n in names] for q in told(engine, "SHOW QUERIES FULL")]
    for window in WINDOWS:
        answer = engine.execute(f"SELECT COUNT(*) AS n FROM s [{window}]")[-1]
        found.append((window, answer.data.to_pylist(), answer.since, answer.as_of))  # type: ignore[union-attr]
    (stream,) = told(engine, "SHOW STREAMS")
    return [*found, *(stream[n] for n in ("since", "kept", "newest", "complete"))]


def registered(engine: Engine) -> list[Any]:
    return [engine.execute(f"CREATE QUERY q{n} AS {sql}")[-1] for n, sql in enumerate(QUERIES)]


def test_it_is_as_if_rows_had_come_and_left(tmp_path: Path) -> None:
    """Also after a stop, and where all that is done again out of the journal."""
    gone, said = engine_of(), engine_of(tmp_path / "data")
    gone.execute(STREAM.format(""))
    gone.ingest("s", [(1, 30 * S)])
    gone.heartbeat("s", 30 * S)
    gone.runtime.recents.begin_anew("s", gone.runtime.inputs["s"])  # as where memory is short
    said.execute(STREAM.format("") + SINCE)
    assert registered(said) == registered(gone)
    assert shown(said) == shown(gone)
    for step in range(31, 60):
        for engine in (gone, said):
            engine.ingest("s", [(step % 5, step * S)])
    assert shown(said) == shown(gone)
    said.sync()
    shutil.copytree(tmp_path / "data", tmp_path / "crashed")
    assert shown(engine_of(tmp_path / "crashed")) == shown(gone)
    said.close()
    assert shown(engine_of(tmp_path / "data")) == shown(gone)


@pytest.mark.parametrize("retain", ["", " SLACK 2 s RETAIN 1 min"])
def test_answers_say_since_when_they_are_complete(retain: str) -> None:
    engine = engine_of()
    engine.execute(STREAM.format(retain) + SINCE)
    empty = engine.execute("SELECT COUNT(*) FROM s [RANGE 1 s]")[-1]
    assert (empty.since, empty.as_of) == (30 * S + 1, 30 * S)  # type: ignore[union-attr]
    for n in range(31, 36):
        engine.ingest("s", [(n, n * S)])
    engine.heartbeat("s", 35 * S)
    for window, since in {"RANGE 4 s": None, "ROWS 2": None, "RANGE 6 s": 30 * S + 1}.items():
        answer = engine.execute(f"SELECT COUNT(*) FROM s [{window}]")[-1]
        if retain or since is not None:
            assert (answer.since is None) == (since is None)  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="DS407"):
        engine.execute("SELECT * FROM s [RANGE 6 s] WITH (complete = required)")


def test_rows_that_are_stamped_are_known_from_now_on() -> None:
    engine = engine_of()
    engine.execute("CREATE STREAM c (k INT)")
    with pytest.raises(UsageError, match="DS509"):
        engine.execute("ALTER STREAM c SET SINCE TO NOW")
    for instant in ("1970-01-01 00:00:30", "2040-01-01"):
        with pytest.raises(UsageError, match=r"DS333: .*no time is known yet"):
            engine.execute(f"ALTER STREAM c SET SINCE TO TIMESTAMP '{instant}'")
    engine.advance(100 * S)
    done = engine.execute(
        "ALTER STREAM c SET SINCE TO NOW; CREATE STREAM d AS SELECT Istream(k) FROM c [NOW];"
        "ALTER STREAM d SET SINCE TO NOW"
    )
    assert [d.message for d in done[::2]] == [  # type: ignore[union-attr]
        f"rows of stream {name} are known since 1970-01-01T00:01:40Z" for name in "cd"
    ]
    engine.ingest("c", [(1,), (2,)])
    engine.advance(101 * S)
    for stream in "cd":
        answer = engine.execute(f"SELECT k FROM {stream} [RANGE 1 h]")[-1]
        assert (answer.data.num_rows, answer.since) == (2, 100 * S)  # type: ignore[union-attr]


REFUSED = {
    STREAM.format("") + "END STREAM s": "has ended",
    STREAM.format("") + "HEARTBEAT s AT 40 s": "has rows already, or its clock has come",
    STREAM.format("") + SINCE: "has rows already",
    STREAM.format("") + "CREATE QUERY q AS SELECT k FROM s": "is read already: q",
    "CREATE STREAM s (k INT)": "that time has yet to be",
}


@pytest.mark.parametrize("declared", list(REFUSED))
def test_it_is_said_of_new_streams_alone(declared: str) -> None:
    engine = engine_of()
    engine.advance(1 * S)
    engine.execute(declared)
    with pytest.raises(UsageError, match=f"DS333: .*{REFUSED[declared]}"):
        engine.execute(SINCE)
    with pytest.raises(UsageError, match="DS401"):
        engine.execute("ALTER STREAM other SET SINCE TO NOW")


def test_rows_that_wait_are_rows() -> None:
    engine = engine_of()
    engine.execute(STREAM.format(" SLACK 1 h"))
    engine.ingest("s", [(1, 40 * S)])
    with pytest.raises(UsageError, match="DS333"):
        engine.execute(SINCE)


def test_who_owns_the_stream_may_say_it() -> None:
    for sql in (SINCE, "ALTER STREAM s SET SINCE TO NOW"):
        (need,) = needs(parse_one(sql))
        assert (str(need.right), need.object.text) == ("ADMIN", "s")  # type: ignore[union-attr]
