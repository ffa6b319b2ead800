"""A bit of everything that can stand in a data folder: what is declared, and what comes before and
after a kill."""

from __future__ import annotations

from typing import Any

# ["rows", stream, columns] | ["heartbeat", stream, ts] | ["end", stream] | ["sql", text]
Step = list[Any]

SECOND = 1_000_000
DECLARED = """
CREATE STREAM late_rows (k STRING, v INT, f FLOAT, d DECIMAL(8, 2), t TIMESTAMP);
CREATE STREAM s (k STRING, v INT, f FLOAT, d DECIMAL(8, 2), t TIMESTAMP) TIMESTAMP BY t
    LATE INTO late_rows RETAIN 40 s WITH (durability = sync);
CREATE STREAM u (k STRING, w INT, t TIMESTAMP) TIMESTAMP BY t SLACK 3 s WITH (durability = interval);
CREATE STREAM n (k STRING, w INT, t TIMESTAMP) TIMESTAMP BY t SUBWINDOW 5 s RETAIN 20 s
    WITH (durability = none);
CREATE STREAM kept (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t
    ARCHIVE FOR 1 DAY UPDATE EVERY 1 h WITH (durability = interval);
CREATE STREAM now_stream (k STRING, v INT);
CREATE TABLE r (k STRING PRIMARY KEY, n INT);
INSERT INTO r VALUES ('a', 1), ('b', 2);
CREATE TABLE h (k STRING PRIMARY KEY, n INT) NON RETROACTIVE;
INSERT INTO h VALUES ('a', 10);
"""  # noqa: E501

