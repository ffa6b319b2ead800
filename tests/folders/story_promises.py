"""Streams that promise that some values do not come again, and queries that let go by it."""

from __future__ import annotations

from tests.folders.story import SECOND, Step

DECLARED = """
CREATE STREAM s (k INT, v INT, c STRING, t TIMESTAMP) TIMESTAMP BY t SLACK 2 s
    WITH (durability = sync);
CREATE STREAM u (k INT, v INT, c STRING, t TIMESTAMP) TIMESTAMP BY t;
"""
QUERIES = {
    "groups": "SELECT k, COUNT(DISTINCT v) AS n, MEDIAN(v) AS m, TOPK(c, 2) AS p, MODE(v) AS o, "
    "ENTROPY(v) AS e, STRING_AGG(c, ',') AS a, ARRAY_AGG(v, 4) AS l FROM s GROUP BY k",
    "timed": "SELECT k, DATE_TRUNC('minute', t) AS w, COUNT(DISTINCT v) AS n FROM s "
    "GROUP BY k, DATE_TRUNC('minute', t)",
    "pairs": "SELECT s.k, s.v, u.c FROM s, u WHERE s.k = u.k AND s.v = u.v",
    "met": "SELECT s.k, COUNT(DISTINCT u.c) AS n FROM s, u WHERE s.k = u.k GROUP BY s.k",
    "met_often": "SELECT s.k, COUNT(*) AS n FROM s, u WHERE s.k = u.k GROUP BY s.k "
    "HAVING COUNT(*) > 5",
    "different": "SELECT Istream(DISTINCT k, c) FROM s",
}
STOPPED = list(QUERIES)


def _seconds(first: int, last: int) -> list[Step]:
    out: list[Step] = []
    for at in range(first, last):
        rows = {"k": [0, 1, at % 4, None], "v": [at % 3, 1, at, 0], "c": ["a", "b", f"{at}", "c"]}
        for stream in ("s", "u"):
            out.append(["rows", stream, {**rows, "t": [at * SECOND] * 4}])
    return out


BEFORE: list[Step] = [
    *_seconds(1, 10),
    ["sql", "PUNCTUATE s WHERE k = 1; PUNCTUATE u WHERE k IN (1, 2) AND c = 'b'"],
    *_seconds(10, 14),
    ["sql", "PUNCTUATE u WHERE k = 0; PUNCTUATE s WHERE k IS NULL UPTO 90 s"],
]
SINCE_CHECKPOINT: list[Step] = [
    *_seconds(14, 17),
    ["sql", "PUNCTUATE s WHERE k IN (2, 3) AND c IN ('b', '18'); PUNCTUATE s WHERE k = 0"],
    *_seconds(17, 19),
]
AFTER: list[Step] = [
    *_seconds(19, 24),
    ["sql", "PUNCTUATE u WHERE k IN (1, 2)"],
    *_seconds(70, 72),
    ["heartbeat", "s", 100 * SECOND],
    ["heartbeat", "u", 100 * SECOND],
]
ASKED = [
    "SELECT * FROM groups ORDER BY k",
    "SELECT k, w, n FROM timed ORDER BY k, w",
    "SELECT k, n FROM met ORDER BY k",
]
