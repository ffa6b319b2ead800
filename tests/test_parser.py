"""Text to AST and back: constructs, names, places, round trips of random trees, complaints, hostile
input."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import QueryError
from dsms.sql import ast, grammar, literals
from dsms.sql.ast import Duration, Ident, Pos, Unit
from dsms.sql.binder.typenames import TYPE_NAMES
from dsms.sql.parser import parse, parse_one, split_statements
from dsms.sql.printer import to_sql
from tests.effort import examples
from tests.sql_trees import statements as random_statements

SECOND = 1_000_000


def select(text: str) -> ast.Select:
    statement = parse_one(text)
    assert isinstance(statement, ast.SelectStatement)
    assert isinstance(statement.query.body, ast.Select)
    return statement.query.body


def expr(text: str) -> ast.Expr:
    (item,) = select(f"SELECT {text}").items
    assert isinstance(item, ast.SelectItem)
    return item.expr


def window(text: str) -> ast.Window:
    (item,) = select(f"SELECT * FROM s [{text}]").from_
    assert isinstance(item, ast.TableRef)
    assert item.window is not None
    return item.window


def col(name: str) -> ast.ColumnRef:
    return ast.ColumnRef(Ident(name))


def seconds(n: float, unit: Unit = Unit.SECOND) -> Duration:
    return Duration(int(n * SECOND), unit)


# ---------------------------------------------------------------- expressions


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("a OR b AND NOT c = d", "a OR (b AND (NOT (c = d)))"),
        ("NOT a IS NULL", "NOT (a IS NULL)"),
        ("a = b IS NOT TRUE", "(a = b) IS NOT TRUE"),
        ("a + b * c - d", "(a + (b * c)) - d"),
        ("a - b - c", "(a - b) - c"),
        ("a || b + c", "a || (b + c)"),
        ("a / b % c", "(a / b) % c"),
        ("-a::INT", "-(CAST(a AS INT))"),
        ("- - a", "-(-a)"),
        ("a < b + 1 AND c BETWEEN d AND e + 1", "(a < (b + 1)) AND (c BETWEEN d AND (e + 1))"),
        ("a NOT IN (1, 2) = b", "(a NOT IN (1, 2)) = b"),
        ("a LIKE 'x' || b ESCAPE '!'", "a LIKE ('x' || b) ESCAPE '!'"),
        ("a::INT::FLOAT", "CAST(CAST(a AS INT) AS FLOAT)"),
        ("a IS DISTINCT FROM b IS TRUE", "(a IS DISTINCT FROM b) IS TRUE"),
        ("+a", "a"),
        ("a != b", "a <> b"),
        ("((a))", "a"),
        ("a IN ((SELECT 1))", "a IN (SELECT 1)"),
    ],
)
def test_precedence(text: str, full: str) -> None:
    assert expr(text) == expr(full)


def test_and_or_take_all_operands_of_a_chain() -> None:
    assert expr("a AND b AND c") == ast.And((col("a"), col("b"), col("c")))
    assert expr("(a AND b) AND c") == ast.And((ast.And((col("a"), col("b"))), col("c")))
    assert expr("a OR b OR c") == ast.Or((col("a"), col("b"), col("c")))


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("1", ast.IntLit(1)),
        ("-1", ast.IntLit(-1)),
        ("-9223372036854775808", ast.IntLit(-(2**63))),
        ("1.50", ast.FloatLit(1.5)),
        (".5e-3", ast.FloatLit(0.0005)),
        ("-1e3", ast.FloatLit(-1000.0)),
        ("DECIMAL '01.50'", ast.DecimalLit("1.50")),
        ("DECIMAL '-.5'", ast.DecimalLit("-0.5")),
        ("'it''s'", ast.StringLit("it's")),
        ("''", ast.StringLit("")),
        ("x'00Ff'", ast.BytesLit(b"\x00\xff")),
        ("TRUE", ast.BoolLit(True)),
        ("null", ast.NullLit()),
        ("INTERVAL '5' MINUTE", ast.IntervalLit(seconds(300, Unit.MINUTE))),
        ("INTERVAL 5 MINUTES", ast.IntervalLit(seconds(300, Unit.MINUTE))),
        ("INTERVAL '-1.5 hours'", ast.IntervalLit(seconds(-5400, Unit.MINUTE))),
        ("INTERVAL 250ms", ast.IntervalLit(Duration(250_000, Unit.MILLISECOND))),
        ("TIMESTAMP '1970-01-01 00:00:01.5'", ast.TimestampLit(1_500_000)),
        ("TIMESTAMP '1970-01-01T02:00:00+02:00'", ast.TimestampLit(0)),
        ("DATE '1969-12-31'", ast.TypedLit("DATE", -86_400_000_000)),
        ("TIME '0:00:00.5'", ast.TypedLit("TIME", 500_000)),
        ('"Odd ""name"""', ast.ColumnRef(Ident('Odd "name"', True))),
        ("t.c", ast.ColumnRef(Ident("c"), Ident("t"))),
        ("COUNT(*)", ast.FuncCall(Ident("COUNT"), star=True)),
        ("COUNT(DISTINCT a)", ast.FuncCall(Ident("COUNT"), (col("a"),), distinct=True)),
        ("f()", ast.FuncCall(Ident("f"))),
        ("LEFT(a, 2)", ast.FuncCall(Ident("LEFT"), (col("a"), ast.IntLit(2)))),
        ("EXTRACT(HOUR FROM t)", ast.FuncCall(Ident("EXTRACT"), (ast.StringLit("hour"), col("t")))),
        ("SUM(a) FILTER (WHERE b)", ast.FuncCall(Ident("SUM"), (col("a"),), filter=col("b"))),
        (
            "CASE a WHEN 1 THEN b ELSE c END",
            ast.Case((ast.When(ast.IntLit(1), col("b")),), col("a"), col("c")),
        ),
        ("CASE WHEN a THEN b END", ast.Case((ast.When(col("a"), col("b")),))),
        ("CAST(a AS decimal(10, 2))", ast.Cast(col("a"), ast.TypeName("DECIMAL", (10, 2)))),
        ("(a, b) IN (SELECT 1, 2)", None),
        ("(SELECT MAX(a) FROM s)", None),
        ("EXISTS ((SELECT 1) UNION SELECT 2)", None),
    ],
)
def test_expression(text: str, node: ast.Expr | None) -> None:
    found = expr(text)
    assert node is None or found == node
    assert expr(to_sql(found)) == found


