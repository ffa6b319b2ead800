"""Every error of the binder: a snippet that produces it, where it points to, and what its message
says."""

from __future__ import annotations

import pytest

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.binder import (
    bind_create_query,
    bind_create_stream,
    bind_create_table,
    bind_lookup,
    bind_query,
    bind_table_statement,
)
from dsms.sql.catalog import Catalog
from dsms.sql.codes import CODES
from dsms.sql.parser import parse, parse_one

SCHEMA = """
CREATE STREAM trades (sym STRING, px FLOAT, qty INT, ts TIMESTAMP) TIMESTAMP BY ts;
CREATE STREAM quotes (sym STRING, bid FLOAT, ask FLOAT, n INT);
CREATE STREAM late_trades (sym STRING, px FLOAT, qty INT, ts TIMESTAMP);
CREATE STREAM kept (sym STRING, qty INT) ARCHIVE FOR 1 h;
CREATE TABLE listed (sym STRING PRIMARY KEY, name STRING, lot INT) NON RETROACTIVE;
CREATE TABLE limits (sym STRING PRIMARY KEY, top INT NOT NULL, since TIMESTAMP, share DECIMAL(4,2));
CREATE QUERY busy AS SELECT sym, COUNT(*) AS n FROM trades [RANGE 10] GROUP BY sym;
CREATE QUERY ready AS SELECT SUM(qty) FROM trades [RANGE 10] ON LOOKUP;
"""


def declared(text: str) -> Catalog:
    catalog = Catalog()
    for statement in parse(text):
        declare(statement, catalog)
    return catalog


def declare(statement: ast.Statement, catalog: Catalog) -> None:
    match statement:
        case ast.CreateStream():
            stream = bind_create_stream(statement, catalog)
            catalog.streams[catalog.key(stream.name)] = stream
        case ast.CreateTable():
            table = bind_create_table(statement, catalog)
            catalog.tables[catalog.key(table.name)] = table
        case ast.CreateQuery():
            query, _ = bind_create_query(statement, catalog)
            catalog.queries[catalog.key(query.name)] = query


def run(text: str, catalog: Catalog) -> None:
    """Binds one statement of any kind.  A leading ONCE makes a SELECT a one-time query."""
    once = text.startswith("ONCE ")
    statement = parse_one(text.removeprefix("ONCE "))
    if isinstance(statement, ast.SelectStatement):
        bind_query(statement, catalog, persistent=not once)
    elif isinstance(statement, ast.Lookup):
        bind_lookup(statement, catalog)
    elif isinstance(statement, ast.Insert | ast.Update | ast.Delete):
        bind_table_statement(statement, catalog)
    else:
        declare(statement, catalog)


