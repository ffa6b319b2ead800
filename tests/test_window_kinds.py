"""Windows whose rows say how long they stay, and those that choose among the rows of each key: what
random stories (`test_equivalence`) don't show."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dsms.api import Push
from dsms.engine import Engine
from dsms.operators.passing import unpiped
from dsms.operators.window_aged import AgedWindowOp
from dsms.operators.window_throttled import ThrottleOp
from dsms.periodic import silence
from dsms.running.part import placed
from dsms.sql.types import ALWAYS, FOREVER
from dsms.state.foretold import Foretold

S = 1_000_000
DDL = "CREATE STREAM s (k INT, ends TIMESTAMP, t TIMESTAMP) TIMESTAMP BY t"
YEAR_9999 = 253_402_300_799 * S


def engine(retain: str = "") -> Engine:
    made = Engine()
    made.execute(DDL + retain)
    return made


def feed(made: Engine, *rows: tuple[int | None, int | None, int]) -> None:
    """(k, end in seconds, timestamp in seconds)"""
    made.ingest("s", [[k, None if e is None else e * S, t * S] for k, e, t in rows])


def results(pushes: list[Push]) -> list[tuple[float, list[tuple[Any, ...]]]]:
    found = [p for p in pushes if p.kind == "result" and p.data is not None]
    return [(p.at / S, [tuple(r.values()) for r in p.data.to_pylist()]) for p in found]


def answer(made: Engine, sql: str) -> tuple[list[tuple[Any, ...]], int | None]:
    """The rows of a one-time query, and since when it is complete (s)."""
    (reply,) = made.execute(sql)
    rows = [tuple(r.values()) for r in reply.data.to_pylist()]
    return rows, None if reply.since is None else reply.since // S


# ---------------------------------------------------------------- rows that leave far from now


def test_boundaries_between_deaths_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is valid for years does not make each second of them a boundary that is told."""
    monkeypatch.setattr(silence, "SILENCE", 10)
    made = engine()
    made.execute("CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [VALID UNTIL ends SLIDE 1 s]")
    reader = made.subscribe("q")
    feed(made, (1, 1000, 0), (2, 100, 2), (3, None, 3))
    made.heartbeat("s", 2000 * S)
    told = results(reader.take())
    ats = [at for at, _ in told]
    changes = [told[0]]
    changes += [b for a, b in pairwise(told) if a[1] != b[1]]
    assert changes[-2:] == [(101.0, [(2,)]), (1001.0, [(1,)])]
    assert max(b - a for a, b in pairwise(ats)) > 800
    assert len(told) < 100


def test_a_stream_that_ends_is_answered_until_the_last_row_has_left() -> None:
    made = engine()
    made.execute("CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [VALID UNTIL ends SLIDE 1 h]")
    reader = made.subscribe("q")
    feed(made, (1, YEAR_9999 // S - 7200, 0), (2, None, 1))
    made.end("s")
    told = results(reader.take())
    assert told[0] == (3600.0, [(2,)])
    assert told[-1] == ((YEAR_9999 // S - 7200) // 3600 * 3600 + 3600.0, [(1,)])


def test_instants_that_are_foretold() -> None:
    found = Foretold()
    found.tell(np.array([50, 20, FOREVER, 20]), 0)
    found.tell(np.array([10]), 5)
    assert (found.before(10), found.after(9), found.last) == (ALWAYS, 10, 50)
    assert (found.before(21), found.after(20)) == (20, 50)
    assert (found.before(60), found.after(60), found.last) == (50, FOREVER, 50)
    found.tell(np.arange(100, 5000), 4000)
    assert (found.before(4001), found.after(4000), found.last) == (4000, 4001, 4999)


# ---------------------------------------------------------------- one-time queries


@pytest.mark.parametrize(
    ("window", "rows"),
    [
        ("VALID UNTIL ends", [(2,), (3,)]),
        ("RANGE (k * INTERVAL '10' SECOND)", [(2,), (3,)]),
        ("PARTITION BY k EVERY 10 s", [(2,), (3,)]),
        ("PARTITION BY k FIRST 1", [(1,), (2,), (3,)]),
        ("PARTITION BY k ROWS 1 RANGE 10 s", [(2,), (3,)]),
    ],
)
def test_asked_once_they_say_since_when_they_are_complete(
    window: str, rows: list[tuple[int]]
) -> None:
    made = engine(" RETAIN 1 min")
    feed(made, (1, 4, 0), (2, None, 8), (3, 50, 12))
    made.heartbeat("s", 12 * S)
    assert answer(made, f"SELECT k FROM s [{window}] ORDER BY k") == (rows, None)
    feed(made, (1, 4000, 1000), (1, 1000, 1001))
    made.heartbeat("s", 1001 * S)
    found, since = answer(made, f"SELECT k FROM s [{window}]")
    aged = "RANGE 10 s" in window
    assert (1,) in found
    assert (since is None) is aged


# ---------------------------------------------------------------- keys that are let go


@pytest.mark.parametrize(
    ("window", "kind"),
    [("ROWS 2 RANGE 5 s", AgedWindowOp), ("EVERY 5 s", ThrottleOp)],
)
def test_silent_keys_are_forgotten(window: str, kind: type) -> None:
    made = engine()
    made.execute(f"CREATE QUERY q AS SELECT k FROM s [PARTITION BY k {window}]")
    for second in range(40):
        feed(made, *((second * 300 + j % 300, None, second) for j in range(600)))
    made.heartbeat("s", 60 * S)
    query = made.runtime.queries["q"]
    (op,) = (op for _, o in placed(query.pipeline) for op in unpiped(o) if isinstance(op, kind))
    assert op.codes.size < 5000 < 40 * 300


# ---------------------------------------------------------------- EXPLAIN, and who sees rows late


@pytest.mark.parametrize(
    ("window", "notes"),
    [
        ("VALID UNTIL ends", "rows whose end is NULL never leave"),
        ("PARTITION BY k FIRST 3", "state grows with the number of partitions (a counter each)"),
        ("PARTITION BY k ROWS 3", "RANGE t behind ROWS lets go of those that are silent for t"),
    ],
)
def test_what_grows_is_explained(window: str, notes: str) -> None:
    (plan,) = engine().execute(f"EXPLAIN SELECT k FROM s [{window}] GROUP BY k")
    assert notes in str(plan.data.to_pylist())


@pytest.mark.parametrize(
    "window",
    [
        "VALID UNTIL ends",
        "RANGE (k * INTERVAL 2 SECONDS) UNTIL 1 s AGO",
        "PARTITION BY k ROWS 2 RANGE 5 s",
        "PARTITION BY k EVERY 5 s",
        "PARTITION BY k FIRST 2",
        "RANGE 5 s SLIDE 3 ROWS",
    ],
)
def test_they_are_shown_as_they_were_written(window: str) -> None:
    made = engine()
    made.execute(f"CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [{window}]")
    (shown,) = made.execute("SHOW CREATE QUERY q")
    assert window.split()[0] in str(shown.data.to_pylist())
