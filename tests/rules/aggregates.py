"""Aggregates in wrong places, or over what they can not take."""

from __future__ import annotations

RULES: list[tuple[str, str, str, str | None]] = [
    ("DS396", "SELECT SUM(px ORDER BY ^qty) FROM trades", "SUM lists no values", "leave ORDER BY"),
    ("DS396", "SELECT FIRST_VALUE(px ORDER BY ^qty) FROM trades", "FIRST lists", "ARGMIN(x, y)"),
    ("DS355", "SELECT STRING_AGG(sym, ',' ORDER BY ^[qty]) FROM trades", "no order", "l[1]"),
    ("DS304", "SELECT ^ABS(px ORDER BY qty) FROM trades", "so ORDER BY has", "leave ORDER BY out"),
    ("DS304", "SELECT ^gm(px ORDER BY qty) FROM trades", "does not take ORDER BY", "leave"),
    ("DS304", "SELECT ^LAG(px ORDER BY qty) OVER () FROM trades", "does not take", "ORDER BY"),
    (
        "DS358",
        "SELECT COUNT(*) FROM trades GROUP BY ^CUBE (sym, px, px+1, px+2, px+3, px+4, px+5)",
        "128 grouping sets",
        "leave some out",
    ),
    (
        "DS359",
        "SELECT GROUPING(^px) FROM trades GROUP BY ROLLUP (sym)",
        "which is no key",
        "it takes sym",
    ),
    (
        "DS359",
        "SELECT ^GROUPING(sym) FROM trades [RANGE 1 h]",
        "where rows are not grouped",
        "GROUP BY",
    ),
    (
        "DS359",
        "SELECT sym FROM trades WHERE ^GROUPING(sym) = 0 GROUP BY ROLLUP (sym)",
        "where rows are not grouped",
        "HAVING",
    ),
    ("DS359", "SELECT ^GROUPING() FROM trades GROUP BY sym", "takes keys", "GROUPING(a)"),
    ("DS359", "SELECT ^GROUPING(DISTINCT sym) FROM trades GROUP BY sym", "takes keys", None),
    ("DS359", "SELECT ^GROUPING(*) FROM trades", "takes keys", "GROUPING(a)"),
    ("DS301", "SELECT sym FROM trades WHERE ^SUM(qty) > 1", "SUM can't stand in WHERE", "HAVING"),
    (
        "DS301",
        "SELECT sym FROM trades GROUP BY ^COUNT(*)",
        "COUNT can't stand in GROUP BY",
        "subquery",
    ),
    (
        "DS301",
        "SELECT * FROM trades t JOIN quotes q ON ^MAX(n) = qty",
        "MAX can't stand in ON",
        "subquery",
    ),
    (
        "DS301",
        "ONCE SELECT sym FROM trades ORDER BY ^COUNT(*)",
        "ORDER BY an aggregate",
        "GROUP BY",
    ),
    ("DS302", "SELECT MAX(^SUM(qty)) FROM trades", "SUM stands inside of an aggregate", "subquery"),
    (
        "DS302",
        "SELECT COUNT(*) FILTER (WHERE ^SUM(qty) > 1) FROM trades",
        "inside of an aggregate",
        "subquery",
    ),
    (
        "DS303",
        "SELECT ^sym, SUM(qty) FROM trades",
        "neither grouped nor aggregated",
        "GROUP BY sym",
    ),
    (
        "DS303",
        "SELECT sym, ^px FROM trades GROUP BY sym",
        "`px` is neither",
        "add px to GROUP BY (sym)",
    ),
    ("DS303", "SELECT sym FROM trades GROUP BY sym HAVING ^px > 1", "`px` is neither", "LAST(px)"),
    ("DS303", "SELECT ^* FROM trades GROUP BY sym", "`px` is neither", None),
    ("DS304", "SELECT ^SUM(*) FROM trades", "SUM does not take *", "COUNT(*)"),
    ("DS304", "SELECT ^*", "* needs a FROM", None),
    (
        "DS304",
        "SELECT ^UPPER(DISTINCT sym) FROM trades",
        "UPPER is no aggregate",
        "leave DISTINCT out",
    ),
    ("DS332", "ONCE SELECT DISTINCT sym FROM trades ORDER BY ^px", "with DISTINCT", "select list"),
    (
        "DS332",
        "ONCE SELECT sym FROM trades UNION SELECT sym FROM quotes ORDER BY sym ^|| 'a'",
        "set operation",
        None,
    ),
]