# code, statement (the fault starts at ^), a part of the message, a part of the hint
RULES = [
    # ---- names
    ("DS201", "SELECT ^prize FROM trades", "unknown column `prize`", "sym, px, qty, ts"),
    ("DS201", "SELECT ^pxx FROM trades", "unknown column `pxx`", "did you mean px?"),
    (
        "DS201",
        "SELECT * FROM trades WHERE sym = ^IBM",
        "unknown column `IBM`",
        "for text write 'IBM'",
    ),
    (
        "DS201",
        "SELECT px AS p FROM trades WHERE ^p > 1",
        "unknown column `p`",
        "an alias of the select list",
    ),
    ("DS201", "SELECT ^a", "unknown column `a`", "no FROM clause"),
    ("DS201", "SELECT t.^bid FROM trades t", "unknown column `t.bid`", "sym, px, qty, ts"),
    ("DS201", 'SELECT ^"PX" FROM trades', "unknown column `PX`", "did you mean px?"),
    ("DS201", "SELECT * FROM trades JOIN quotes USING (^px)", "USING names `px`", "bid"),
    ("DS201", "CREATE STREAM z (a INT) TIMESTAMP BY ^b", "unknown column `b`", "a"),
    (
        "DS201",
        "SELECT * FROM (SELECT sym FROM trades) [PARTITION BY ^qty ROWS 2]",
        "unknown column",
        "sym",
    ),
    ("DS201", "UPDATE limits SET ^topp = 1", "unknown column `topp`", "did you mean top?"),
    ("DS202", "SELECT ^sym FROM trades, quotes", "`sym` is ambiguous", "trades.sym or quotes.sym"),
    ("DS203", "SELECT * FROM ^trade", "unknown stream or table `trade`", "did you mean trades?"),
    ("DS203", "INSERT INTO ^limit_ VALUES (1)", "unknown table `limit_`", "did you mean limits?"),
    (
        "DS203",
        "CREATE STREAM z (t TIMESTAMP) TIMESTAMP BY t LATE INTO ^latee",
        "unknown stream `latee`",
        "late_trades",
    ),
    ("DS204", "SELECT ^x.px FROM trades", "nothing in FROM is called `x`", "trades"),
    ("DS204", "SELECT ^trades.px FROM trades t", "`trades` is called t", "write t"),
    ("DS204", "SELECT ^x.* FROM trades", "nothing in FROM is called `x`", "trades"),
    ("DS205", "SELECT * FROM trades [NOW], ^trades [NOW]", "stands in FROM twice", "alias"),
    ("DS206", "SELECT ^sqroot(px) FROM trades", "unknown function `sqroot`", "did you mean SQRT?"),
    ("DS206", "SELECT EXTRACT(^millennium FROM ts) FROM trades", "no field `millennium`", "year"),
    ("DS213", "CREATE STREAM ^Limits (a INT)", "taken by a table", "DROP TABLE limits"),
    ("DS213", "CREATE QUERY ^trades AS SELECT 1", "taken by a stream", "DROP STREAM trades"),
    ("DS213", "CREATE TABLE IF NOT EXISTS ^busy (a INT)", "taken by a query", "DROP QUERY busy"),
    ("DS216", "INSERT INTO ^trades VALUES (1)", "trades is a stream", "ingest"),
    ("DS216", "DELETE FROM ^busy", "busy is a query", "name a table"),
    (
        "DS216",
        "CREATE STREAM z (t TIMESTAMP) TIMESTAMP BY t LATE INTO ^limits",
        "limits is a table",
        "name a stream",
    ),
    ("DS219", "SELECT sym FROM trades GROUP BY ^2", "GROUP BY 2", "from 1 to 1"),
    ("DS219", "ONCE SELECT sym FROM trades ORDER BY ^3", "ORDER BY 3", "from 1 to 1"),
    (
        "DS222",
        "SELECT * FROM trades [RANGE 10 ^SLIDE 10 TIME ZONE 'Europe/Berlim']",
        "time zone",
        "'Europe/Berlin'",
    ),
    (
        "DS222",
        "SELECT ^DATE_TRUNC('day', ts, 'Nowhere') FROM trades",
        "unknown time zone 'Nowhere'",
        "write a name such as 'America/New_York'",
    ),
    (
        "DS222",
        "SELECT ^DATE_TRUNC('day', ts, 'Europe/Berlim') FROM trades",
        "unknown time zone",
        "did you mean 'Europe/Berlin'?",
    ),
    ("DS209", "SELECT * FROM trades WHERE NOT ^sym", "NOT expects a condition", "x <> ''"),
    ("DS209", "SELECT * FROM trades WHERE ^ts", "WHERE expects", "x > TIMESTAMP '2020-01-01'"),
    # ---- types
    ("DS207", "SELECT ^upper(px) FROM trades", "UPPER(FLOAT) does not exist", "upper(STRING)"),
    ("DS207", "SELECT ^SUM(sym) FROM trades", "SUM(STRING) does not exist", "sum(INT)"),
    ("DS207", "SELECT QUANTILE(px, ^qty) FROM trades", "constant phi", "0.95"),
    ("DS207", "SELECT ^QUANTILE(px, 2) FROM trades", "from 0 to 1", None),
    ("DS207", "SELECT sym LIKE 'a' ESCAPE ^sym FROM trades", "ESCAPE takes a constant", None),
    (
        "DS208",
        "SELECT * FROM trades WHERE sym ^= 1",
        "STRING = INT is not possible",
        "CAST(x AS INT)",
    ),
    (
        "DS208",
        "SELECT ts ^+ 1 FROM trades",
        "TIMESTAMP + INT is not possible",
        "INTERVAL '5' MINUTE",
    ),
    (
        "DS208",
        "SELECT * FROM trades WHERE ts ^> '2013-01-01'",
        "TIMESTAMP > STRING",
        "TIMESTAMP '2013-01-01 00:00:00'",
    ),
    ("DS208", "SELECT ^CASE WHEN TRUE THEN 1 ELSE 'a' END", "none in common: ", "CAST"),
    ("DS208", "SELECT ^COALESCE(sym, 1) FROM trades", "COALESCE needs values of one type", "CAST"),
    ("DS208", "SELECT * FROM trades WHERE ^qty IN (1, 'a')", "IN needs values of one type", "CAST"),
    (
        "DS208",
        "^SELECT sym FROM trades UNION SELECT qty FROM trades",
        "STRING on the left and INT",
        "CAST",
    ),
    ("DS208", "SELECT ^CAST(ts AS INT) FROM trades", "can't be cast", None),
    (
        "DS208",
        "SELECT * FROM trades t WHERE ^qty IN (SELECT sym FROM quotes [NOW])",
        "INT = STRING",
        "CAST",
    ),
    (
        "DS209",
        "SELECT * FROM trades WHERE ^qty",
        "WHERE expects a condition, and this is INT",
        "<> 0",
    ),
    ("DS209", "SELECT * FROM trades WHERE TRUE OR ^qty", "OR expects a condition", "<> 0"),
    ("DS209", "SELECT * FROM trades JOIN quotes ON ^n", "ON expects a condition", "<> 0"),
    ("DS210", "CREATE STREAM z (a ^INTT)", "unknown type `INTT`", "did you mean INT?"),
    ("DS210", "SELECT CAST(px AS ^DUBLE) FROM trades", "unknown type `DUBLE`", None),
    (
        "DS211",
        "CREATE STREAM z (a ^DECIMAL(50,2))",
        "does not exist with these arguments",
        "1 <= p <= 38",
    ),
    ("DS211", "CREATE STREAM z (a ^INT(3))", "INT takes no arguments", None),
    (
        "DS217",
        "^SELECT sym FROM trades UNION SELECT sym, qty FROM trades",
        "1 and 2",
        "as many columns",
    ),
    ("DS217", "INSERT INTO limits VALUES (^'a')", "1 values for 4 columns", "one value per column"),
    (
        "DS217",
        "SELECT * FROM trades WHERE ^qty IN (SELECT n, ask FROM quotes)",
        "1 column with a subquery of 2",
        None,
    ),
    ("DS217", "SELECT * FROM trades WHERE (qty, px) IN (^1)", "rows of 2 values", None),
    ("DS217", "SELECT ^(qty, px) FROM trades", "a row of values", None),
    (
        "DS218",
        "INSERT INTO limits (sym, top) VALUES ('a', ^'b')",
        "top is INT, and the value is STRING",
        "CAST",
    ),
    ("DS218", "INSERT INTO limits (sym, top) VALUES ('a', ^NULL)", "top is NOT NULL", None),
    ("DS218", "INSERT INTO limits (^sym) VALUES ('a')", "top is NOT NULL and gets no value", None),
    (
        "DS218",
        "INSERT INTO limits (sym, top, since) VALUES ('a', 1, ^'2013-01-01')",
        "TIMESTAMP",
        "TIMESTAMP '",
    ),
    (
        "DS218",
        "UPDATE limits SET top = ^1.5",
        "top is INT, and the value is FLOAT",
        "CAST(x AS INT)",
    ),
    # ---- definitions
    ("DS212", "CREATE STREAM z (a INT, ^A FLOAT)", "declared twice", None),
    ("DS212", "INSERT INTO limits (sym, ^sym) VALUES ('a', 'b')", "named twice", None),
    ("DS212", "UPDATE limits SET top = 1, ^top = 2", "set twice", None),
    (
        "DS214",
        "CREATE QUERY q AS SELECT 1 WITH (^stragety = upa)",
        "unknown option",
        "did you mean strategy?",
    ),
    ("DS214", "CREATE STREAM z (a INT) WITH (^strategy = upa)", "unknown option", "description"),
    (
        "DS215",
        "CREATE QUERY q AS SELECT 1 WITH (^strategy = fast)",
        "upa or direct or nt",
        "'fast'",
    ),
    (
        "DS214",
        "CREATE TABLE z (a INT) WITH (^strategy = upa)",
        "unknown option",
        "a table takes no options",
    ),
    ("DS215", "CREATE STREAM z (a INT) WITH (^description = 5)", "a text", "5"),
    ("DS215", "SELECT 1 WITH (^optimize = 5)", "TRUE or FALSE", "5"),
    ("DS215", "SELECT 1 WITH (^partitions = 0)", "at least 1", "0"),
    (
        "DS223",
        "CREATE STREAM z (a STRING) TIMESTAMP BY ^a",
        "needs a TIMESTAMP or INT column",
        None,
    ),
    (
        "DS224",
        "CREATE STREAM z (a INT) TIMESTAMP BY ^a",
        "needs a UNIT, and none is given",
        "UNIT s",
    ),
    (
        "DS224",
        "CREATE STREAM z (a TIMESTAMP) TIMESTAMP BY ^a UNIT s",
        "whose unit is known",
        "leave UNIT out",
    ),
    (
        "DS225",
        "CREATE STREAM z (t TIMESTAMP) TIMESTAMP BY t LATE INTO ^trades",
        "(TIMESTAMP), and trades has",
        None,
    ),
    ("DS226", "CREATE TABLE z (a INT, PRIMARY KEY (a, ^a))", "names `a` twice", None),
    ("DS227", "CREATE STREAM z (a INT) RETAIN ^0 s", "RETAIN must be positive", "10 SECONDS"),
    (
        "DS227",
        "SELECT * FROM trades [RANGE 1 YEAR UNTIL ^1 MONTH AGO SLIDE 1 DAY]",
        "needs a fixed length",
        "DAY",
    ),
    ("DS227", "SELECT * FROM trades [RANGE ^1 MONTH]", "needs a SLIDE", "SLIDE"),
    ("DS228", "CREATE STREAM z (a INT) SLACK ^1 s", "needs event time", "TIMESTAMP BY"),
    # ---- aggregates
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
    # ---- windows
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
    ("DS308", "SELECT * FROM trades [RANGE 10 ^SLIDE 0]", "must be positive", "leave SLIDE out"),
    ("DS308", "SELECT * FROM trades [ROWS 10 ^SLIDE 2 s]", "counts rows", None),
    (
        "DS309",
        "SELECT * FROM trades [RANGE 10 SLIDE 5], quotes [RANGE 10 ^SLIDE 2]",
        "one SLIDE governs",
        "split",
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
    # ---- queries
    (
        "DS318",
        "SELECT * FROM trades [NOW] ORDER BY ^px",
        "a continuous query reports changes",
        "SLIDE",
    ),
    (
        "DS318",
        "^SELECT * FROM trades [NOW] LIMIT 5",
        "LIMIT needs an answer that is given as a whole",
        "SLIDE",
    ),
    (
        "DS319",
        "ONCE SELECT * FROM (SELECT * FROM trades ORDER BY ^px)",
        "not to a subquery",
        "outermost",
    ),
    (
        "DS320",
        "SELECT * FROM trades WHERE px > 1 OR ^EXISTS (SELECT * FROM quotes)",
        "inside of an OR",
        "UNION",
    ),
    (
        "DS320",
        "SELECT ^EXISTS (SELECT * FROM quotes) FROM trades",
        "can only stand in WHERE",
        "AND",
    ),
    (
        "DS321",
        "SELECT * FROM trades WHERE px > ^(SELECT MAX(bid) FROM quotes)",
        "can't stand for a value",
        "FROM",
    ),
    (
        "DS322",
        "SELECT * FROM trades, (SELECT * FROM quotes WHERE bid < ^px) x",
        "can't be reached",
        "its own FROM",
    ),
    (
        "DS322",
        "SELECT * FROM trades WHERE EXISTS (SELECT n FROM quotes GROUP BY n HAVING n > ^qty)",
        "can't be reached",
        "EXISTS and IN",
    ),
    (
        "DS323",
        "SELECT * FROM ^listed l LEFT JOIN trades t ON t.sym = l.sym",
        "rows of listed without",
        "kept side",
    ),
    (
        "DS323",
        "SELECT * FROM trades t RIGHT JOIN ^listed l ON t.sym = l.sym",
        "RIGHT JOIN would keep",
        None,
    ),
    (
        "DS323",
        "SELECT * FROM trades t FULL JOIN ^listed l ON t.sym = l.sym",
        "FULL JOIN would keep",
        None,
    ),
    ("DS324", "SELECT * FROM ^listed", "non-retroactive", "without NON RETROACTIVE"),
    ("DS324", "SELECT * FROM limits, ^listed", "non-retroactive", None),
    (
        "DS324",
        "SELECT * FROM trades t WHERE EXISTS (SELECT * FROM ^listed WHERE lot = qty)",
        "here is",
        "primary key",
    ),
    (
        "DS324",
        "SELECT * FROM trades t WHERE ^sym NOT IN (SELECT sym FROM listed)",
        "NOT IN can't",
        "NOT EXISTS",
    ),
    ("DS325", "SELECT * FROM ^busy", "persistent queries read streams and tables", "subquery"),
    (
        "DS327",
        "SELECT sym, SUM(^Wstream(SUM(qty))[ROWS 2]) FROM trades [RANGE 5] GROUP BY sym",
        "GROUP BY",
        "FROM",
    ),
    (
        "DS327",
        "SELECT SUM(Wstream(SUM(qty))[ROWS 2]), ^px FROM trades [RANGE 5]",
        "`px` can't be read",
        "inside",
    ),
    (
        "DS327",
        "SELECT SUM(Wstream(SUM(qty))[ROWS 2]), SUM(^Wstream(SUM(px))[ROWS 3]) FROM trades [RANGE "
        "5]",
        "these differ",
        "same window",
    ),
    (
        "DS327",
        "SELECT SUM(Wstream(SUM(qty))[ROWS 2]), ^* FROM trades [RANGE 5]",
        "* has no meaning",
        None,
    ),
    (
        "DS327",
        "^SELECT Wstream(sym)[ROWS 2] FROM trades UNION ALL SELECT sym FROM quotes",
        "operand",
        "into FROM",
    ),
    (
        "DS328",
        "SELECT * FROM (SELECT ^Dstream(*) FROM trades [NOW])",
        "not of a subquery",
        "Istream",
    ),
    (
        "DS328",
        "SELECT Istream(sym) FROM trades UNION SELECT ^Rstream(sym) FROM quotes",
        "different outputs",
        None,
    ),
    (
        "DS329",
        "CREATE QUERY q AS SELECT SUM(qty) FROM trades [RANGE 10 ^SLIDE 5] ON LOOKUP",
        "ON LOOKUP and SLIDE contradict",
        "leave out SLIDE",
    ),
    (
        "DS329",
        "CREATE QUERY q AS SELECT ^Istream(sym) FROM trades [RANGE 10] ON LOOKUP",
        "Istream reports changes",
        "leave Istream out",
    ),
    (
        "DS329",
        "CREATE QUERY q AS SELECT ^Dstream(sym) FROM trades [RANGE 10] ON LOOKUP",
        "Dstream reports",
        None,
    ),
    ("DS329", "CREATE QUERY q AS ^SELECT 1 ON LOOKUP", "reads none", "leave ON LOOKUP out"),
    ("DS329", "CREATE QUERY q AS ^SELECT sym FROM limits ON LOOKUP", "reads none", None),
    ("DS329", "LOOKUP ^busy", "not registered ON LOOKUP", "register it with ON LOOKUP"),
    ("DS203", "LOOKUP ^reay", "no query reay", "did you mean ready"),
    ("DS216", "LOOKUP ^trades", "trades is a stream", "SELECT * FROM trades"),
    (
        "DS331",
        "SELECT ^APPROX_COUNT_DISTINCT(sym) FROM trades [RANGE 10]",
        "put together from sub-windows",
        "add SLIDE",
    ),
    (
        "DS331",
        "SELECT sym, ^APPROX_QUANTILE(px, 0.5) AS m FROM trades [ROWS 9] GROUP BY sym",
        "sub-windows",
        "SLIDE",
    ),
    (
        "DS331",
        "SELECT length(^APPROX_TOPK(sym, 3)) FROM trades",
        "APPROX_TOPK is put together",
        "ask once",
    ),
    (
        "DS331",
        "SELECT * FROM (SELECT ^FREQUENT(sym, 3) AS f FROM trades [NOW]) x",
        "FREQUENT is put together",
        "SLIDE",
    ),
    (
        "DS207",
        "SELECT ^FREQUENT(sym, 0) FROM trades [RANGE 10 SLIDE 5]",
        "k from 1 to 1000000",
        None,
    ),
    (
        "DS207",
        "SELECT FREQUENT(sym, ^qty) FROM trades [RANGE 10 SLIDE 5]",
        "expects a constant k",
        None,
    ),
    (
        "DS207",
        "SELECT ^APPROX_COUNT_DISTINCT(sym, 30) FROM trades [RANGE 10 SLIDE 5]",
        "lg_k from 4 to 21",
        None,
    ),
    (
        "DS207",
        "SELECT ^APPROX_QUANTILE(px, 2) FROM trades [RANGE 10 SLIDE 5]",
        "share from 0 to 1",
        None,
    ),
    (
        "DS207",
        "SELECT ^APPROX_QUANTILE(px, 0.5, 3) FROM trades [RANGE 10 SLIDE 5]",
        "size from 8 to 65535",
        None,
    ),
    (
        "DS207",
        "SELECT ^APPROX_QUANTILE(sym, 0.5) FROM trades [RANGE 10 SLIDE 5]",
        "does not exist",
        "(FLOAT) -> FLOAT",
    ),
    # ---- archives (more in test_archive_language.py)
    (
        "DS390",
        "ONCE SELECT * FROM ARCHIVE ^trades",
        "stream trades has no archive",
        "ARCHIVE FOR 30 DAYS",
    ),
    ("DS391", "SELECT * FROM ^ARCHIVE kept", "a persistent query follows what comes", "ask once"),
    (
        "DS392",
        "ONCE SELECT * FROM kept [^RANGE 2 h ARCHIVE]",
        "keeps rows for 1 h",
        "FROM ARCHIVE kept",
    ),
    ("DS329", "ONCE SELECT * FROM ^ready", "registered ON LOOKUP", "LOOKUP ready"),
    (
        "DS305",
        "ONCE SELECT * FROM busy [^ROWS 3]",
        "windows are for streams",
        "leave the window out",
    ),
]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return declared(SCHEMA)


@pytest.mark.parametrize(
    ("code", "text", "message", "hint"), RULES, ids=[f"{r[0]}: {r[1][:60]}" for r in RULES]
)
def test_rule(code: str, text: str, message: str, hint: str | None, catalog: Catalog) -> None:
    marked = text.removeprefix("ONCE ")
    with pytest.raises(QueryError) as caught:
        run(text.replace("^", ""), catalog)
    error = caught.value
    assert (error.code, message in error.message) == (code, True), error
    assert (error.line, error.column) == (1, marked.index("^") + 1), error
    assert hint is None or hint in (error.hint or ""), error


def test_every_code_has_a_snippet() -> None:
    assert {r[0] for r in RULES} == set(CODES)
