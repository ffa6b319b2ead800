"""What is read of a query that began without rows of its windows says so, as a SELECT over the
stream does: FROM q, joined or not, LOOKUP; and is refused where it must be complete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dsms.engine import Engine
from dsms.errors import UsageError

S = 1_000_000
MADE = """
CREATE STREAM s (k INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 20 s;
CREATE TABLE z (n INT);
CREATE TABLE one (x INT);
INSERT INTO one VALUES (1);
"""
COUNT = "SELECT COUNT(*) AS n FROM s"


@pytest.fixture
def engine() -> Engine:
    made = Engine()
    made.execute(MADE)
    feed(made, 0, 60)
    return made


def feed(engine: Engine, first: int, end: int) -> None:
    engine.ingest("s", [[1, t * S] for t in range(first, end)])


def read(engine: Engine, text: str) -> tuple[Any, int | None]:
    (rows,) = engine.execute(text)
    return rows.data.column(0).to_pylist(), rows.since  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "window", ["RANGE 40 s", "RANGE 40 s SLIDE 5 s", "RANGE UNBOUNDED", "ROWS 30"]
)
def test_an_answer_that_lacks_rows_says_so_as_the_window_over_the_stream_does(
    engine: Engine, window: str
) -> None:
    (done,) = engine.execute(f"CREATE QUERY b AS {COUNT} [{window}]")
    assert "answers are partial" in str(done)
    feed(engine, 60, 61)
    _, since = read(engine, f"{COUNT} [{window}]")
    assert since is not None
    for text in ("SELECT n FROM b", "SELECT n FROM b, one"):
        found = read(engine, text)[1]
        assert found is not None and found <= since
        with pytest.raises(UsageError) as refused:
            engine.execute(f"{text} WITH (complete = required)")
        assert refused.value.code == "DS407" and "query b lacks rows" in str(refused.value)
    with pytest.raises(UsageError):
        engine.execute("INSERT INTO z SELECT n FROM b")
    assert read(engine, "SELECT n FROM z")[0] == []


def test_which_rows_were_gone_stays_known_until_windows_have_let_go_of_them(
    engine: Engine,
) -> None:
    engine.execute(f"CREATE QUERY b AS {COUNT} [RANGE 40 s]")
    engine.execute(f"CREATE QUERY lk AS {COUNT} [RANGE 40 s] ON LOOKUP")
    reached = 60
    for end, n, since in ((60, 20, 38 * S + 1), (79, 39, 38 * S + 1), (80, 40, None)):
        feed(engine, reached, end)
        reached = end
        assert read(engine, "SELECT n FROM b WHERE n > 0") == ([n], since)
        assert read(engine, "LOOKUP lk") == ([n], since)
    assert read(engine, "SELECT n FROM b WITH (complete = required)")[0] == [40]


@pytest.mark.parametrize(("window", "partial"), [("RANGE UNBOUNDED", True), ("ROWS 30", False)])
def test_a_lookup_says_it_of_windows_without_a_length(
    engine: Engine, window: str, partial: bool
) -> None:
    engine.execute(f"CREATE QUERY lk AS {COUNT} [{window}] ON LOOKUP")
    assert read(engine, "LOOKUP lk") == ([20], 38 * S + 1)
    feed(engine, 60, 80)
    assert (read(engine, "LOOKUP lk")[1] is not None) == partial


@pytest.mark.parametrize("window", ["RANGE 40 s", "ROWS 30"])
def test_beside_a_slower_stream_it_is_the_answer_of_then_that_lacks_rows(
    engine: Engine, window: str
) -> None:
    engine.execute("CREATE STREAM p (x INT, t TIMESTAMP) TIMESTAMP BY t")
    engine.execute(f"CREATE QUERY b AS {COUNT} [{window}]")
    engine.ingest("p", [[1, 65 * S]])
    feed(engine, 60, 80)
    assert read(engine, "SELECT n FROM b")[1] is None
    assert read(engine, "SELECT b.n FROM b, p [NOW]")[1] is not None


def test_a_query_without_an_answer_yet_lacks_nothing(engine: Engine) -> None:
    engine.execute(f"CREATE QUERY b AS {COUNT} [RANGE 40 s SLIDE 1 min]")
    assert read(engine, "SELECT n FROM b") == ([], None)


def test_it_is_said_after_a_restart(tmp_path: Path) -> None:
    made = Engine(tmp_path)
    made.execute(MADE)
    feed(made, 0, 60)
    made.execute(f"CREATE QUERY b AS {COUNT} [RANGE 40 s]")
    made.close()
    again = Engine(tmp_path)
    assert read(again, "SELECT n FROM b") == ([20], 38 * S + 1)
    again.close()