QUERIES = {
    # continuous: groups, all families of aggregates
    "c_sums": "SELECT k, SUM(v), AVG(f), SUM(d), COUNT(*), VAR(f) FROM s [RANGE 20 s] GROUP BY k",
    "c_order": "SELECT k, MIN(v), MAX(f), FIRST(v), LAST(v), ARGMAX(v, f) FROM s [RANGE 20 s] "
    "GROUP BY k",
    "c_ranks": "SELECT k, MEDIAN(f), QUANTILE(v, 0.9), TOPK(v, 2) FROM s [RANGE 20 s] GROUP BY k",
    "c_distinct": "SELECT COUNT(DISTINCT k), SUM(DISTINCT v), BOOL_AND(v > 2) FROM s [RANGE 15 s]",
    "c_max": "SELECT MAX(v) FROM s [RANGE 15 s]",
    "c_rows": "SELECT k, SUM(v) FROM s [ROWS 7] GROUP BY k",
    "c_unbounded": "SELECT k, TOPK(v, 3), MAX(v), LAST(f) FROM s [RANGE UNBOUNDED] GROUP BY k",
    "c_since": "SELECT COUNT(*) FROM s [SINCE TIMESTAMP '1970-01-01 00:00:05']",
    "c_filter": "SELECT k, v * 2 AS w FROM s [RANGE 10 s] WHERE v > 3",
    # continuous: joins, negation, sets
    "j_time": "SELECT s.k, v, w FROM s [RANGE 20 s], u [RANGE 10 s] WHERE s.k = u.k AND v + w > 2",
    "j_rows": "SELECT s.k, v, w FROM s [ROWS 4], u [ROWS 5] WHERE s.k = u.k",
    "j_left": "SELECT s.k, v, w FROM s [RANGE 10 s] LEFT JOIN u [RANGE 10 s] ON s.k = u.k",
    "j_table": "SELECT s.k, v, n FROM s [RANGE 10 s], r WHERE s.k = r.k",
    "j_nrr": "SELECT s.k, v, n FROM s [RANGE 10 s], h WHERE s.k = h.k",
    "d_time": "SELECT DISTINCT k FROM s [RANGE 10 s]",
    "d_rows": "SELECT DISTINCT k FROM s [ROWS 5]",
    "e_minus": "SELECT k FROM s [RANGE 10 s] EXCEPT SELECT k FROM u [RANGE 10 s]",
    "e_cut": "SELECT k FROM s [RANGE 10 s] INTERSECT ALL SELECT k FROM u [RANGE 10 s]",
    "e_union": "SELECT k FROM s [RANGE 10 s] UNION SELECT k FROM u [RANGE 5 s]",
    "e_notin": "SELECT k FROM s [RANGE 10 s] WHERE k NOT IN (SELECT k FROM u [RANGE 10 s])",
    "e_exists": "SELECT k, v FROM s [RANGE 10 s] WHERE EXISTS (SELECT * FROM u [RANGE 10 s] WHERE "
    "u.k = s.k)",
    # other windows and outputs
    "w_until": "SELECT k, COUNT(*) FROM s [RANGE 20 s UNTIL 5 s AGO] GROUP BY k",
    "w_rows_until": "SELECT k, v FROM s [ROWS 6 UNTIL 2 AGO]",
    "w_part": "SELECT k, v FROM s [PARTITION BY k ROWS 2]",
    "w_now": "SELECT k, v FROM s [NOW]",
    "w_internal": "SELECT a.k, a.v, b.w FROM s [RANGE 10 s INTERNAL] a, u [RANGE 10 s INTERNAL] b "
    "WHERE a.k = b.k",
    "o_istream": "SELECT Istream(k, COUNT(*)) FROM s [RANGE 10 s] GROUP BY k",
    "o_dstream": "SELECT Dstream(k, v) FROM s [RANGE 10 s]",
    "o_wstream": "SELECT Wstream(k, v)[ROWS 3] FROM s [RANGE 10 s] WHERE v > 2",
    # periodic: shared synopses, joins of them, paths
    "p_sum1": "SELECT k, SUM(v), AVG(f), SUM(d) FROM s [RANGE 20 s SLIDE 5 s] GROUP BY k",
    "p_sum2": "SELECT k, SUM(v) FROM s [RANGE 10 s SLIDE 5 s] GROUP BY k",
    "p_less": "SELECT SUM(v) FROM s [RANGE 20 s SLIDE 5 s] WHERE v < 3",
    "p_more": "SELECT SUM(v) FROM s [RANGE 20 s SLIDE 5 s] WHERE v >= 3",
    "p_both": "SELECT SUM(v) FROM s [RANGE 20 s SLIDE 5 s] WHERE v < 3 OR v >= 3",
    "p_max": "SELECT k, MAX(v), ARGMIN(v, f), LAST(k) FROM s [RANGE 20 s SLIDE 5 s] GROUP BY k",
    "p_ranks": "SELECT MEDIAN(f), QUANTILE(v, 0.5), TOPK(k, 2), COUNT(DISTINCT k) FROM s [RANGE "
    "20 s SLIDE 5 s]",
    "p_sketch": "SELECT APPROX_COUNT_DISTINCT(k), APPROX_TOPK(k, 2), FREQUENT(k, 3) FROM s [RANGE "
    "20 s SLIDE 5 s]",
    "p_join1": "SELECT s.k, COUNT(*), SUM(v) FROM s [RANGE 20 s SLIDE 5 s], u [RANGE 10 s SLIDE 5 "
    "s] WHERE s.k = u.k GROUP BY s.k",
    "p_join2": "SELECT s.k, SUM(w) FROM s [RANGE 10 s SLIDE 5 s], u [RANGE 10 s SLIDE 5 s]"
    " WHERE s.k = u.k GROUP BY s.k",
    "p_rows": "SELECT k, SUM(v) FROM s [ROWS 6 SLIDE 3] GROUP BY k",
    "p_part": "SELECT k, SUM(v) FROM s [PARTITION BY k ROWS 3 SLIDE 2] GROUP BY k",
    "p_restore": "SELECT Istream-restore(k, COUNT(*)) FROM s [RANGE 3 s SLIDE 5 s] GROUP BY k",
    "p_ws": "SELECT k, w FROM n [RANGE 10 s SLIDE 5 s] ORDER BY w DESC LIMIT 3 WITH (path = ws)",
    "p_is": "SELECT k, COUNT(*) FROM s [RANGE 10 s SLIDE 5 s] GROUP BY k WITH (path = 'is')",
    "p_iss": "SELECT k, MAX(f) FROM s [RANGE 20 s SLIDE 5 s] GROUP BY k WITH (path = iss)",
    "p_own": "SELECT SUM(v) FROM s [RANGE 20 s SLIDE 10 s] WITH (synopsis = interval)",
    "p_elastic": "SELECT k, SUM(v) FROM s [RANGE 10 s SLIDE 5 s] GROUP BY k WITH (boundaries = "
    "elastic)",
    "p_zone": "SELECT COUNT(*) FROM s [RANGE 1 DAY SLIDE 1 DAY TIME ZONE 'Europe/Berlin']",
    "p_align": "SELECT COUNT(*) FROM s [RANGE 10 s SLIDE 5 s ALIGN TO TIMESTAMP '1970-01-01 "
    "00:00:02']",
    "p_append": "SELECT SUM(x) FROM (SELECT SUM(v) AS x FROM s [RANGE 5 s SLIDE 5 s INTERNAL]) "
    "[ROWS 3]",
    "l_sum": "SELECT SUM(v) FROM s [RANGE 20 s] ON LOOKUP",
    "l_top": "SELECT k, SUM(v) AS x FROM s [RANGE 20 s] GROUP BY k ORDER BY x DESC LIMIT 2 ON "
    "LOOKUP",
    "t_alone": "SELECT COUNT(*), SUM(n) FROM r",
    "f_stop": "SELECT 10 / (v - 4) AS x FROM s [RANGE 5 s] WITH (on_error = stop)",
    "f_null": "SELECT 10 / (v - 4) AS x FROM s [RANGE 5 s]",
    "a_kept": "SELECT k, SUM(v) FROM kept [RANGE 10 s SLIDE 5 s] GROUP BY k",
    "late_seen": "SELECT k, v FROM late_rows [ROWS 5]",
    "now_seen": "SELECT k, COUNT(*) FROM now_stream [RANGE 10 s] GROUP BY k",
}