# ---------------------------------------------------------------- windows


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("RANGE 300", ast.RangeWindow(seconds(300))),
        ("range 10 SECONDS", ast.RangeWindow(seconds(10))),
        ("RANGE 250 ms", ast.RangeWindow(Duration(250_000, Unit.MILLISECOND))),
        ("RANGE 10s", ast.RangeWindow(seconds(10))),
        ("RANGE 1.5 h", ast.RangeWindow(seconds(5400, Unit.MINUTE))),
        ("RANGE 1 MONTH", ast.RangeWindow(Duration(0, Unit.MONTH, 1))),
        (
            "WINDOW 2 h SLIDE 5",
            ast.RangeWindow(seconds(7200, Unit.HOUR), slide=ast.Slide(seconds(5))),
        ),
        ("RANGE 10 UNTIL 5 AGO", ast.RangeWindow(seconds(10), seconds(5))),
        ("ROWS 10", ast.RowsWindow(10)),
        ("ROWS 10 SLIDE 5", ast.RowsWindow(10, slide=ast.Slide(5))),
        ("ROWS 10 SLIDE 5 ROWS", ast.RowsWindow(10, slide=ast.Slide(5))),
        ("ROWS 10 SLIDE 5 s", ast.RowsWindow(10, slide=ast.Slide(seconds(5)))),
        ("ROWS 10 UNTIL 5 AGO", ast.RowsWindow(10, 5)),
        (
            "PARTITION BY a, t.b ROWS 3",
            ast.RowsWindow(3, None, (col("a"), ast.ColumnRef(Ident("b"), Ident("t")))),
        ),
        (
            "PARTITION BY a ROWS 3 UNTIL 1 AGO RANGE 10",
            ast.RowsWindow(3, 1, (col("a"),), seconds(10)),
        ),
        (
            "PARTITION BY a EVERY 10 UNTIL 1 AGO",
            ast.ThrottledWindow(seconds(10), seconds(1), (col("a"),)),
        ),
        ("PARTITION BY a, b FIRST 3", ast.FirstWindow(3, (col("a"), col("b")))),
        ("RANGE 10 SLIDE 5 ROWS", ast.RangeWindow(seconds(10), slide=ast.Slide(5))),
        ("NOW", ast.NowWindow()),
        ("NOW INTERNAL", ast.NowWindow(internal=True)),
        ("RANGE UNBOUNDED", ast.UnboundedWindow()),
        ("UNBOUNDED SLIDE 1 h", ast.UnboundedWindow(slide=ast.Slide(seconds(3600, Unit.HOUR)))),
        ("ROWS UNBOUNDED", ast.UnboundedWindow()),
        ("RANGE UNBOUNDED UNTIL 5 AGO", ast.UnboundedWindow(seconds(5))),
        ("UNBOUNDED UNTIL 5 AGO INTERNAL", ast.UnboundedWindow(seconds(5), internal=True)),
        ("SINCE 10 s UNTIL 5 AGO", ast.LandmarkWindow(ast.Instant(10 * SECOND), seconds(5))),
        ("SINCE '1970-01-01 00:00:10'", ast.LandmarkWindow(ast.Instant(10 * SECOND))),
        ("SINCE TIMESTAMP '1970-01-01'", ast.LandmarkWindow(ast.Instant(0))),
        ("VALID UNTIL a", ast.LastingWindow(col("a"))),
        (
            "RANGE (a) UNTIL 5 AGO INTERNAL",
            ast.LastingWindow(col("a"), True, seconds(5), internal=True),
        ),
        ("SINCE 10 s", ast.LandmarkWindow(ast.Instant(10 * SECOND))),
        ("SESSION 10 s", ast.SessionWindow(seconds(10))),
        ("SESSION 10 BY a INTERNAL", ast.SessionWindow(seconds(10), (col("a"),), internal=True)),
        ("SESSION (a) BY b, c", ast.SessionWindow(col("a"), (col("b"), col("c")))),
        ("WHEN a UNTIL b", ast.WhenWindow(col("a"), col("b"))),
        (
            "WHEN a UNTIL b BY c SLIDE 5 s",
            ast.WhenWindow(col("a"), col("b"), (col("c"),), slide=ast.Slide(seconds(5))),
        ),
        ("RANGE 2 h ARCHIVE", ast.RangeWindow(seconds(7200, Unit.HOUR), archive=True)),
        (
            "RANGE 6 SLIDE 6 INTERNAL",
            ast.RangeWindow(seconds(6), internal=True, slide=ast.Slide(seconds(6))),
        ),
        (
            "RANGE 6 INTERNAL SLIDE 6",
            ast.RangeWindow(seconds(6), internal=True, slide=ast.Slide(seconds(6))),
        ),
        (
            "RANGE 1 DAY SLIDE 1 DAY ALIGN TO 1 h TIME ZONE 'Europe/Berlin'",
            ast.RangeWindow(
                seconds(86400, Unit.DAY),
                slide=ast.Slide(
                    seconds(86400, Unit.DAY), ast.Instant(3600 * SECOND), "Europe/Berlin"
                ),
            ),
        ),
    ],
)
def test_window(text: str, node: ast.Window) -> None:
    found = window(text)
    assert found == node
    assert window(to_sql(found)) == found


