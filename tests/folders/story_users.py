"""What a server with users leaves: owners, roles, grants of columns, masks and rows, quotas, a
stream that is confidential, tables, small frames written down together, and many queries that an
index over their predicates feeds.  As `tests.folders.story`, but for archives: beside one frames
are not grouped."""

from __future__ import annotations

from typing import Any

from tests.folders.story import SECOND, Step

DECLARED = """
CREATE USER alice PASSWORD 'correct horse';
CREATE USER bob TOKEN;
CREATE USER carol TOKEN;
CREATE ROLE staff;
CREATE ROLE insiders WITH (queries = 3, state = '64 MB', rows_per_second = 5000);
GRANT staff TO bob;
GRANT insiders TO alice;
ALTER USER bob WITH (queries = 2, sessions = 4);
CREATE STREAM late_rows (k STRING, v INT, t TIMESTAMP);
CREATE STREAM s (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t SLACK 2 s LATE INTO late_rows
    RETAIN 30 s;
CREATE STREAM young (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 20 s
    CONFIDENTIAL FOR 4 s TO insiders WITH (durability = sync);
CREATE TABLE people (name STRING PRIMARY KEY, town STRING, salary INT);
CREATE TABLE fees (k STRING PRIMARY KEY, n INT) NON RETROACTIVE;
INSERT INTO people VALUES ('alice', 'Ulm', 50), ('bob', 'Bonn', 40), ('carol', 'Ulm', 30);
INSERT INTO fees VALUES ('a', 10), ('b', 20);
GRANT SELECT, INSERT ON s TO alice;
GRANT SELECT (k, v, t) ON s TO staff WHERE v < 4 OR k = CURRENT_USER();
GRANT SELECT ON young TO alice;
GRANT SELECT ON young TO staff MASK (k AS 'hidden');
GRANT SELECT (name, town) ON people TO staff WHERE town = 'Ulm' OR name = CURRENT_USER();
GRANT SELECT ON fees TO alice;
GRANT CREATE ON ALL TO alice;
GRANT CREATE ON ALL TO staff;
"""

# The predicates' index has all that it can compare: points, ranges, sets, NULL, several at once.
_PREDICATES = {
    **{f"k{key}": f"k = '{key}'" for key in "abcd"},
    **{f"v{n}": f"v = {n}" for n in range(6)},
    **{f"above{n}": f"v > {n}" for n in range(0, 6, 2)},
    **{f"below{n}": f"v <= {n}" for n in range(1, 6, 2)},
    "between": "v BETWEEN 2 AND 4",
    "one_of": "k IN ('a', 'd', 'x')",
    "no_key": "k IS NULL",
    "both": "k = 'b' AND v >= 3",
    "either": "k = 'b' OR v = 0",
    "unknown": "k LIKE 'a%'",
}
QUERIES = {
    **{f"i_{name}": f"SELECT k, v FROM s [NOW] WHERE {p}" for name, p in _PREDICATES.items()},
    "w_both": "SELECT k, COUNT(*), SUM(v) FROM s [RANGE 10 s] WHERE v >= 2 GROUP BY k",
    "w_rows": "SELECT k, v FROM s [ROWS 3] WHERE k = 'a'",
    "p_sum": "SELECT k, SUM(v) FROM s [RANGE 10 s SLIDE 5 s] GROUP BY k",
    "y_all": "SELECT k, SUM(v) FROM young [RANGE 10 s] GROUP BY k",
    "t_fee": "SELECT s.k, v, n FROM s [RANGE 5 s], fees WHERE s.k = fees.k",
    "late_seen": "SELECT k, v FROM late_rows [ROWS 5]",
}


def _frames(at: int, again: bool = False) -> list[list[Any]]:
    """Small frames of that second that wait together: of two writers, and of none; `again`: with
    those of the second before, which a writer sends once more as it has had no answer."""
    ts = at * SECOND
    key = ["abcd"[at % 4], None if at % 5 == 0 else "ab"[at % 2]]
    out: list[list[Any]] = [
        ["one", at, {"k": key, "v": [at % 6, at % 4], "t": [ts, ts - SECOND]}],
        ["two", at, {"k": ["c"], "v": [None if at % 3 == 0 else at % 5], "t": [ts + 300_000]}],
        [None, None, {"k": ["bob"], "v": [at % 7], "t": [ts]}],
        [None, None, {"k": ["a"], "v": [1], "t": [ts - (9 if at % 6 == 0 else 1) * SECOND]}],
    ]
    return [*_frames(at - 1)[:2], *out] if again else out


