"""Values OVER the rows up to each row: in windows of a length, of so many rows and of each key,
without one, and at boundaries."""

from __future__ import annotations

from tests.folders.story import SECOND, Step

DECLARED = """
CREATE STREAM s (k STRING, v INT, x FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 30 s
    WITH (durability = sync);
"""
QUERIES = {
    "sums": "SELECT k, v, SUM(v) OVER (PARTITION BY k) AS a, LAG(x, 1, v) OVER (PARTITION BY k) AS "
    "b FROM s [RANGE 9 s]",
    "counted": "SELECT k, MAX(k) OVER (ROWS 2 PRECEDING) AS a, ROW_NUMBER() OVER () AS b FROM s "
    "[ROWS 5] WHERE v > 0",
    "parts": "SELECT k, AVG(x) OVER (PARTITION BY k) AS a FROM s [PARTITION BY k ROWS 4]",
    "ever": "SELECT k, COUNT(*) OVER (PARTITION BY k) AS a, SUM(x) OVER (RANGE 3 s PRECEDING) AS b "
    "FROM s",
    "jumps": "SELECT Istream(k, v) FROM s [RANGE 9 s] QUALIFY v > LAG(v) OVER (PARTITION BY k)",
    "inside": "SELECT a, COUNT(*) AS n FROM (SELECT LAG(k, 2) OVER () AS a FROM s [RANGE 6 s]) q "
    "GROUP BY a",
    "periodic": "SELECT k, v, FIRST(v) OVER (PARTITION BY k) AS a FROM s [RANGE 8 s SLIDE 4 s]",
    "asked": "SELECT k, SUM(v) OVER (PARTITION BY k) AS a FROM s [RANGE 8 s] ON LOOKUP",
}
STOPPED = list(QUERIES)  # those of the folder of a stop


def _seconds(first: int, last: int) -> list[Step]:
    out: list[Step] = []
    for at in range(first, last):
        keys = ["a", "b", "abc"[at % 3], None]
        rows = {"k": keys, "v": [at * 7 % 11, -at, at % 4, 1], "x": [at % 5 / 4, 0.5, None, -0.0]}
        out.append(["rows", "s", {**rows, "t": [at * SECOND] * 4}])
    return out


BEFORE: list[Step] = _seconds(1, 12)
SINCE_CHECKPOINT: list[Step] = _seconds(12, 18)
AFTER: list[Step] = [
    *_seconds(18, 26),
    ["sql", "HEARTBEAT s AT TIMESTAMP '1970-01-01 00:01:00'"],
]
ASKED = [
    "SELECT k, v, a, b FROM sums ORDER BY k, v, a, b",
    "SELECT k, a FROM ever ORDER BY k, a",
    "SELECT k, SUM(v) OVER (PARTITION BY k) AS a FROM s [RANGE 9 s]",
    "LOOKUP asked",
]