# ---------------------------------------------------------------- queries


def test_set_operations_bind_as_in_sql() -> None:
    def body(text: str) -> object:
        statement = parse_one(text)
        assert isinstance(statement, ast.SelectStatement)
        return statement.query.body

    a, b, c = (select(f"SELECT {x}") for x in "abc")
    union, intersect, minus = ast.SetOpKind.UNION, ast.SetOpKind.INTERSECT, ast.SetOpKind.EXCEPT
    assert body("SELECT a UNION SELECT b INTERSECT SELECT c") == ast.SetOp(
        union, a, ast.SetOp(intersect, b, c)
    )
    assert body("SELECT a EXCEPT SELECT b UNION ALL SELECT c") == ast.SetOp(
        union, ast.SetOp(minus, a, b), c, True
    )
    assert body("SELECT a EXCEPT (SELECT b UNION SELECT c)") == ast.SetOp(
        minus, a, ast.SetOp(union, b, c)
    )
    assert body("((SELECT a)) UNION DISTINCT SELECT b") == ast.SetOp(union, a, b)
    limited = body("SELECT a UNION (SELECT b LIMIT 1)")
    assert isinstance(limited, ast.SetOp)
    assert limited.right == ast.Query(b, limit=1)


def test_joins() -> None:
    (join,) = select(
        "SELECT * FROM a JOIN b ON x LEFT OUTER JOIN (c CROSS JOIN d) USING (k, l)"
    ).from_
    a, b, c, d = (ast.TableRef(Ident(x)) for x in "abcd")
    inner = ast.Join(ast.JoinKind.INNER, a, b, col("x"))
    cross = ast.Join(ast.JoinKind.CROSS, c, d)
    assert join == ast.Join(ast.JoinKind.LEFT, inner, cross, None, (Ident("k"), Ident("l")))


