"""Rows one after the other, sessions and other episodes, and windows whose rows say how long they
stay."""

from __future__ import annotations

from tests.folders.story import SECOND, Step

DECLARED = """
CREATE STREAM s (k STRING, v INT, d INTERVAL, t TIMESTAMP) TIMESTAMP BY t RETAIN 30 s
    WITH (durability = sync);
CREATE STREAM u (k STRING, t TIMESTAMP) TIMESTAMP BY t WITH (durability = sync);
"""
QUERIES = {
    "pairs": "SELECT a.k, a.v, b.v AS w FROM MATCH (a s, NOT n u, b s) [RANGE 9 s] PER k "
    "WHERE b.v > a.v",
    "apart": "SELECT Istream(a.k, a.t, COUNT(b) AS n, c.v) FROM MATCH (a s, b+ s, c s) [RANGE 12 s]"
    " PER k SKIP PAST LAST WHERE b.v <= a.v AND c.v > MAX(b.v) AND COUNT(b) > 1",
    "silent": "SELECT a.k, a.t FROM MATCH (a s, b s, NOT n u) [RANGE 6 s INTERNAL] PER k "
    "SKIP PAST LAST WHERE b.v < a.v",
    "sums": "SELECT a.k, COUNT(*) AS n FROM MATCH (a s, b s) [RANGE 8 s SLIDE 4 s] PER k "
    "SKIP PAST LAST GROUP BY a.k",
    "open": "SELECT k, COUNT(*) AS n FROM s [SESSION 3 s BY k] GROUP BY k",
    "closed": "SELECT k, SUM(v) AS n, MAX(t) AS z FROM s [SESSION (d) BY k INTERNAL] GROUP BY k",
    "when_": "SELECT k, v FROM s [WHEN v > 7 UNTIL v < 2 BY k]",
    "ended": "SELECT k, COUNT(*) AS n FROM s [WHEN v > 7 UNTIL v < 2 BY k INTERNAL] GROUP BY k",
    "valid": "SELECT k, v FROM (SELECT *, t + d AS e FROM s) [VALID UNTIL e]",
    "lasting": "SELECT SUM(v) AS n FROM s [RANGE (d)]",
    "seldom": "SELECT Istream(k, v) FROM s [PARTITION BY k EVERY 4 s]",
    "first": "SELECT k, v FROM s [PARTITION BY k FIRST 3]",
    "aged": "SELECT k, v FROM s [PARTITION BY k ROWS 3 RANGE 5 s]",
}
STOPPED = list(QUERIES)  # those of the folder of a stop


def _seconds(first: int, last: int) -> list[Step]:
    out: list[Step] = []
    for at in range(first, last):
        keys = ["a", "b", "abcd"[at % 4], None]
        spans = [(at % 5) * SECOND, 2 * SECOND, None, SECOND]
        rows = {"k": keys, "v": [at * 7 % 11, at % 3, at * 5 % 9, 1], "d": spans}
        out.append(["rows", "s", {**rows, "t": [at * SECOND] * 4}])
        if at % 4 == 0:
            out.append(["rows", "u", {"k": ["abc"[at // 4 % 3]], "t": [at * SECOND]}])
    return out


BEFORE: list[Step] = _seconds(1, 13)
SINCE_CHECKPOINT: list[Step] = _seconds(13, 18)
AFTER: list[Step] = [
    *_seconds(18, 26),
    ["sql", "END STREAM s"],
    ["sql", "END STREAM u"],
]
ASKED = [
    "SELECT k, v, w FROM pairs ORDER BY k, v, w",
    "SELECT k, n FROM open ORDER BY k",
    "SELECT k, v FROM valid ORDER BY k, v",
    "SELECT a.k, a.v, b.v AS w FROM MATCH (a s, b s) [RANGE 9 s] PER k WHERE b.v > a.v",
]
