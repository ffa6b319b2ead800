"""Functions and aggregates of one's own, as expressions and in Python, in queries of all kinds."""

from __future__ import annotations

from tests.folders.story import SECOND, Step

DECLARED = """
CREATE STREAM s (k STRING, x FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 10 s
    WITH (durability = sync);
CREATE FUNCTION halved(x FLOAT) AS x / 2;
CREATE FUNCTION doubled(x FLOAT) RETURNS FLOAT AS PYTHON 'kept:doubled';
CREATE AGGREGATE spread(x FLOAT) AS MAX(x) - MIN(x);
CREATE AGGREGATE middle(x FLOAT) RETURNS FLOAT AS PYTHON 'kept:Middle';
CREATE AGGREGATE chained(k STRING) RETURNS STRING AS PYTHON 'kept:Chain';
"""
QUERIES = {
    "rows": "SELECT k, doubled(x) + halved(x) AS y FROM s [RANGE 4 s] WHERE doubled(x) > 1",
    "leaving": "SELECT k, middle(x) AS m, spread(x) AS d, chained(k) AS c FROM s [RANGE 5 s] "
    "GROUP BY k",
    "counted": "SELECT middle(x) AS m, chained(k) AS c FROM s [ROWS 4]",
    "ever": "SELECT k, middle(x) AS m, chained(k) AS c FROM s [RANGE UNBOUNDED] GROUP BY k",
    "earlier": "SELECT k, chained(k) AS c FROM s [RANGE 4 s UNTIL 2 s AGO] GROUP BY k",
    "periodic": "SELECT k, middle(x) AS m, chained(k) AS c FROM s [RANGE 12 s SLIDE 4 s] "
    "GROUP BY k",
    "asked": "SELECT middle(x) AS m FROM s [RANGE 8 s] ON LOOKUP",
}
STOPPED = list(QUERIES)  # those of the folder of a stop


def _seconds(first: int, last: int) -> list[Step]:
    return [
        [
            "rows",
            "s",
            {
                "k": ["a", "b", "abc"[at % 3]],
                "x": [at / 4, None if at % 4 == 0 else 2.0, at % 5 - 0.5],
                "t": [at * SECOND] * 3,
            },
        ]
        for at in range(first, last)
    ]


BEFORE: list[Step] = _seconds(1, 12)
SINCE_CHECKPOINT: list[Step] = _seconds(12, 16)
AFTER: list[Step] = [
    *_seconds(16, 26),
    ["sql", "HEARTBEAT s AT TIMESTAMP '1970-01-01 00:01:00'"],
]
ASKED = [
    "SELECT k, middle(x) AS m, spread(x) AS d FROM s [RANGE 6 s] GROUP BY k ORDER BY k",
    "SELECT k, m, c FROM ever ORDER BY k",
    "SHOW CREATE FUNCTION doubled",
    "SHOW CREATE AGGREGATE middle",
    "LOOKUP asked",
]