@pytest.mark.parametrize("text", ["s [NOW] x", "s [NOW] AS x", "s x [NOW]", "s AS x [NOW]"])
def test_alias_before_or_behind_the_window(text: str) -> None:
    assert select(f"SELECT * FROM {text}").from_ == (
        ast.TableRef(Ident("s"), Ident("x"), ast.NowWindow()),
    )


def test_archive_in_from() -> None:
    (item,) = select("SELECT * FROM ARCHIVE s [RANGE 7 DAYS] x").from_
    assert item == ast.TableRef(
        Ident("s"), Ident("x"), ast.RangeWindow(seconds(7 * 86400, Unit.DAY)), True
    )
    (plain,) = select("SELECT * FROM archive").from_
    assert plain == ast.TableRef(Ident("archive"))


SOFT = [word for word in grammar.keywords() if word not in grammar.reserved() and "-" not in word]


@pytest.mark.parametrize("word", SOFT)
def test_soft_words_are_names(word: str) -> None:
    """RANGE, ROWS, SLIDE, ...: columns, aliases after AS, qualifiers, streams; as columns of CREATE
    save PRIMARY."""
    word = word.lower()
    name = Ident(word)
    text = (
        f"SELECT {word}, {word} + 1 AS {word}, {word}.{word}, {word}.* FROM {word} WHERE "
        f"{word} > 1 AND f({word})"
    )
    found = select(f"{text} GROUP BY {word} HAVING {word} > 2")
    assert found.items[1] == ast.SelectItem(
        ast.Binary("+", ast.ColumnRef(name), ast.IntLit(1)), name
    )
    assert found.items[3] == ast.StarItem(name)
    assert found.from_ == (ast.TableRef(name),)
    assert found.group_by == (ast.ColumnRef(name),)
    assert select(f"SELECT a FROM s [PARTITION BY {word} ROWS 2] AS {word}").from_[
        0
    ] == ast.TableRef(Ident("s"), name, ast.RowsWindow(2, None, (ast.ColumnRef(name),)))
    if word not in ("primary", "if"):
        created = parse_one(f"CREATE TABLE {word} ({word} INT)")
        assert isinstance(created, ast.CreateTable)
        assert created.columns[0].name == created.name == name


