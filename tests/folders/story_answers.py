"""Queries that read the answers of others, and derived streams, over each other: what runs once for
several of them, readers that came late, and both kinds of changes in FROM."""

from __future__ import annotations

from tests.folders.story import SECOND, Step

DECLARED = """
CREATE STREAM s (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 10 s WITH (durability = sync);
CREATE STREAM u (k STRING, w INT, t TIMESTAMP) TIMESTAMP BY t SLACK 2 s;
CREATE TABLE r (k STRING PRIMARY KEY, n INT);
INSERT INTO r VALUES ('a', 1), ('b', 2);
"""
QUERIES = {
    "base": "SELECT k, COUNT(*) AS n, SUM(v) AS v FROM s [RANGE 20 s] GROUP BY k",
    "rows": "SELECT k, v FROM s [RANGE 8 s] WHERE v > 0",
    "sorts": "SELECT DISTINCT k, v FROM rows",
    "top": "SELECT MAX(n) AS n FROM base",
    "pairs": "SELECT base.k, base.n, u.w FROM base JOIN u [RANGE 10 s] u ON base.k = u.k",
    "alone": "SELECT k, v FROM rows WHERE k NOT IN (SELECT k FROM pairs)",
    "named": "SELECT r.n, COUNT(*) AS c FROM rows JOIN r ON rows.k = r.k GROUP BY r.n",
    "deep": "SELECT c, COUNT(*) AS m FROM named GROUP BY c",
    "came": "SELECT k, COUNT(*) AS c FROM Istream(base) [RANGE 10 s] GROUP BY k",
    "went": "SELECT k, v FROM Dstream(rows) [ROWS 3]",
    "slides": "SELECT k, SUM(v) AS v FROM s [RANGE 10 s SLIDE 5 s] GROUP BY k",
    "slid": "SELECT MAX(v) AS v FROM slides",
    "mixed": "SELECT a.k, b.v FROM top t, base a, slides b WHERE a.k = b.k AND a.n = t.n",
}
STOPPED = list(QUERIES)  # those of the folder of a stop


def _seconds(first: int, last: int) -> list[Step]:
    out: list[Step] = []
    for at in range(first, last):
        ts = at * SECOND
        keys = ["abcd"[at % 4], "ab"[at % 2], None if at % 5 == 0 else "c"]
        out.append(["rows", "s", {"k": keys, "v": [at % 6, at % 3 - 1, at], "t": [ts] * 3}])
        if at % 2:
            out.append(["rows", "u", {"k": keys[:2], "w": [at, -at], "t": [ts - SECOND, ts]}])
    return out


BEFORE: list[Step] = [
    *_seconds(1, 6),
    ["sql", "CREATE STREAM d RETAIN 10 s AS SELECT Istream(k, n) FROM base"],
    ["sql", "CREATE QUERY of_d AS SELECT k, COUNT(*) AS c FROM d [RANGE 10 s] GROUP BY k"],
    ["sql", "CREATE QUERY late AS SELECT v, COUNT(*) AS c FROM base GROUP BY v"],
    ["sql", "UPDATE r SET n = 7 WHERE k = 'a'"],
    *_seconds(6, 12),
]
SINCE_CHECKPOINT: list[Step] = [
    *_seconds(12, 15),
    ["sql", "CREATE QUERY later AS SELECT a.k, b.c FROM base a JOIN late b ON a.v = b.v"],
    ["sql", "INSERT INTO r VALUES ('c', 3)"],
    *_seconds(15, 18),
]
AFTER: list[Step] = [
    *_seconds(18, 22),
    ["sql", "CREATE QUERY latest AS SELECT COUNT(*) AS c FROM later"],
    ["sql", "DROP QUERY IF EXISTS named CASCADE"],
    *_seconds(22, 26),
    ["heartbeat", "s", 60 * SECOND],
    ["heartbeat", "u", 60 * SECOND],
]
ASKED = [
    "SELECT * FROM base ORDER BY k",
    "SELECT * FROM later ORDER BY k, c",
    "SELECT * FROM deep ORDER BY c",
    "SELECT k, n FROM d [RANGE 5 s] ORDER BY k, n",
    "DESCRIBE QUERY base",
]
