"""DATE, TIME, UUID and STRUCT in columns, tables, keys, defaults and answers."""

from __future__ import annotations

from tests.folders.story import SECOND, Step

DAY = 86_400 * SECOND
DECLARED = """
CREATE STREAM s (k INT, d DATE, m TIME DEFAULT TIME '08:00', u UUID,
    p STRUCT(a INT, b STRING) DEFAULT {'a': 1, 'b': 'x'}, t TIMESTAMP)
    TIMESTAMP BY t RETAIN 10 s WITH (durability = sync);
CREATE TABLE r (d DATE PRIMARY KEY, p STRUCT(a INT, b STRING), m TIME);
INSERT INTO r VALUES (DATE '1970-01-01', {'a': 2, 'b': NULL}, TIME '23:59:59.999999'),
    (DATE '0001-01-01', NULL, NULL), (DATE '9999-12-31', {'a': NULL, 'b': 'é'}, TIME '00:00');
"""
QUERIES = {
    "groups": "SELECT d, COUNT(*) AS n, MIN(m) AS m, MAX(u) AS u FROM s [RANGE 8 s] GROUP BY d",
    "structs": "SELECT p, COUNT(*) AS n, MAX(d) AS d FROM s [RANGE 7 s] GROUP BY p",
    "different": "SELECT DISTINCT u, m FROM s [RANGE 6 s]",
    "joined": "SELECT s.k, r.p, r.m FROM s [RANGE 6 s], r WHERE s.d = r.d",
    "paired": "SELECT a.k, b.m FROM s [RANGE 4 s] AS a, s [RANGE 3 s] AS b WHERE a.u = b.u "
    "AND a.p = b.p",
    "fields": "SELECT k, p.a, d + 1 AS e, d + m AS at, {'k': k, 'd': d} AS q FROM s [NOW] "
    "WHERE m <> TIME '06:00'",
    "periodic": "SELECT d, MAX(m) AS m, ARRAY_AGG(d, 2) AS l, COUNT(DISTINCT u) AS n "
    "FROM s [RANGE 12 s SLIDE 4 s] GROUP BY d",
    "asked": "SELECT u, COUNT(*) AS n FROM s [RANGE 8 s] GROUP BY u ON LOOKUP",
}
STOPPED = list(QUERIES)  # those of the folder of a stop
IDS = [f"5a0e3b1c-0f2d-4c6e-9b7a-00000000000{n}" for n in range(3)]


def _seconds(first: int, last: int) -> list[Step]:
    out: list[Step] = []
    for at in range(first, last):
        days = [at % 2 * DAY, None, -DAY * (at % 3)]
        rows = {"k": [at, 0, 1], "d": days, "u": [IDS[at % 3], None, IDS[0]]}
        if at % 3:
            rows["m"] = [at * SECOND, None, DAY - 1]
            rows["p"] = ['{"a": 1, "b": "x"}', None, f'{{"a": {at % 3}, "b": null}}']
        out.append(["rows", "s", {**rows, "t": [at * SECOND] * 3}])
    return out


BEFORE: list[Step] = _seconds(1, 12)
SINCE_CHECKPOINT: list[Step] = [
    *_seconds(12, 15),
    ["sql", "INSERT INTO r VALUES (DATE '1969-12-31', {'a': 9, 'b': ''}, TIME '12:00:00.5')"],
    *_seconds(15, 18),
]
AFTER: list[Step] = [
    *_seconds(18, 26),
    ["sql", "HEARTBEAT s AT TIMESTAMP '1970-01-01 00:01:00'"],
]
ASKED = [
    "SELECT k, d, m, u, p FROM s [RANGE 3 s] ORDER BY k, d, m, u, p.a",
    "SELECT d, p, m FROM r ORDER BY d",
    "SELECT d, n, m FROM groups ORDER BY d",
    "SHOW CREATE STREAM s",
    "LOOKUP asked",
]
