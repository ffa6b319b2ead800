"""Definitions that change while things run: queries paused, replaced, renamed and set, comments,
columns added, computed ones, rows sent to tables, boundaries that belong to queries, streams that
have ended and go on."""

from __future__ import annotations

from tests.folders.story import SECOND, Step

DECLARED = """
CREATE STREAM s (k STRING, v INT, t TIMESTAMP, twice INT AS (v * 2)) TIMESTAMP BY t RETAIN 10 s
    INDEX BY (k) WITH (durability = sync);
CREATE STREAM e (k STRING, ms INT, f INT DEFAULT 5) TIMESTAMP BY (ms / 1000) AS at UNIT s SLACK 2 s;
CREATE TABLE r (k STRING PRIMARY KEY, n INT);
INSERT INTO r VALUES ('a', 1), ('b', 2);
COMMENT ON STREAM s IS 'what comes';
COMMENT ON TABLE r IS 'names';
"""
QUERIES = {
    "counts": "SELECT k, COUNT(*) AS n, SUM(twice) AS v FROM s [RANGE 20 s] GROUP BY k",
    "halted": "SELECT k, v FROM s [RANGE 8 s] WHERE v > 0",
    "halts": "SELECT k, SUM(v) AS v FROM s [RANGE 10 s SLIDE 5 s] GROUP BY k",
    "other": "SELECT k, MAX(v) AS v FROM s [RANGE 10 s] GROUP BY k",
    "named": "SELECT s.v, r.n FROM s [RANGE 6 s], r WHERE s.k = r.k",
    "every_": "SELECT k, COUNT(*) AS n, WINDOW_END() AS b FROM s [RANGE 9 s] GROUP BY k EVERY 3 s",
    "last3": "SELECT k, v FROM s [PARTITION BY k ROWS 2] ORDER BY k, v LIMIT 3 EVERY 4 s",
    "both": "SELECT s.k, e.f FROM s [RANGE 5 s], e [RANGE 5 s] WHERE s.k = e.k",
    "asked": "SELECT k, v FROM s [RANGE 8 s] WHERE k = 'a' ON LOOKUP",
}
STOPPED = list(QUERIES)  # those of the folder of a stop


def _seconds(first: int, last: int) -> list[Step]:
    out: list[Step] = []
    for at in range(first, last):
        ts = at * SECOND
        keys = ["abcd"[at % 4], "ab"[at % 2], None if at % 5 == 0 else "c"]
        out.append(["rows", "s", {"k": keys, "v": [at % 6, at % 3 - 1, at], "t": [ts] * 3}])
        if at % 2:
            out.append(["rows", "e", {"k": keys[:2], "ms": [at * 1000 - 900, at * 1000]}])
    return out


BEFORE: list[Step] = [
    *_seconds(1, 6),
    ["sql", "PAUSE QUERY halted"],
    ["sql", "PAUSE QUERY halts"],
    ["sql", "ALTER STREAM s ADD COLUMN c INT DEFAULT 7"],
    ["sql", "CREATE QUERY added AS SELECT c, COUNT(*) AS n FROM s [RANGE 10 s] GROUP BY c"],
    ["sql", "COMMENT ON QUERY counts IS 'how many'"],
    ["sql", "ALTER QUERY counts SET (max_state = 1000000)"],
    ["rows", "r", {"k": ["c", "d"], "n": [3, 4]}],
    *_seconds(6, 12),
    ["sql", "RESUME QUERY halts"],
]
SINCE_CHECKPOINT: list[Step] = [
    *_seconds(12, 14),
    [
        "sql",
        "CREATE OR REPLACE QUERY other AS SELECT k, MIN(v) AS v FROM s [RANGE 10 s] GROUP BY k",
    ],
    ["sql", "ALTER QUERY named RENAME TO titled"],
    [
        "sql",
        "INSERT INTO r VALUES ('a', 10), ('e', 5) ON CONFLICT (k) DO UPDATE SET n = EXCLUDED.n",
    ],
    ["sql", "ALTER STREAM e ADD COLUMN g STRING"],
    *_seconds(14, 18),
]
AFTER: list[Step] = [
    ["sql", "RESUME QUERY halted"],
    ["sql", "PAUSE QUERY added"],
    *_seconds(18, 22),
    ["end", "e"],
    ["sql", "ALTER STREAM e REOPEN"],
    ["sql", "RESUME QUERY added"],
    *_seconds(22, 26),
    ["sql", "HEARTBEAT s AT TIMESTAMP '1970-01-01 00:01:00'"],
    ["heartbeat", "e", 60 * SECOND],
]
ASKED = [
    "SELECT * FROM counts ORDER BY k",
    "SELECT * FROM other ORDER BY k",
    "SELECT k, twice, c FROM s [RANGE 3 s] ORDER BY k, twice",
    "SELECT * FROM r ORDER BY k",
    "DESCRIBE QUERY counts",
    "SHOW CREATE STREAM s",
    "LOOKUP asked",
]
