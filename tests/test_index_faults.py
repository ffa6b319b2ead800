"""A bug of ours in an index, in counts of values or in a sorted list ends that one alone, and one
in what is measured or kept by default nothing: answers are right, and queries see all rows."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from dsms.api import Rows
from dsms.engine import Engine
from dsms.running import measure
from dsms.running.watching import Watch
from dsms.settings import Settings
from dsms.state.counts import WindowCounts
from dsms.state.index import Found, WindowIndex
from dsms.state.ranges import FoundRange, SortedColumn
from dsms.state.recent import Recent
from tests.effort import thinned
from tests.test_window_index_types import SECOND, told

DECLARED = """
CREATE STREAM s (v INT, c INT, ts TIMESTAMP) TIMESTAMP BY ts RETAIN 1 h SUBWINDOW 5 s {by};
CREATE STREAM other (v INT, ts TIMESTAMP) TIMESTAMP BY ts;
CREATE TABLE one (k INT PRIMARY KEY, c INT); INSERT INTO one VALUES (1, 3);
CREATE QUERY counted AS SELECT COUNT(*) FROM s [RANGE 1 h];
CREATE QUERY asked AS SELECT s.v FROM s [RANGE 1 h] JOIN one ON s.c = one.c ON LOOKUP;
"""
ASKED = (
    "SELECT v FROM s [RANGE 1 h] WHERE c = 3",
    "SELECT v, c FROM s [RANGE 1 h] WHERE c IN (3, 4) AND v <> 5",
    "SELECT s.v FROM s [RANGE 1 h] JOIN one ON s.c = one.c",
    "SELECT v FROM s [RANGE 1 h] WHERE c IN (SELECT c FROM one)",
    "SELECT v FROM s [RANGE 1 h] WHERE c > 18",
    "SELECT c, COUNT(*) FROM s [RANGE 1 h] GROUP BY c",
    "SELECT COUNT(DISTINCT c) FROM s [RANGE 1 h]",
    "SELECT v FROM s [RANGE 1 h] ORDER BY c DESC, v LIMIT 3",
    "EXPLAIN SELECT v FROM s [RANGE 1 h] WHERE c > 18",
    "EXPLAIN SELECT c, COUNT(*) FROM s [RANGE 1 h] GROUP BY c",
    "LOOKUP asked",
    "SELECT * FROM counted",
)
BROKEN = [
    (WindowIndex, "follow"),
    (WindowIndex, "find"),
    (WindowIndex, "_take"),
    (WindowIndex, "covers"),
    (Found, "taken"),
    (SortedColumn, "follow"),
    (SortedColumn, "find"),
    (SortedColumn, "top"),
    (FoundRange, "among"),
    (WindowCounts, "follow"),
    (WindowCounts, "whole"),
    (WindowCounts, "_move"),
]


def listed(engine: Engine, text: str) -> list[dict[str, Any]]:
    """The rows of an answer."""
    (reply,) = engine.execute(text)
    assert isinstance(reply, Rows)
    return reply.data.to_pylist()


def fed(engine: Engine, first: int, last: int) -> None:
    rows = [[v, v % 20, v * SECOND] for v in range(first, last)]
    assert engine.ingest("s", rows).accepted == last - first
    assert engine.ingest("other", [[v, ts] for v, _, ts in rows]).accepted == last - first


@pytest.fixture(scope="module")
def right():
    """By the number of rows that have come what is answered without indices."""
    engine, found = Engine(settings=Settings(window_index=False)), {}
    engine.execute(DECLARED.format(by=""))
    for start in range(0, 160, 40):
        fed(engine, start, start + 40)
        found[start + 40] = {text: told(engine, text) for text in ASKED}
    return found


def check(engine: Engine, right: dict[str, object]) -> None:
    for text, rows in right.items():
        found = told(engine, text)
        assert text.startswith("EXPLAIN") or found == rows, text


@thinned(2)
@pytest.mark.parametrize(("number", "owner", "method"), [(n, *b) for n, b in enumerate(BROKEN)])
def test_a_fault_in_an_index_ends_that_index(
    monkeypatch, caplog, tmp_path, right, number, owner, method
):
    engine = Engine(str(tmp_path))
    engine.execute(DECLARED.format(by="INDEX BY (c)" if number % 2 or owner is Found else ""))
    fed(engine, 0, 40)
    for _ in range(3 if number % 4 < 2 else 0):
        check(engine, right[40])
    calls = []

    def broken(*args, **options):
        calls.append(1)
        raise ZeroDivisionError("as planned")

    with monkeypatch.context() as patched, caplog.at_level(logging.ERROR, "dsms"):
        patched.setattr(owner, method, broken)
        for upto in (80, 120):
            fed(engine, upto - 40, upto)
            for _ in range(3 if upto == 80 else 1):
                check(engine, right[upto])
        shown = listed(engine, "SHOW WINDOWS")
    kinds = [line["kind"] for line in shown if "as planned" in line["for"]]
    said = [r for r in caplog.records if "bug of ours" in r.getMessage()]
    assert calls and len(kinds) == len(said) == 1
    assert said[0].exc_info and "column c of stream s" in said[0].getMessage()
    assert kinds[0] not in [line["kind"] for line in shown if "as planned" not in line["for"]]
    if number % 5:
        return
    engine.close()
    engine = Engine(str(tmp_path))
    fed(engine, 120, 160)
    for _ in range(3):
        check(engine, right[160])
    shown = listed(engine, "SHOW WINDOWS")
    assert {"index", "counts", "sorted"} <= {line["kind"] for line in shown}
    assert not [line for line in shown if "given up" in line["for"]]
    engine.close()


@pytest.mark.parametrize(
    ("owner", "method"), [(measure, "figures"), (Recent, "add"), (Recent, "keep"), (Watch, "look")]
)
def test_a_fault_in_what_is_measured_or_kept_by_default_stops_nothing(
    monkeypatch, caplog, owner, method
):
    engine, calls = Engine(), []
    engine.execute(
        "CREATE STREAM s (k INT, ts TIMESTAMP) TIMESTAMP BY ts; CREATE QUERY q AS SELECT COUNT(*) "
        "FROM s [RANGE 1 h] x, s [RANGE 1 h] y, s [RANGE 1 h] z WHERE x.k = y.k AND y.k = z.k"
    )

    def broken(*args, **options):
        calls.append(1)
        raise ZeroDivisionError("as planned")

    with monkeypatch.context() as patched, caplog.at_level(logging.ERROR, "dsms"):
        patched.setattr(owner, method, broken)
        for start in range(0, 2400, 600):
            rows = [[k, k * 1000] for k in range(start, start + 600)]
            assert engine.ingest("s", rows).accepted == 600
    assert calls and len([r for r in caplog.records if "please report" in r.getMessage()]) >= 1
    assert listed(engine, "SELECT * FROM q") == [{"COUNT(*)": 2399}]
    counts = listed(engine, "SELECT COUNT(*) AS n FROM s [RANGE 10 ms]")
    assert counts == [{"n": 0 if owner is Recent else 10}]
    engine.ingest("s", [[k, k * 1000] for k in range(2400, 2420)])
    counts = listed(engine, "SELECT COUNT(*) AS n FROM s [RANGE 10 ms]")
    assert counts == [{"n": 10}]
