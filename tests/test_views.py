"""`FROM q` beside a slower stream: the answer of q as it was then, told as it went along; beyond
replaced queries, pauses, and clocks that were set back; and from which instant on it is known."""

from __future__ import annotations

from typing import Any

import pytest

from dsms.engine import Engine
from dsms.settings import Settings
from tests.effort import examples

S = 1_000_000
STREAMS = """
CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
CREATE STREAM p (x INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
"""
ROWS = [[1, 1, 1], [2, 2, 2], [1, 5, 3], [1, 5, 5], [3, 3, 6], [1, 0, 8], [4, 3, 9], [2, 9, 12]]
BODIES = {
    "groups": "SELECT k, MAX(v) AS v FROM s GROUP BY k",
    "windowed": "SELECT k, v FROM s [RANGE 3 s]",
    "distinct": "SELECT DISTINCT k, v FROM s [ROWS 2]",
    "every": "SELECT k, COUNT(*) AS v FROM s [RANGE 4 s] GROUP BY k EVERY 2 s",
    "slide": "SELECT k, MAX(v) AS v FROM s [RANGE 4 s SLIDE 2 s] GROUP BY k",
}
OTHERS = {
    "groups": "SELECT k, MIN(v) AS v FROM s GROUP BY k",
    "windowed": "SELECT k, v + 1 AS v FROM s [RANGE 2 s]",
    "distinct": "SELECT DISTINCT k, v FROM s [ROWS 3]",
    "every": "SELECT k, SUM(v) AS v FROM s [RANGE 2 s] GROUP BY k EVERY 2 s",
    "slide": "SELECT k, SUM(v) AS v FROM s [RANGE 4 s SLIDE 2 s] GROUP BY k",
}


class Played:
    """An engine whose query q goes along with s; what it showed at each second since then."""

    def __init__(self, body: str, log: int = 1000) -> None:
        self.engine = Engine(None, Settings(result_log_rows=log))
        self.engine.execute(f"{STREAMS} CREATE QUERY q AS {body}")
        self.engine.ingest("p", [[1, 0]])
        self.shown: dict[int, list[str]] = {}

    def go(self, first: int, last: int) -> None:
        """Rows of s up to that second, and what q shows then."""
        for second in range(first, last + 1):
            rows = [[k, v, t * S] for k, v, t in ROWS if t == second]
            self.engine.ingest("s", rows)
            self.engine.heartbeat("s", second * S)
            self.note(second)

    def note(self, second: int) -> None:
        self.shown[second] = self.read("SELECT k, v FROM q")[0]

    def read(self, text: str) -> tuple[list[str], Any]:
        (rows,) = self.engine.execute(text)
        found = rows.data.to_pylist()  # type: ignore[union-attr]
        return sorted(map(repr, found)), rows.since  # type: ignore[union-attr]

    def look_back(self, known: int) -> None:
        """From that second on it is seen as it was; before, it is said not to be known."""
        for second in range(1, max(self.shown) + 1):
            self.engine.heartbeat("p", second * S)
            found, since = self.read("SELECT k, v FROM q, p")
            if second >= known:
                assert (found, since) == (self.shown[second], None), second
            else:
                assert since is not None and (known - 1) * S < since <= known * S, second


@pytest.mark.parametrize("kind", BODIES)
def test_it_is_seen_as_it_was(kind: str) -> None:
    played = Played(BODIES[kind])
    played.go(1, 13)
    played.look_back(1)


@pytest.mark.parametrize("kind", BODIES)
def test_beyond_its_replacement(kind: str) -> None:
    played = Played(BODIES[kind])
    played.go(1, 7)
    played.engine.execute(f"CREATE OR REPLACE QUERY q AS {OTHERS[kind]}")
    if kind not in ("every", "slide"):  # whose answer is that of the last boundary
        played.note(7)
    played.go(8, 13)
    played.look_back(1)


@pytest.mark.parametrize("kind", ["groups", "windowed", "distinct"])
def test_beyond_a_pause(kind: str) -> None:
    """Meanwhile it has shown what it showed last."""
    played = Played(BODIES[kind])
    played.go(1, 5)
    played.engine.execute("PAUSE QUERY q")
    played.go(6, 8)
    played.engine.execute("RESUME QUERY q")
    played.note(8)
    played.go(9, 13)
    played.look_back(1)


@pytest.mark.parametrize("kind", BODIES)
def test_beyond_a_clock_that_was_set_back(kind: str) -> None:
    """What it told of instants that come again is not seen twice; those before are not known."""
    played = Played(BODIES[kind])
    played.go(1, 9)
    played.engine.heartbeat("s", 20 * S)
    played.engine.execute("ALTER STREAM s SET CLOCK TO TIMESTAMP '1970-01-01 00:00:11'")
    played.go(11, 20)
    played.look_back(11)


@pytest.mark.parametrize("log", range(1, examples(8) + 1))
def test_a_log_that_forgets_says_what_is_known(log: int) -> None:
    """As of the last instant that is forgotten, and no later."""
    for kind in ("groups", "windowed", "every"):
        played = Played(BODIES[kind], log)
        played.go(1, 13)
        query = played.engine.runtime.queries["q"]
        told, lost = query.log, query.log.forgotten
        assert (lost is None) == (told.chunks[0].seq == 0)
        known = 1 if lost is None else lost // S
        if kind == "every" and lost is not None:
            known += 2  # a boundary of which rows may be gone is not known
        played.look_back(known)


def test_what_is_known_begins_with_the_query_and_not_with_its_first_change() -> None:
    engine = Engine()
    engine.execute(STREAMS.replace(" RETAIN 1 h", ""))
    engine.ingest("p", [[1, S]])
    engine.heartbeat("p", 2 * S)
    engine.ingest("s", [[1, 1, S]])
    engine.heartbeat("s", 4 * S)
    engine.execute("CREATE QUERY q AS SELECT k, v FROM s [RANGE 1 s]")
    engine.ingest("s", [[2, 2, 9 * S]])
    engine.heartbeat("s", 9 * S)
    (rows,) = engine.execute("SELECT k FROM q, p")
    assert (rows.data.num_rows, rows.since) == (0, 4 * S)  # type: ignore[union-attr]
    engine.heartbeat("p", 5 * S)
    (rows,) = engine.execute("SELECT k FROM q, p WITH (complete = required)")
    assert (rows.data.num_rows, rows.since) == (0, None)  # type: ignore[union-attr]


def test_what_is_known_outlives_a_restart(tmp_path: Any) -> None:
    data = str(tmp_path / "data")
    engine = Engine(data, Settings(result_log_rows=3))
    engine.execute(f"{STREAMS} CREATE QUERY q AS {BODIES['groups']}")
    engine.ingest("p", [[1, 0]])
    for k, v, t in ROWS:
        engine.ingest("s", [[k, v, t * S]])
        engine.heartbeat("s", t * S)
    log = engine.runtime.queries["q"].log
    before = (log.known_from, log.forgotten, log.current)
    assert before[1] is not None
    engine.close()
    again = Engine(data, Settings(result_log_rows=3)).runtime.queries["q"].log
    assert (again.known_from, again.forgotten, again.current) == before


@pytest.mark.parametrize("log", [3, 1000])
def test_a_history_lacks_what_is_forgotten_and_no_more(log: int) -> None:
    played = Played(BODIES["groups"], log)
    played.go(1, 13)
    forgotten = played.engine.runtime.queries["q"].log.forgotten
    _, since = played.read("SELECT k, v FROM q [RANGE UNBOUNDED]")
    assert since == (None if forgotten is None else forgotten + 1)