NEED_AS = [
    "ARCHIVE",
    "ASC",
    "AT",
    "DESC",
    "ESCAPE",
    "FILTER",
    "NULLS",
    "QUALIFY",
    "ROWS",
    "WINDOW",
]  # as grammar/reference.md says


@pytest.mark.parametrize("word", [word for word in SOFT if word not in NEED_AS])
def test_soft_words_are_bare_aliases(word: str) -> None:
    found = select(
        f"SELECT a {word}, f(a) {word}, 1 {word} FROM s {word}, t {word} [NOW], r [NOW] {word}"
    )
    assert {item.alias for item in found.items if isinstance(item, ast.SelectItem)} == {Ident(word)}
    assert {item.alias for item in found.from_ if isinstance(item, ast.TableRef)} == {Ident(word)}


@pytest.mark.parametrize(
    "type_", ["BOOL", "INT", "FLOAT", "DECIMAL(3,1)", "STRING", "BYTES", "TIMESTAMP", "INTERVAL"]
)
def test_type_words_stand_behind_names(type_: str) -> None:
    parse_one(f"CREATE STREAM s (a {type_}, b {type_} NOT NULL)")
    parse_one(f"CREATE TABLE s (a {type_} PRIMARY KEY)")
    parse_one(f"SELECT a::{type_} b, CAST(a AS {type_}), a::{type_} + 1")


@pytest.mark.parametrize("word", sorted(grammar.reserved()))
def test_reserved_words_are_names_when_quoted(word: str) -> None:
    assert select(f'SELECT "{word}" FROM "{word}"').from_ == (ast.TableRef(Ident(word, True)),)
    with pytest.raises(QueryError):
        parse(f"SELECT a FROM {word}")


def test_names_keep_their_spelling_and_match_in_any_case() -> None:
    ident = select("SELECT * FROM MyStream").from_[0]
    assert isinstance(ident, ast.TableRef)
    assert ident.name == Ident("MyStream")
    assert ident.name.matches("mySTREAM")
    assert not Ident("MyStream", True).matches("mystream")
    assert select("SELECT größe FROM s").items == (ast.SelectItem(col("größe")),)


# ---------------------------------------------------------------- statements

STATEMENTS = """
CREATE STREAM IF NOT EXISTS s (a INT NOT NULL, b FLOAT NULL, t TIMESTAMP) TIMESTAMP BY t UNIT ms SLACK 5 s LATE INTO l
    MAX FUTURE 1 h IDLE TIMEOUT 30 s SUBWINDOW 1 min RETAIN 2 h INDEX BY (a, t) ARCHIVE FOR 30 DAYS CLUSTER BY a UPDATE EVERY 10 min
    WITH (durability = sync, priority = 5, ratio = -0.5, note = 'two words', on_error = null, flush = 10 s, x = TRUE);
CREATE STREAM s (d DECIMAL(10, 2)) LATE DROP ARCHIVE;
CREATE TABLE r (k INT PRIMARY KEY, v STRING) NON RETROACTIVE;
CREATE TABLE r (k INT, l INT, PRIMARY KEY (k, l)) WITH (durability = none);
CREATE QUERY q AS SELECT a FROM s [RANGE 1 min] ON LOOKUP ARCHIVE FOR 3 DAYS WITH (strategy = upa);
CREATE QUERY IF NOT EXISTS q AS SELECT a FROM s WINDOW 1 min WITH (strategy = upa);
CREATE QUERY q AS SELECT a FROM s JOIN r ON s.a = r.k ON LOOKUP;
DROP STREAM s; DROP TABLE IF EXISTS r; DROP QUERY q;
DESCRIBE s; DESCRIBE QUERY q;
SHOW STREAMS; SHOW tables; SHOW QUERIES; SHOW WINDOWS; SHOW SHARING; SHOW SETTINGS; SHOW SESSIONS; SHOW MEMORY;
CANCEL SESSION 3; close session 12;
INSERT INTO r VALUES (1, 'x'), (2, NULL) AT '2013-01-01';
INSERT INTO r (k, v) SELECT a, b FROM s AT 10 s;
UPDATE r SET v = 'y', k = k + 1 WHERE k = 1 AT TIMESTAMP '2013-01-01 10:00:00';
DELETE FROM r; DELETE FROM r WHERE k = 1;
EXPLAIN SELECT a FROM s WITH (strategy = nt);
EXPLAIN ANALYZE FORMAT mermaid QUERY q;
EXPLAIN CREATE QUERY q AS SELECT 1;
SET scheduler = ttu; SET limit_bytes TO 1000; SET statement_timeout = '5 s'; SET statement_timeout TO 1500 ms;
LOOKUP q;
SELECT a FROM s ORDER BY a DESC NULLS FIRST, b LIMIT 10 OFFSET 5
"""  # noqa: E501


