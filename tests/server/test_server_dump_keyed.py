"""dsms dump --windows, dsms restore of streams with KEY: what they held before does not come, and
windows UNTIL ... AGO say so until it does not matter any more."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from dsms.engine import Engine
from dsms_client import connect
from dsms_client.sync import Client
from tests.effort import effort
from tests.server.test_server_dump_since import restored

S = 1_000_000
DUMPED = 66  # seconds
DECLARED = "CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t KEY (k) RETAIN 1 h;"
WINDOWS = {  # and for how many seconds from the dump on they lack what was held
    "": 0,
    "[RANGE 9 s]": 0,
    "[RANGE UNBOUNDED UNTIL 5 s AGO]": 5,
    "[RANGE 20 s UNTIL 3 s AGO]": 3,
    "[SINCE 40 s UNTIL 4 s AGO]": 4,
    "[RANGE 8 s UNTIL 2 s AGO SLIDE 2 s]": 2,
}
QUERIES = {
    **{f"SELECT k, v FROM s {window}": until for window, until in WINDOWS.items()},
    "SELECT COUNT(*) AS n FROM (SELECT Istream(k, v) FROM s [RANGE UNBOUNDED UNTIL 2 s AGO]) "
    "[RANGE 4 s]": 6,
    "SELECT a.k, b.v FROM s a, s [RANGE UNBOUNDED UNTIL 6 s AGO] b WHERE a.k = b.k": 6,
}


def sent(engine: Any, first: int, stop: int) -> None:
    for n in range(first, stop):
        op = "D" if n % 7 == 3 else "U"
        engine.ingest("s", {"k": [n % 4], "v": [n], "t": [n * S], "_op": [op]})
    engine.heartbeat("s", (stop - 1) * S)


def filled() -> Engine:
    engine = Engine()
    engine.execute(DECLARED)
    sent(engine, 10, DUMPED + 1)
    return engine


def register(engine: Any) -> list[str]:
    """What is said of each."""
    done = [engine.execute(f"CREATE QUERY q{n} AS {sql}")[-1] for n, sql in enumerate(QUERIES)]
    return [str(one.warnings) for one in done]


def shown(engine: Any, sql: str) -> tuple[list[tuple[Any, ...]], int | None]:
    """Rows, in any order, and since when they are complete."""
    answer = engine.execute(sql)[-1]
    rows = (
        answer.rows if hasattr(answer, "rows") else map(tuple, map(dict.values, to_dicts(answer)))
    )
    return sorted(rows), answer.since


def to_dicts(answer: Any) -> list[dict[str, Any]]:
    return answer.data.to_pylist()  # type: ignore[no-any-return]


def partial(engine: Any) -> list[int | None]:
    asked = "SHOW QUERIES FULL WHERE query LIKE 'q%'"
    found = engine.execute(asked)[-1]
    columns = found.columns if hasattr(found, "columns") else found.data.schema.names
    at = [columns.index(name) for name in ("query", "partial_until")]
    until = {row[at[0]]: row[at[1]] for row in shown(engine, asked)[0]}
    return [until[f"q{n}"] for n in range(len(QUERIES))]


@pytest.mark.parametrize("registered", ["before", "after"])
def test_what_was_held_is_said_to_lack(serve: Any, tmp_path: Path, registered: str) -> None:
    """Of queries that are restored, and of those that begin afterwards."""
    whole, source = filled(), filled()
    for one in (whole, source) if registered == "before" else (whole,):
        register(one)
    assert partial(whole) == [None] * len(QUERIES)
    after, text = restored(serve, serve(source), tmp_path / "copy")
    assert "SET SINCE TO TIMESTAMP '1970-01-01 00:01:06.000001'" in text
    with connect(port=after.port) as db:
        if registered == "after":
            said = register(db)
            assert ["partial" in note for note in said] == [bool(u) for u in QUERIES.values()]
        wanted = [(DUMPED + until) * S if until else None for until in QUERIES.values()]
        assert partial(db) == wanted
        instants = range(DUMPED + 1, DUMPED + 12, 1 if effort() else 3)
        assert sum(compared(whole, db, now) for now in instants) > 9 * len(instants)


def compared(whole: Engine, moved: Client, now: int) -> int:
    """How many answers were found to lack nothing as of that instant, and to be right."""
    for one in (whole, moved):
        sent(one, now, now + 1)
    found = 0
    for n, (sql, until) in enumerate(QUERIES.items()):
        for asked in (sql, f"SELECT * FROM q{n}"):
            once = asked == sql and ("SLIDE" in sql or "Istream" in sql)
            once |= "SLIDE" in sql and now < DUMPED + until + 2  # whose boundary is behind that
            right, (there, since) = shown(whole, asked), shown(moved, asked)
            assert right[1] is None
            if not once:
                assert (since is None) == (now >= DUMPED + until), (now, asked)
            if since is None and not once:
                assert there == right[0], (now, asked)
                found += 1
    return found


def test_it_is_still_said_after_a_restart(tmp_path: Path) -> None:
    engine = Engine(str(tmp_path / "data"))
    engine.execute(DECLARED + "ALTER STREAM s SET SINCE TO '1970-01-01 00:01:00'")
    sent(engine, 10, 61)
    engine.sync()
    shutil.copytree(tmp_path / "data", tmp_path / "killed")
    engine.close()
    for folder in ("data", "killed"):
        again = Engine(str(tmp_path / folder))
        (stream,) = to_dicts(again.execute("SHOW STREAMS")[-1])
        assert stream["since"] == 60 * S
        assert shown(again, "SELECT k FROM s")[1] is None
        assert shown(again, "SELECT k FROM s [RANGE UNBOUNDED UNTIL 1 s AGO]")[1] == 59 * S + 1
        again.close()


def test_what_a_block_has_appended_rests_on_all_that_was_held() -> None:
    """In a one-time query, which does not know when rows entered."""
    engine = Engine()
    engine.execute(DECLARED + "ALTER STREAM s SET SINCE TO '1970-01-01 00:00:05'")
    sent(engine, 1, 20)
    asked = "SELECT COUNT(*) AS n FROM (SELECT Istream(k, v) FROM s [RANGE 9 s UNTIL 1 s AGO]) x"
    assert shown(engine, asked)[1] == 5 * S
