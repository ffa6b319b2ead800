"""What OVER can't look at, where it can't stand, and what QUALIFY can't ask."""

from __future__ import annotations

IN_ORDER = "SELECT SUM(px) OVER"
RULES: list[tuple[str, str, str, str | None]] = [
    ("DS372", f"{IN_ORDER} (ORDER BY ^px) FROM trades", "another", "leave ORDER BY out"),
    ("DS372", f"{IN_ORDER} (ORDER BY ^ts DESC) FROM trades", "another", "without DESC"),
    ("DS372", f"{IN_ORDER} (ORDER BY ts, ^px) FROM trades", "order of the stream", "leave"),
    ("DS372", "SELECT ^RANK() OVER () FROM trades", "an order of its own", "ROW_NUMBER()"),
    ("DS372", "SELECT ^ABS(px) OVER () FROM trades", "can't stand before", "aggregates can"),
    ("DS372", "SELECT ^NTH_VALUE(px, 2) OVER () FROM trades", "can't stand before", "LAG"),
    ("DS372", "SELECT LAG(px, ^px) OVER () FROM trades", "constant number", "from 0 to"),
    ("DS372", "SELECT LAG(px, ^-1) OVER () FROM trades", "constant number", "from 0 to"),
    ("DS372", "SELECT LAG(px) OVER (^ROWS 2 PRECEDING) FROM trades", "no frame", "leave ROWS"),
    (
        "DS372",
        f"{IN_ORDER} (ROWS BETWEEN 3 PRECEDING AND ^1 PRECEDING) FROM trades",
        "end with the row itself",
        "LAG",
    ),
    (
        "DS372",
        "SELECT ^APPROX_COUNT_DISTINCT(px) OVER () FROM trades",
        "does not follow single rows",
        "exact",
    ),
    ("DS304", "SELECT ^ROW_NUMBER(*) OVER () FROM trades", "does not take *", "leave * out"),
    ("DS207", "SELECT ^LAG() OVER () FROM trades", "does not take 0", "LAG(x)"),
    ("DS207", "SELECT ^ROW_NUMBER(px) OVER () FROM trades", "does not take 1", "ROW_NUMBER()"),
    ("DS373", "SELECT px FROM trades WHERE ^LAG(px) OVER () > px", "in WHERE", "a subquery"),
    (
        "DS373",
        "SELECT SUM(^LAG(px) OVER ()) OVER () FROM trades",
        "in an aggregate (SUM)",
        "a subquery",
    ),
    ("DS373", "SELECT LAG(^LAG(px) OVER ()) OVER () FROM trades", "another OVER", "a subquery"),
    ("DS373", "SELECT ^LAG(px) OVER () FROM trades a, trades b", "here are several", "q JOIN"),
    ("DS373", "SELECT ^LAG(1) OVER ()", "there is none", "a subquery"),
    (
        "DS373",
        "SELECT sym, ^SUM(COUNT(*)) OVER () FROM trades GROUP BY sym",
        "here they are groups",
        "Istream",
    ),
    (
        "DS373",
        "SELECT ^LAG(px) OVER () FROM trades WHERE sym IN (SELECT sym FROM quotes)",
        "subqueries in it",
        "a subquery",
    ),
    ("DS373", "SELECT ^LAG(sym) OVER () FROM limits", "updated and deleted", "Istream"),
    ("DS373", "SELECT ^LAG(sym) OVER () FROM prices", "KEY", "Istream"),
    (
        "DS373",
        "SELECT ^LAG(px) OVER () FROM trades [RANGE 2 s UNTIL 1 s AGO]",
        "not in this window when it comes",
        "UNTIL",
    ),
    (
        "DS373",
        "SELECT ^LAG(px) OVER () FROM trades [RANGE 1 DAY SLIDE 1 DAY TIME ZONE 'Europe/Paris']",
        "days of a calendar",
        "24 HOURS",
    ),
    (
        "DS373",
        "SELECT ^LAG(px) OVER () FROM trades [PARTITION BY sym ROWS 5]",
        "its own keys",
        "PARTITION BY sym",
    ),
    (
        "DS373",
        "CREATE QUERY q AS SELECT LAG(px) OVER () FROM trades [^ROWS 5 SLIDE 2]",
        "a SLIDE in rows",
        "EVERY",
    ),
    (
        "DS373",
        "SELECT ^LAG(n) OVER () FROM (SELECT sym, COUNT(*) AS n FROM trades GROUP BY sym) q",
        "one current answer",
        "Istream",
    ),
    ("DS374", "SELECT ^LEAD(px) OVER () FROM trades", "yet to come", "LAG(px)"),
    (
        "DS374",
        f"{IN_ORDER} (ROWS BETWEEN 1 PRECEDING AND ^1 FOLLOWING) FROM trades",
        "yet to come",
        "CURRENT ROW",
    ),
    (
        "DS382",
        "SELECT sym, ROW_NUMBER() OVER (ORDER BY ^px) AS n FROM trades",
        "whenever a row comes",
        "QUALIFY ROW_NUMBER()",
    ),
    ("DS382", "SELECT px FROM trades QUALIFY px ^> 1", "there are none", "WHERE"),
    (
        "DS382",
        "SELECT px FROM trades QUALIFY ROW_NUMBER() OVER (ORDER BY px) <= 3 AND px ^> 2",
        "says more",
        "a subquery",
    ),
    (
        "DS382",
        "SELECT ^* FROM (SELECT px, ROW_NUMBER() OVER (ORDER BY px) AS rn FROM trades) "
        "WHERE rn <= 3",
        "* shows rn",
        "name the columns",
    ),
    (
        "DS382",
        "SELECT px, ^rn FROM (SELECT px, ROW_NUMBER() OVER (ORDER BY px) AS rn FROM trades) "
        "WHERE rn <= 3",
        "whenever a row comes",
        "name the columns",
    ),
    (
        "DS382",
        "SELECT px FROM (SELECT px, ROW_NUMBER() OVER (ORDER BY px) AS rn FROM trades "
        "QUALIFY px ^> AVG(px) OVER ()) WHERE rn <= 3",
        "have been numbered",
        "a subquery of its own",
    ),
    (
        "DS382",
        "SELECT px FROM trades QUALIFY ROW_NUMBER() OVER (PARTITION BY sym ORDER BY ^1) <= 3",
        "the same of all rows",
        "name the column",
    ),
    ("DS382", "SELECT DISTINCT ON (^sym) px FROM trades", "which comes first", "ORDER BY"),
    (
        "DS382",
        "SELECT DISTINCT ON (^sym) px FROM trades ORDER BY px LIMIT 3",
        "one of each key",
        "a subquery",
    ),
    (
        "DS382",
        "SELECT DISTINCT ON (^sym) px FROM trades UNION SELECT px FROM trades",
        "a whole query",
        "a subquery",
    ),
]