@pytest.mark.parametrize("text", split_statements(STATEMENTS))
def test_statement_prints_back(text: str) -> None:
    statement = parse_one(text)
    assert parse_one(to_sql(statement)) == statement


def test_stream_clauses() -> None:
    stream = parse(STATEMENTS)[0]
    assert isinstance(stream, ast.CreateStream)
    assert stream.if_not_exists
    assert stream.columns[0] == ast.ColumnDef(Ident("a"), ast.TypeName("INT"), True)
    assert stream.timestamp == ast.TimestampBy(Ident("t"), "ms")
    assert stream.late == ast.Late(Ident("l"))
    assert stream.slack == seconds(5)
    assert stream.archive == ast.Archive(
        seconds(30 * 86400, Unit.DAY), Ident("a"), Duration(600 * SECOND, Unit.MINUTE)
    )
    values = {o.name.text: o.value for o in stream.options}
    assert values == {
        "durability": "sync",
        "priority": 5,
        "ratio": -0.5,
        "note": "two words",
        "on_error": "null",
        "flush": seconds(10),
        "x": True,
    }


def test_inline_and_separate_primary_key_are_one() -> None:
    inline = parse_one("CREATE TABLE r (k INT PRIMARY KEY)")
    assert inline == parse_one("CREATE TABLE r (k INT, PRIMARY KEY (k))")


# ---------------------------------------------------------------- round trips


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@settings(
    max_examples=examples(200),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(random_statements())
def test_printed_trees_parse_back(statement: ast.Statement) -> None:
    assert parse_one(to_sql(statement)) == statement


@given(st.integers(-(2**61), 2**61), st.sampled_from(list(literals.MICROS)))
def test_durations_print_back(micros: int, unit: Unit) -> None:
    text = literals.duration_text(Duration(micros, unit))
    number, word = text.split()
    again = literals.duration(number, word, Pos(1, 1))
    assert again.micros == micros
    assert literals.duration_text(again) == text


@given(st.datetimes())
def test_instants_print_back(moment: object) -> None:
    micros = literals.instant(str(moment), Pos(1, 1))
    assert literals.instant(literals.instant_text(micros), Pos(1, 1)) == micros


@pytest.mark.parametrize("name", TYPE_NAMES)
def test_every_name_of_a_type_is_one(name: str):
    engine = Engine()
    engine.execute(
        f"CREATE STREAM s (c {name}, t TIMESTAMP) TIMESTAMP BY t; SELECT CAST(NULL AS "
        f"{name.lower()})"
    )
    assert engine.streams()[0].schema[0].type == TYPE_NAMES[name]


@pytest.mark.parametrize(
    "text", ["SELECT ٣", "SELECT ٣.5", "SELECT INTERVAL '٣ s'", "SELECT 1 FROM s [RANGE ٣ s]"]
)
def test_digits_are_those_of_ascii(text: str):
    with pytest.raises(QueryError):
        Engine().execute(text)