def _seconds(first: int, last: int, again: bool = False) -> list[Step]:
    out: list[Step] = []
    for at in range(first, last):
        ts = at * SECOND
        out.append(["group", "s", _frames(at, again and at == first)])
        out.append(["group", "young", [[None, None, f[2]] for f in _frames(at)[2:0:-1]]])
        out.append(["advance", ts])
    return out


BEFORE: list[Step] = [
    ["as", "alice", "CREATE QUERY al_young AS SELECT k, v FROM young [RANGE 10 s] WHERE v > 1"],
    ["as", "bob", "CREATE QUERY bo_young AS SELECT k, COUNT(*) FROM young [RANGE 10 s] GROUP BY k"],
    ["as", "bob", "CREATE QUERY bo_rows AS SELECT k, v FROM s [NOW] WHERE v > 1"],
    ["as", "bob", "CREATE QUERY bo_more AS SELECT k FROM s [NOW]", "DS680"],
    ["as", "bob", "SELECT salary FROM people", "DS201"],
    ["sql", "CREATE QUERY shown AS SELECT SUM(v) FROM s [RANGE 5 s]"],
    ["sql", "GRANT SUBSCRIBE ON shown TO staff"],
    *_seconds(1, 9),
    ["sql", "UPDATE people SET town = 'Bonn' WHERE name = 'carol'"],
    ["as", "alice", "GRANT SELECT ON fees TO carol", "DS670"],
    ["sql", "GRANT SELECT ON fees TO carol"],
    *_seconds(9, 14),
]
SINCE_CHECKPOINT: list[Step] = [
    *_seconds(14, 17),
    ["sql", "GRANT staff TO carol; ALTER ROLE staff WITH (queries = 1)"],
    ["as", "carol", "CREATE QUERY ca_young AS SELECT k, v FROM young [RANGE 20 s] WHERE v >= 0"],
    ["as", "carol", "CREATE QUERY ca_rows AS SELECT k, v FROM s [NOW]", "DS680"],
    ["sql", "CREATE QUERY i_newer AS SELECT k, v FROM s [NOW] WHERE v = 2 AND k = 'c'"],
    ["sql", "INSERT INTO people VALUES ('dora', 'Ulm', 20)"],
    *_seconds(17, 20),
]
AFTER: list[Step] = [
    *_seconds(20, 22, again=True),
    ["as", "bob", "CREATE QUERY bo_more AS SELECT k FROM s [NOW]", "DS680"],
    ["as", "carol", "CREATE QUERY ca_rows AS SELECT k, v FROM s [NOW]", "DS680"],
    ["as", "bob", "SELECT salary FROM people", "DS201"],
    ["sql", "DROP QUERY IF EXISTS i_v3"],
    ["sql", "REVOKE staff FROM carol"],  # her query stops
    *_seconds(22, 26),
    ["heartbeat", "s", 60 * SECOND],
    ["heartbeat", "young", 60 * SECOND],
    ["end", "s"],
    ["end", "young"],
]
ASKED: list[str | list[str]] = [
    "SHOW GRANTS",
    "SELECT * FROM people ORDER BY name",
    "SELECT * FROM fees ORDER BY k",
    "SELECT k, SUM(v) AS x FROM young [RANGE 10 s] GROUP BY k ORDER BY k",
    "SELECT COUNT(*) FROM s [RANGE 30 s]",
    ["SELECT k, SUM(v) AS x FROM young [RANGE 10 s] GROUP BY k ORDER BY k", "alice"],
    ["SELECT k, SUM(v) AS x FROM young [RANGE 10 s] GROUP BY k ORDER BY k", "bob"],
    ["SELECT k, COUNT(*) AS n FROM s [RANGE 10 s] GROUP BY k ORDER BY k", "bob"],
    ["SELECT * FROM people ORDER BY name", "bob"],
    ["SELECT * FROM fees ORDER BY k", "carol"],
    ["SELECT * FROM fees ORDER BY k", "bob"],
]
