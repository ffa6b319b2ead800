"""What one-time queries ask for often gets an index where its type can have one: columns of every
type, asked for in every form, again and again while rows come."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from dsms.api import Rows
from dsms.engine import Engine
from dsms.settings import Settings
from tests.effort import thinned

SECOND = 1_000_000
# of each type five values by number, and how SQL writes the one of number 3
TYPES = {
    "BOOL": (lambda k: k % 2 == 0, "FALSE"),
    "INT": (lambda k: k, "3"),
    "FLOAT": (lambda k: k / 2, "1.5"),
    "DECIMAL(6,2)": (lambda k: Decimal(k) / 4, "0.75"),
    "STRING": (lambda k: "abcde"[k], "'d'"),
    "BYTES": (lambda k: b"abcde"[k : k + 1], "X'64'"),
    "TIMESTAMP": (lambda k: datetime(2020, 1, k + 1), "TIMESTAMP '2020-01-04 00:00:00'"),
    "INTERVAL": (lambda k: timedelta(seconds=k), "INTERVAL '3' SECOND"),
    "LIST(INT)": (lambda k: [k, 1], "CAST('[3, 1]' AS LIST(INT))"),
}
ASKED = (
    "SELECT s.v FROM s [RANGE 1 h] JOIN one ON s.c = one.c",
    "SELECT s.v FROM s [RANGE 1 h] SEMI JOIN one ON s.c = one.c",
    "SELECT s.v FROM s [RANGE 1 h] LEFT JOIN one ON s.c = one.c",
    "SELECT v FROM s [RANGE 1 h] WHERE c IN (SELECT c FROM one)",
    "SELECT v FROM s [RANGE 1 h] WHERE EXISTS (SELECT 1 FROM one WHERE one.c = s.c)",
    "SELECT x.v FROM s [RANGE 1 h] x, s [RANGE 5 s] y WHERE x.c = y.c AND y.v = 3",
    "SELECT COUNT(DISTINCT c) FROM s [RANGE 1 h]",
    "SELECT c, COUNT(*) FROM s [RANGE 1 h] GROUP BY c",
    "SELECT v FROM s [RANGE 1 h] ORDER BY c DESC, v LIMIT 3",
    "SELECT v FROM s [RANGE 1 h] WHERE c >= {}",
    "SELECT v FROM s [RANGE 1 h] WHERE c = {}",
)


@thinned(2)
@pytest.mark.parametrize("name", TYPES)
def test_what_is_asked_for_often_is_answered_alike_with_indices_and_without(name):
    engines = [Engine(settings=Settings(window_index=on)) for on in (True, False)]
    value, literal = TYPES[name]
    for engine in engines:
        engine.execute(
            f"CREATE STREAM s (v INT, c {name}, ts TIMESTAMP) TIMESTAMP BY ts RETAIN 1 h SUBWINDOW "
            f"5 s; CREATE TABLE one (k INT PRIMARY KEY, c {name}); "
            f"INSERT INTO one VALUES (1, {literal})"
        )
    for start in range(0, 120, 20):
        some = range(start, start + 20)
        rows = [[v, None if v % 7 == 0 else value(v % 5), v * SECOND] for v in some]
        for engine in engines:
            engine.ingest("s", rows)
        for asked in ASKED:
            text = asked.format(literal)
            if name.startswith("LIST") and (">=" in text or "ORDER BY" in text):
                continue  # lists have no order
            with_index, without = (told(e, text) for e in engines)
            assert with_index == without, text


def told(engine: Engine, text: str) -> Counter:
    """The rows of an answer."""
    (reply,) = engine.execute(text)
    assert isinstance(reply, Rows)
    return Counter(map(repr, reply.data.to_pylist()))
