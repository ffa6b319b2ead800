"""Lists in columns, tables, keys and defaults, and aggregates that answer with lists."""

from __future__ import annotations

from tests.folders.story import SECOND, Step

DECLARED = """
CREATE STREAM s (k STRING, l LIST(INT), w LIST(STRING) DEFAULT ['new'], x FLOAT, t TIMESTAMP)
    TIMESTAMP BY t RETAIN 10 s WITH (durability = sync);
CREATE TABLE r (l LIST(INT) PRIMARY KEY, d LIST(DECIMAL(6,2)));
INSERT INTO r VALUES ([1, 2], [1.5, NULL]), ([], []), ([NULL], NULL);
"""
QUERIES = {
    "groups": "SELECT l, COUNT(*) AS n, FIRST(w) AS w FROM s [RANGE 8 s] GROUP BY l",
    "different": "SELECT DISTINCT l, w FROM s [RANGE 6 s]",
    "joined": "SELECT s.k, r.d FROM s [RANGE 6 s], r WHERE s.l = r.l",
    "firsts": "SELECT k, ARRAY_AGG(x, 3) AS a, ARRAY_AGG(w[1], 2) AS b FROM s [RANGE 9 s] "
    "GROUP BY k",
    "ever": "SELECT k, ARRAY_AGG(x, 2) AS a, HISTOGRAM(x, [2]) AS h FROM s GROUP BY k",
    "ranges": "SELECT k, HISTOGRAM(x, [1, 2.5, 4]) AS h FROM s [RANGE 7 s] GROUP BY k",
    "periodic": "SELECT k, ARRAY_AGG(x, 2) AS a, HISTOGRAM(x, [2]) AS h, SAMPLE(x, 2) AS d "
    "FROM s [RANGE 12 s SLIDE 4 s] GROUP BY k",
    "sums": "SELECT k, LIST_SUM(l) AS n, [x, 0.5] AS p FROM s [NOW] WHERE LIST_CONTAINS(l, 2)",
    "asked": "SELECT l, COUNT(*) AS n FROM s [RANGE 8 s] GROUP BY l ON LOOKUP",
}
STOPPED = list(QUERIES)  # those of the folder of a stop


def _seconds(first: int, last: int) -> list[Step]:
    out: list[Step] = []
    for at in range(first, last):
        lists = [[1, 2], [at % 3, None], [] if at % 2 else None]
        rows = {"k": ["a", "b", "abc"[at % 3]], "l": lists, "x": [at / 4, 2.0, at % 5 - 0.5]}
        if at % 3:
            rows["w"] = [["x", "y"], [], None]  # type: ignore[list-item]
        out.append(["rows", "s", {**rows, "t": [at * SECOND] * 3}])
    return out


BEFORE: list[Step] = _seconds(1, 12)
SINCE_CHECKPOINT: list[Step] = [
    *_seconds(12, 15),
    ["sql", "INSERT INTO r VALUES ([2, NULL], [9])"],
    *_seconds(15, 18),
]
AFTER: list[Step] = [
    *_seconds(18, 26),
    ["sql", "HEARTBEAT s AT TIMESTAMP '1970-01-01 00:01:00'"],
]
ASKED = [
    "SELECT k, l, w FROM s [RANGE 3 s] ORDER BY k, LENGTH(l), l[1], x",
    "SELECT l, d FROM r ORDER BY LENGTH(l), l[1]",
    "SELECT k, a FROM firsts ORDER BY k",
    "SHOW CREATE STREAM s",
    "LOOKUP asked",
]