def _rows(first: int, last: int, unkept: bool = True) -> list[Step]:
    """Rows of seconds first..last-1: ties, NULLs, late ones, some out of order on the stream with
    SLACK; `unkept`: also for the stream whose rows a kill takes with it."""
    out: list[Step] = []
    for at in range(first, last):
        ts = at * SECOND
        keys = ["abc"[at % 3], "ab"[at % 2], None if at % 7 == 0 else "d"]
        v = [at % 5, (at * 7) % 6, None if at % 4 == 0 else at % 3]
        f = [at / 4, float("nan") if at == 9 else -at / 3, 1e-3 * at]
        d = [f"{at}.25", f"-{at}.50", None]
        when = [ts, ts, ts + 400_000]
        if at % 6 == 5:
            when[1] = ts - 4 * SECOND  # late
        out.append(["rows", "s", {"k": keys, "v": v, "f": f, "d": d, "t": when}])
        shuffled = [ts + 500_000, ts - (at % 3) * SECOND]
        out.append(["rows", "u", {"k": keys[:2], "w": [at % 4, 1], "t": shuffled}])
        if unkept:
            out.append(["rows", "n", {"k": keys[:1], "w": [at], "t": [ts]}])
        out.append(["rows", "kept", {"k": keys[:1], "v": [at], "t": [ts]}])
        out.append(["advance", ts])
        out.append(["rows", "now_stream", {"k": keys[:2], "v": [at, at + 1]}])
    return out


BEFORE: list[Step] = [
    *_rows(1, 16),
    ["sql", "INSERT INTO r VALUES ('c', 3)"],
    ["sql", "UPDATE h SET n = 11 WHERE k = 'a'"],
    *_rows(16, 24),
]
SINCE_CHECKPOINT: list[Step] = [
    *_rows(24, 28, unkept=False),
    ["sql", "DELETE FROM r WHERE k = 'b'"],
    ["sql", "CREATE QUERY newer AS SELECT k, COUNT(*) FROM s [RANGE 10 s SLIDE 5 s] GROUP BY k"],
    *_rows(28, 31, unkept=False),
]
AFTER: list[Step] = [
    *_rows(31, 40),
    ["sql", "INSERT INTO r VALUES ('b', 5) AT TIMESTAMP '1970-01-01 00:00:39.5'"],
    ["sql", "INSERT INTO h VALUES ('c', 7) AT TIMESTAMP '1970-01-01 00:00:39.5'"],
    *_rows(40, 45),
    ["heartbeat", "s", 70 * SECOND],
    ["heartbeat", "u", 70 * SECOND],
    ["heartbeat", "n", 70 * SECOND],
    ["heartbeat", "kept", 70 * SECOND],
    ["end", "s"],
    ["end", "u"],
]
ASKED = [
    "LOOKUP l_sum",
    "LOOKUP l_top",
    "SELECT k, SUM(v) AS x FROM s [RANGE 20 s] GROUP BY k ORDER BY k",
    "SELECT COUNT(*) FROM n [RANGE 10 s]",
    "SELECT * FROM r ORDER BY k",
    "SELECT * FROM h ORDER BY k",
]
