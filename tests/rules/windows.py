"""Windows that have no meaning, or not there."""

from __future__ import annotations

RULES: list[tuple[str, str, str, str | None]] = [
    ("DS305", "SELECT * FROM limits [^RANGE 10]", "limits is a table", "leave the window out"),
    (
        "DS306",
        "SELECT * FROM (SELECT SUM(qty) FROM trades [RANGE 6 SLIDE 6]) [^ROWS 10]",
        "one current answer",
        "Istream",
    ),
    ("DS306", "SELECT * FROM (SELECT * FROM trades [RANGE 6]) [^ROWS 10]", "slide on", "Istream"),
    (
        "DS306",
        "SELECT * FROM (SELECT DISTINCT sym FROM trades [RANGE 6]) [^ROWS 10]",
        "DISTINCT leave",
        None,
    ),
    (
        "DS306",
        "SELECT * FROM (SELECT sym FROM trades [NOW] WHERE NOT EXISTS (SELECT * FROM quotes)) "
        "[^ROWS 10]",
        "negation are taken back",
        None,
    ),
    ("DS306", "SELECT * FROM (SELECT * FROM limits) [^ROWS 10]", "updated and deleted", None),
    (
        "DS306",
        "SELECT * FROM (SELECT * FROM trades t LEFT JOIN quotes q ON t.sym = q.sym) [^NOW]",
        "padded row",
        None,
    ),
    ("DS307", "SELECT * FROM trades [RANGE ^0]", "RANGE 0 holds nothing", "write NOW"),
    ("DS307", "SELECT * FROM trades [^ROWS 0]", "ROWS 0 holds nothing", "at least 1"),
    ("DS227", "SELECT * FROM trades [SESSION ^0 s BY sym]", "must be positive", "10 SECONDS"),
    ("DS227", "SELECT * FROM trades [SESSION ^1 MONTH]", "fixed length", "DAY"),
    (
        "DS307",
        "SELECT * FROM trades [SESSION (^INTERVAL '0' SECOND)]",
        "hold nothing",
        "SESSION 10 s",
    ),
    (
        "DS338",
        "SELECT * FROM trades [SESSION (^qty) BY sym]",
        "an INTERVAL, and this is INT",
        "n * INTERVAL '1' SECOND",
    ),
    (
        "DS338",
        "ONCE SELECT * FROM trades [WHEN ts ^< NOW() UNTIL qty = 0]",
        "NOW() is of the answer",
        "column of the row",
    ),
    (
        "DS209",
        "SELECT * FROM trades [WHEN qty > 1 UNTIL ^qty]",
        "UNTIL expects a condition",
        "x <> 0",
    ),
    (
        "DS348",
        "SELECT COUNT(*) FROM trades [^SESSION 10 s BY sym INTERNAL]",
        "GROUP BY has not got sym",
        "add sym to GROUP BY",
    ),
    (
        "DS349",
        "SELECT t.sym, COUNT(*) FROM trades [^SESSION 10 s BY sym INTERNAL] t "
        "JOIN quotes [NOW] q ON t.sym = q.sym GROUP BY t.sym",
        "reads more than that window",
        "JOIN",
    ),
    (
        "DS349",
        "SELECT sym, COUNT(*) FROM trades [^SESSION 10 s BY sym INTERNAL SLIDE 5 s] GROUP BY sym",
        "not by SLIDE",
        "leave SLIDE out",
    ),
    (
        "DS308",
        "SELECT * FROM trades [^SESSION 10 s], quotes [ROWS 10 SLIDE 5]",
        "beside SESSION",
        "EVERY 10 s",
    ),
    ("DS308", "SELECT * FROM trades [RANGE 10 ^SLIDE 0]", "must be positive", "leave SLIDE out"),
    ("DS308", "SELECT * FROM trades [ROWS 10 ^SLIDE 2 s]", "counts rows", "EVERY 2 s"),
    (
        "DS309",
        "SELECT * FROM trades [RANGE 10 SLIDE 5], quotes [RANGE 10 ^SLIDE 2]",
        "one SLIDE governs",
        "SELECT * FROM trades [RANGE 10 s], quotes [RANGE 10 s] EVERY 5 s",
    ),
    (
        "DS309",
        "SELECT sym FROM trades [RANGE 10 ^SLIDE 5] ORDER BY sym EVERY 2 s",
        "this SLIDE says otherwise",
        "FROM trades [RANGE 10 s] ORDER BY sym EVERY 2 s",
    ),
    (
        "DS309",
        "SELECT a FROM (SELECT SUM(qty) AS a FROM trades [RANGE 6 SLIDE 6 INTERNAL]) [ROWS 2], "
        "(SELECT SUM(n) AS b FROM quotes [RANGE 5 ^SLIDE 5 INTERNAL]) [ROWS 3]",
        "one SLIDE governs",
        "(SELECT SUM(n) AS b FROM quotes [RANGE 5 s INTERNAL SLIDE 5 s]) [ROWS 3] EVERY 6 s",
    ),
    (
        "DS309",
        "SELECT SUM(a) FROM (SELECT SUM(qty) AS a FROM trades [ROWS 6 ^SLIDE 6 INTERNAL]) [ROWS 2] "
        "EVERY 5 s",
        "this SLIDE says otherwise",
        "FROM trades [ROWS 6 INTERNAL]) [ROWS 2] EVERY 5 s",
    ),
    (
        "DS309",
        "SELECT Istream-restore(a) FROM (SELECT SUM(qty) AS a FROM trades [RANGE 6 ^SLIDE 6 "
        "INTERNAL]) [ROWS 2] EVERY 5 s",
        "this SLIDE says otherwise",
        "FROM trades [RANGE 6 s INTERNAL]) [ROWS 2] EVERY 5 s",
    ),
    ("DS308", "SELECT * FROM trades [NOW] ^EVERY 0 s", "must be positive", "EVERY 10 SECONDS"),
    (
        "DS310",
        "SELECT * FROM trades [NOW] ^EVERY 7 h TIME ZONE 'Europe/Paris'",
        "divide the day",
        "24 hours",
    ),
    (
        "DS310",
        "SELECT * FROM trades [^RANGE 1.000001 s] EVERY 1 h",
        "RANGE and EVERY have no common measure",
        "round",
    ),
    ("DS222", "SELECT * FROM trades [NOW] ^EVERY 1 h TIME ZONE 'Europe/Pari'", "unknown", "Paris"),
    ("DS344", "SELECT top FROM limits ^EVERY 5 s", "reads none", "leave EVERY out"),
    (
        "DS344",
        "SELECT sym FROM trades, (SELECT top FROM limits ^EVERY 5 s) x",
        "reads none",
        "leave EVERY out",
    ),
    (
        "DS344",
        "SELECT sym FROM trades t WHERE EXISTS (SELECT 1 FROM quotes q WHERE q.sym = t.sym "
        "^EVERY 5 s)",
        "not a subquery",
        "outermost",
    ),
    (
        "DS310",
        "SELECT * FROM trades [RANGE 1 h ^SLIDE 1000001 us]",
        "no common measure longer than",
        "round",
    ),
    (
        "DS310",
        "SELECT * FROM trades [RANGE 1 h ^SLIDE 7 h TIME ZONE 'Europe/Paris']",
        "divide the day",
        "24 hours",
    ),
    ("DS311", "SELECT ^Istream-restore(*) FROM trades", "needs windows with a SLIDE", "SLIDE"),
    (
        "DS311",
        "SELECT Rstream-restore(*) FROM trades [RANGE 10 SLIDE 5], quotes [^RANGE 10]",
        "needs the same SLIDE on all windows",
        "leave -restore out",
    ),
    (
        "DS312",
        "SELECT ^Wstream-restore(*)[ROWS 5] FROM trades [RANGE 10 SLIDE 5]",
        "has no meaning",
        "Wstream",
    ),
    (
        "DS313",
        "SELECT * FROM trades [RANGE 10 UNTIL ^10 AGO]",
        "UNTIL must be shorter",
        "10000000 us",
    ),
    ("DS313", "SELECT * FROM trades [^ROWS 5 UNTIL 5 AGO]", "UNTIL must be less", "ROWS 6"),
    (
        "DS314",
        "SELECT DISTINCT sym FROM trades [^RANGE 10 INTERNAL]",
        "DISTINCT would keep",
        "leave INTERNAL out",
    ),
    (
        "DS314",
        "SELECT ^Wstream(DISTINCT sym)[ROWS 5] FROM trades [RANGE 10]",
        "DISTINCT would keep",
        "leave Wstream",
    ),
    (
        "DS314",
        "SELECT sym FROM trades [^RANGE 10 INTERNAL] UNION SELECT sym FROM quotes [NOW]",
        "UNION removes duplicates",
        "UNION ALL",
    ),
    (
        "DS315",
        "SELECT * FROM trades t [RANGE 10 INTERNAL] WHERE ^NOT EXISTS (SELECT * FROM quotes q "
        "WHERE q.n = t.qty)",
        "negation takes results back",
        "leave INTERNAL out",
    ),
    (
        "DS315",
        "SELECT sym FROM trades [NOW] WHERE ^qty NOT IN (SELECT n FROM quotes [RANGE 10 INTERNAL])",
        "negation takes results back",
        None,
    ),
    (
        "DS315",
        "SELECT sym FROM trades [NOW] EXCEPT SELECT sym FROM quotes [^RANGE 10 INTERNAL]",
        "EXCEPT takes results back",
        None,
    ),
    (
        "DS315",
        "SELECT * FROM ^trades t [RANGE 10 INTERNAL] LEFT JOIN quotes q [RANGE 10 INTERNAL] ON "
        "t.sym = q.sym",
        "an outer join takes its padded rows back",
        None,
    ),
    (
        "DS316",
        "SELECT * FROM trades [RANGE 10 INTERNAL], quotes [^ROWS 10]",
        "can't be mixed",
        "mark this window INTERNAL",
    ),
    ("DS317", "SELECT * FROM limits ^WINDOW 10", "there is none", "put a stream"),
    ("DS317", "SELECT * FROM trades [^NOW], quotes WINDOW 10", "a window of its own", "leave one"),
    (
        "DS345",
        "SELECT sym, ^WINDOW_END() FROM trades [RANGE 10]",
        "a continuous query has none",
        "SELECT sym, WINDOW_END() FROM trades [RANGE 10 s] EVERY 10 s",
    ),
    (
        "DS345",
        "SELECT ^WINDOW_START() FROM trades [ROWS 10] EVERY 5 s",
        "this query has none",
        "[RANGE 10 s]",
    ),
    (
        "DS345",
        "SELECT ^WINDOW_START() FROM trades [RANGE 10], quotes [RANGE 5] EVERY 5 s",
        "several that differ",
        "the same length",
    ),
    ("DS345", "SELECT ^WINDOW_END() FROM trades [ROWS 10 SLIDE 5]", "counts rows", "EVERY 10 s"),
    (
        "DS345",
        "SELECT sym FROM trades [RANGE 10] WHERE ts < ^WINDOW_END() EVERY 5 s",
        "outermost SELECT",
        "SELECT WINDOW_END() AS at",
    ),
    (
        "DS345",
        "CREATE QUERY q AS SELECT ^WINDOW_END() FROM trades [RANGE 10] ON LOOKUP",
        "no boundaries",
        "leave WINDOW_END out",
    ),
    ("DS207", "SELECT ^WINDOW_END(1) FROM trades [NOW] EVERY 5 s", "no arguments", "WINDOW_END()"),
    (
        "DS364",
        "CREATE QUERY q AS SELECT sym FROM trades [RANGE 10] GROUP BY sym HAVING COUNT(*) > 3 "
        "WITH (^approximate = 0.1)",
        "follows each row",
        "give it a SLIDE",
    ),
    (
        "DS334",
        "CREATE QUERY q AS SELECT a.sym FROM trades [NOW] a, trades [ROWS 5] b WHERE a.sym = b.sym "
        "WITH (max_state = 1000, ^over = shed)",
        "counts rows",
        "inner joins of windows in time",
    ),
    (
        "DS334",
        "CREATE QUERY q AS SELECT a.sym FROM trades [NOW] a, trades [NOW] b WHERE a.sym = b.sym "
        "ORDER BY a.px LIMIT 3 PER a.sym WITH (max_state = 1000, ^over = shed)",
        "may come in when others leave",
        "inner joins of windows in time",
    ),
    (
        "DS362",
        "CREATE QUERY q AS SELECT a.sym FROM trades [NOW] a, trades [NOW] b WHERE a.sym = b.sym "
        "WITH (^over = shed)",
        "when rows are let go",
        "max_state",
    ),
    ("DS361", "SELECT COUNT(*) FROM trades WITH (^shed = scale)", "no weights", "shed = random"),
    (
        "DS366",
        "SELECT COUNT(*) FROM trades WITH (^sample = scale)",
        "one sample",
        "SAMPLE p PERCENT",
    ),
    (
        "DS366",
        "SELECT COUNT(*) FROM trades ^SAMPLE 10 PERCENT BY sym WITH (sample = scale)",
        "drawn together",
        "leave BY out",
    ),
    (
        "DS366",
        "SELECT ^MAX(qty) FROM trades SAMPLE 10 PERCENT WITH (sample = scale)",
        "that MAX misses",
        "leave it out",
    ),
    ("DS346", "SELECT ^INSTANT() FROM trades", "takes the name", "INSTANT(s)"),
    ("DS346", "SELECT ^INSTANT(quotes) FROM quotes", "stamped when they come", "TIMESTAMP BY"),
    ("DS346", "SELECT INSTANT(^limits) FROM trades, limits", "no stream of this FROM", "trades"),
    ("DS346", "SELECT INSTANT(^x) FROM (SELECT * FROM trades) x", "no stream", "not of a subquery"),
    ("DS237", "SELECT * FROM prices [^ROWS 5]", "windows that count rows", "[RANGE 10 SECONDS]"),
    (
        "DS237",
        "SELECT * FROM prices [^RANGE 5 INTERNAL]",
        "INTERNAL windows keep",
        "[RANGE 10 SECONDS]",
    ),
    ("DS306", "SELECT * FROM (SELECT * FROM prices) p [^NOW]", "replaced and deleted", "Istream"),
]
