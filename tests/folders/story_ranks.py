"""The first rows of each key: of windows whose rows die when they said, of those that count, of a
stream that keeps all, of groups, and at boundaries."""

from __future__ import annotations

from tests.folders.story import SECOND, Step

DECLARED = """
CREATE STREAM s (k STRING, v INT, x FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 30 s
    WITH (durability = sync);
"""
QUERIES = {
    "best": "SELECT k, v, x FROM s [RANGE 9 s] ORDER BY x DESC, v LIMIT 2 PER k",
    "counted": "SELECT k, v FROM s [PARTITION BY k ROWS 4] ORDER BY v LIMIT 1 PER k",
    "ever": "SELECT k, v FROM s ORDER BY v DESC LIMIT 3 PER k",
    "whole": "SELECT k, v FROM s [RANGE 7 s] ORDER BY k NULLS FIRST, v LIMIT 4",
    "many": "SELECT v FROM s [RANGE 8 s] ORDER BY x LIMIT 300 PER k",
    "groups": "SELECT k, COUNT(*) AS n FROM s [RANGE 6 s] GROUP BY k, v ORDER BY n DESC, v "
    "LIMIT 1 PER k",
    "came": "SELECT Istream(k, v) FROM s [RANGE 9 s] ORDER BY v LIMIT 1 PER k",
    "inside": "SELECT k, SUM(v) AS n FROM (SELECT k, v FROM s [RANGE 9 s] ORDER BY v DESC "
    "LIMIT 2 PER k) q GROUP BY k",
    "periodic": "SELECT k, v FROM s [RANGE 12 s SLIDE 4 s] ORDER BY v DESC, x LIMIT 2 PER k",
    "asked": "SELECT k, v FROM s [RANGE 8 s] ORDER BY v DESC LIMIT 1 PER k ON LOOKUP",
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
    "SELECT k, v, x FROM best ORDER BY k, x, v",
    "SELECT k, v FROM ever ORDER BY k, v",
    "SELECT k, v FROM whole ORDER BY k, v",
    "SELECT k, v FROM s [RANGE 9 s] ORDER BY v DESC LIMIT 1 PER k",
    "LOOKUP asked",
]
