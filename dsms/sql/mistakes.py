"""Common mistakes, each a broken snippet: a text that breaks at the same point of the grammar gets its message.

A snippet fails in some state of the parser (its two topmost, to be exact) on some token; the text at hand is the same
mistake if it fails in the same state on a token of the same kind.  To add one, write the snippet and what to say about
it; the tests check that every snippet reaches its own mistake.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from lark.exceptions import UnexpectedInput, UnexpectedToken

from dsms.errors import QueryError
from dsms.sql.grammar import parser


@dataclass(frozen=True, slots=True)
class Mistake:
    """`message` may name the offending text as {found}."""

    message: str
    hint: str | None
    snippets: tuple[str, ...]
    after: str | None = None  # only if this word, upper case, stands before the failing one


Signature = tuple[int, int, str]

MISTAKES: tuple[Mistake, ...] = (
    Mistake(
        "there is a comma too many before {found}",
        None,
        (
            "SELECT a, FROM s",
            "SELECT a FROM s, WHERE a",
            "SELECT a FROM s GROUP BY a, HAVING b",
            "SELECT f(a,) FROM s",
            "CREATE STREAM s (a INT,)",
            "SELECT a FROM s WHERE a IN (1,)",
            "SELECT Rstream(a,) FROM s",
        ),
    ),
    Mistake(
        "there is nothing to select before {found}",
        "write SELECT * FROM ... for all columns",
        (
            "SELECT FROM s",
            "SELECT DISTINCT FROM s",
            "SELECT Rstream() FROM s",
        ),
    ),
    Mistake(
        "FROM is missing before the window",
        "write SELECT columns FROM stream [window]",
        (
            "SELECT a s [RANGE 1 s]",
            "SELECT a [RANGE 1 s]",
            "SELECT * [RANGE 1 s]",
            "SELECT s.* [RANGE 1 s]",
            "SELECT a + b [RANGE 1 s]",
            "SELECT f(a) [RANGE 1 s]",
            "SELECT (a) [RANGE 1 s]",
        ),
    ),
    Mistake(
        "a comma or FROM is missing before {found}",
        None,
        (
            "SELECT a b c FROM s",
            "SELECT a b 1 FROM s",
            "SELECT a b.c FROM s",
            "SELECT a b (c) FROM s",
            "SELECT * a FROM s",
            "SELECT a 1 FROM s",
            "SELECT a 'x' FROM s",
            "SELECT s.* a FROM s",
        ),
    ),
    Mistake(
        "a window stands in brackets, behind the stream",
        "for example FROM s [RANGE 10 SECONDS]",
        (
            "SELECT a FROM s RANGE 10 s",
            "SELECT a FROM s RANGE 10s",
            "SELECT a FROM s (RANGE 10 s)",
            "SELECT a FROM s a RANGE",
            "SELECT a FROM s RANGE 1.5 s",
        ),
    ),
    Mistake(
        "the stream of this window is missing",
        "for example FROM s [RANGE 10 SECONDS]",
        (
            "SELECT a FROM [RANGE 10 s]",
            "SELECT a FROM s, [RANGE 10 s]",
            "SELECT a FROM s JOIN [RANGE 10 s]",
        ),
    ),
    Mistake(
        "a stream has one window, and here is a second",
        None,
        (
            "SELECT a FROM s [RANGE 1 s] [ROWS 5]",
            "SELECT a FROM s [RANGE 1 s] AS x [ROWS 5]",
            "SELECT a FROM s x [RANGE 1 s] [ROWS 5]",
            "SELECT a FROM s x [RANGE 1 s] y",
        ),
    ),
    Mistake(
        "SLIDE stands behind the window's length",
        "for example [RANGE 10 s SLIDE 2 s]",
        (
            "SELECT a FROM s [SLIDE 2 s RANGE 10 s]",
            "SELECT a FROM s [RANGE SLIDE 2 s]",
        ),
    ),
    Mistake(
        "UNTIL ... AGO belongs to the length of the window, before SLIDE and INTERNAL",
        "for example [RANGE 10 s UNTIL 5 s AGO SLIDE 2 s]",
        (
            "SELECT a FROM s [RANGE 10 s SLIDE 2 s UNTIL 5 s AGO]",
            "SELECT a FROM s [RANGE 10 s INTERNAL UNTIL 5 s AGO]",
            "SELECT a FROM s [ROWS 10 SLIDE 2 UNTIL 5 AGO]",
            "SELECT a FROM s [ROWS 10 INTERNAL UNTIL 5 AGO]",
        ),
    ),
    Mistake(
        "the parts of a window are not separated by commas",
        "for example [RANGE 10 s SLIDE 2 s]",
        (
            "SELECT a FROM s [RANGE 10 s, SLIDE 2 s]",
            "SELECT a FROM s [RANGE 10, SLIDE 2]",
            "SELECT a FROM s [ROWS 10, SLIDE 2]",
            "SELECT a FROM s [PARTITION BY a, ROWS 5]",
            "SELECT a FROM s [RANGE 1 s INTERNAL, SLIDE 2]",
        ),
    ),
    Mistake(
        "ROWS counts tuples; a length of time is a RANGE",
        "for example [RANGE 10 SECONDS]",
        (
            "SELECT a FROM s [ROWS 10 s]",
            "SELECT a FROM s [ROWS 10s]",
            "SELECT a FROM s [ROWS 10 min]",
        ),
    ),
    Mistake(
        "a window is a RANGE of time or a number of ROWS, not both",
        None,
        (
            "SELECT a FROM s [RANGE 10 s ROWS 5]",
            "SELECT a FROM s [RANGE 10 ROWS 5]",
            "SELECT a FROM s [ROWS 5 RANGE 10 s]",
        ),
    ),
    Mistake(
        "a window begins with RANGE, ROWS, PARTITION BY, NOW, SINCE or UNBOUNDED",
        "for example [RANGE 10 SECONDS]",
        (
            "SELECT a FROM s [10 s]",
            "SELECT a FROM s [10s]",
            "SELECT a FROM s [5 min]",
            "SELECT a FROM s []",
            "SELECT a FROM s [1.5 h]",
        ),
    ),
    Mistake(
        "a window can't reach a negative time back",
        "for what lies further back write RANGE t UNTIL u AGO",
        (
            "SELECT a FROM s [RANGE -5 s]",
            "SELECT a FROM s [ROWS -5]",
        ),
    ),
    Mistake(
        "PARTITION BY goes before ROWS",
        "for example [PARTITION BY c ROWS 10]",
        ("SELECT a FROM s [ROWS 10 PARTITION BY c]",),
    ),
    Mistake(
        "PARTITION BY takes ROWS, not RANGE",
        "a RANGE window needs no partitions: use GROUP BY",
        ("SELECT a FROM s [PARTITION BY a RANGE 10 s]",),
    ),
    Mistake(
        "a duration is written without quotes",
        "for example 10 SECONDS, 5 min, 2 h",
        (
            "SELECT a FROM s [RANGE '10 s']",
            "CREATE STREAM s (a INT) SLACK '5 s'",
            "SELECT a FROM s WINDOW '10 s'",
            "SELECT a FROM s [RANGE 10 s SLIDE '2 s']",
        ),
    ),
    Mistake(
        "GROUP, ORDER and PARTITION are followed by BY",
        None,
        (
            "SELECT a FROM s GROUP a",
            "SELECT a FROM s ORDER a",
            "SELECT a FROM s [PARTITION a ROWS 5]",
            "SELECT a FROM s GROUP s.a",
            "SELECT a FROM s GROUP 1",
            "SELECT a FROM s ORDER 1",
        ),
    ),
    Mistake(
        "the output function wraps the whole select list",
        "for example SELECT Rstream(a, b) FROM ...",
        (
            "SELECT Rstream(a), b FROM s",
            "SELECT a, Rstream(b) FROM s",
            "SELECT a + Rstream(b) FROM s",
            "SELECT Rstream(a) AS b FROM s",
            "SELECT Rstream(a) b FROM s",
            "SELECT Wstream(*)[ROWS 1], b FROM s",
            "SELECT a, Wstream(b)[ROWS 1] FROM s",
            "SELECT f(Rstream(a)) FROM s",
            "SELECT Rstream(a) + 1 FROM s",
        ),
    ),
    Mistake(
        "OVER is not part of the language",
        "windows stand behind streams: FROM s [ROWS 10]",
        (
            "SELECT SUM(a) OVER (PARTITION BY b) FROM s",
            "SELECT SUM(a) OVER w FROM s",
        ),
        after="OVER",
    ),
    Mistake(
        "WITH can't begin a statement here",
        "write the query in FROM: FROM (SELECT ...) AS x",
        ("WITH x AS (SELECT 1) SELECT a FROM x",),
    ),
    Mistake(
        "equality is written with one =",
        None,
        (
            "SELECT a == b FROM s",
            "SELECT a FROM s WHERE a == 1",
            "SELECT a FROM s WHERE a.b == 1",
        ),
    ),
    Mistake(
        "comparisons can't be chained",
        "write a < b AND b < c, or BETWEEN",
        (
            "SELECT a < b < c FROM s",
            "SELECT a = b = c FROM s",
            "SELECT a < b = c FROM s",
        ),
    ),
    Mistake(
        "a column of CREATE needs a type",
        "types: BOOL, INT, FLOAT, DECIMAL(p,s), STRING, BYTES, TIMESTAMP, INTERVAL",
        (
            "CREATE STREAM s (a)",
            "CREATE STREAM s (a, b INT)",
            "CREATE STREAM s (a NOT NULL)",
            "CREATE TABLE s (a PRIMARY KEY)",
        ),
    ),
    Mistake(
        "the columns stand in parentheses",
        "for example CREATE STREAM s (a INT, t TIMESTAMP)",
        (
            "CREATE STREAM s a INT",
            "CREATE STREAM s",
            "CREATE TABLE s",
            "CREATE STREAM s;",
            "CREATE STREAM IF NOT EXISTS s a INT",
        ),
    ),
    Mistake(
        "a table of this kind is declared NON RETROACTIVE",
        None,
        ("CREATE TABLE r (k INT) NOT RETROACTIVE",),
    ),
    Mistake(
        "the query itself is missing",
        "write CREATE QUERY q AS SELECT ...",
        (
            "CREATE QUERY q SELECT a FROM s",
            "CREATE QUERY q",
            "CREATE QUERY q AS",
        ),
    ),
    Mistake(
        "LIMIT takes one number",
        "write LIMIT 10 OFFSET 5",
        ("SELECT a FROM s LIMIT 5, 10",),
    ),
    Mistake(
        "LIMIT and OFFSET take a whole number",
        None,
        (
            "SELECT a FROM s LIMIT a",
            "SELECT a FROM s LIMIT 1.5",
            "SELECT a FROM s LIMIT -1",
            "SELECT a FROM s LIMIT ALL",
        ),
    ),
    Mistake(
        "CROSS JOIN takes no condition",
        "write JOIN ... ON",
        (
            "CREATE QUERY q AS SELECT a FROM s CROSS JOIN t ON s.a = t.a",
            "SELECT a FROM s CROSS JOIN t ON s.a = t.a",
            "SELECT a FROM s CROSS JOIN t USING (a)",
        ),
    ),
    Mistake(
        "a JOIN needs ON or USING",
        "for all pairs write CROSS JOIN",
        (
            "SELECT a FROM s JOIN t",
            "SELECT a FROM s JOIN t WHERE a = 1",
            "SELECT a FROM s JOIN t JOIN r ON a",
            "SELECT a FROM s JOIN t [RANGE 1 s]",
            "SELECT a FROM s JOIN t x",
            "SELECT a FROM s JOIN t [NOW] WHERE a",
            "SELECT a FROM s JOIN t x WHERE a",
            "SELECT a FROM s JOIN t, r",
        ),
    ),
    Mistake(
        "an INTERVAL needs a unit",
        "for example INTERVAL 5 MINUTES",
        (
            "SELECT INTERVAL 5 FROM s",
            "SELECT INTERVAL 5",
            "SELECT a - INTERVAL 5, b FROM s",
        ),
    ),
    Mistake(
        "a length of time in an expression is an INTERVAL",
        "for example INTERVAL 10 SECONDS",
        (
            "SELECT a - 10s FROM s",
            "SELECT 10s",
            "SELECT a FROM s WHERE b > 10s",
        ),
    ),
    Mistake(
        "BETWEEN needs AND",
        "for example a BETWEEN 1 AND 5",
        (
            "SELECT a FROM s WHERE a BETWEEN 1",
            "SELECT a FROM s WHERE a BETWEEN 1 5",
            "SELECT a FROM s WHERE a BETWEEN (1, 5)",
            "SELECT a FROM s WHERE a BETWEEN 1, 5",
        ),
    ),
    Mistake(
        "this CASE is not finished",
        "CASE WHEN condition THEN value ELSE value END",
        (
            "SELECT CASE WHEN a THEN b FROM s",
            "SELECT CASE WHEN a THEN b ELSE c FROM s",
            "SELECT CASE WHEN a FROM s",
            "SELECT CASE a FROM s",
            "SELECT CASE WHEN a THEN b, c FROM s",
        ),
    ),
    Mistake(
        "IN takes a list or a query in parentheses",
        "for example a IN (1, 2)",
        (
            "SELECT a FROM s WHERE a IN 1",
            "SELECT a FROM s WHERE a IN t",
            "SELECT a FROM s WHERE a IN SELECT b FROM t",
            "SELECT a FROM s WHERE a IN 'x'",
        ),
    ),
    Mistake(
        "this list is empty",
        None,
        (
            "SELECT a FROM s WHERE a IN ()",
            "INSERT INTO r VALUES ()",
            "SELECT () FROM s",
            "CREATE STREAM s ()",
        ),
    ),
    Mistake(
        "IS is followed by [NOT] NULL, TRUE, FALSE or DISTINCT FROM",
        "to compare values write =",
        (
            "SELECT a FROM s WHERE a IS 5",
            "SELECT a FROM s WHERE a IS b",
            "SELECT a FROM s WHERE a IS NOT 5",
            "SELECT a FROM s WHERE a IS NOT b",
            "SELECT a FROM s WHERE a IS 'x'",
        ),
    ),
    Mistake(
        "EXISTS takes a query in parentheses",
        "for example NOT EXISTS (SELECT * FROM t WHERE t.a = s.a)",
        (
            "SELECT a FROM s WHERE EXISTS SELECT b FROM t",
            "SELECT a FROM s WHERE EXISTS (a)",
            "SELECT a FROM s WHERE EXISTS a",
        ),
    ),
    Mistake(
        "INSERT is written INSERT INTO table VALUES (...)",
        None,
        (
            "INSERT r VALUES (1)",
            "INSERT INTO r (1, 2)",
            "INSERT INTO r 1",
            "INSERT INTO r VALUES 1",
            "INSERT INTO r",
            "INSERT INTO r VALUES",
        ),
    ),
    Mistake(
        "DELETE is written DELETE FROM table WHERE ...",
        None,
        (
            "DELETE r WHERE a",
            "DELETE * FROM r",
        ),
    ),
    Mistake(
        "DROP says what: STREAM, TABLE or QUERY",
        "for example DROP QUERY q",
        (
            "DROP q",
            "DROP",
            "DROP IF EXISTS q",
        ),
    ),
    Mistake(
        "a FROM list takes streams, tables, queries and (SELECT ...)",
        None,
        (
            "SELECT a FROM 5",
            "SELECT a FROM 's'",
            "SELECT a FROM",
            "SELECT a FROM s, 5",
            "SELECT a FROM (5)",
            "SELECT a FROM WHERE b",
        ),
    ),
    Mistake(
        "EXPLAIN takes a SELECT, a CREATE QUERY, or QUERY and a name",
        None,
        (
            "EXPLAIN q",
            "EXPLAIN CREATE STREAM s (a INT)",
            "EXPLAIN INSERT INTO r VALUES (1)",
            "EXPLAIN",
        ),
    ),
)


@cache
def _table() -> dict[tuple[Signature, str | None], Mistake]:
    table: dict[tuple[Signature, str | None], Mistake] = {}
    for mistake in MISTAKES:
        for snippet in mistake.snippets:
            try:
                parser().parse(snippet)
            except UnexpectedToken as error:
                table.setdefault((signature(error), mistake.after), mistake)
            except (UnexpectedInput, QueryError):
                continue
    return table


def signature(error: UnexpectedToken) -> Signature:
    """Where the parser failed, and on what kind of token."""
    stack = error.interactive_parser.parser_state.state_stack
    return stack[-1], stack[-2] if len(stack) > 1 else 0, error.token.type


def known_mistake(error: UnexpectedToken, before: str) -> Mistake | None:
    """The mistake that breaks the grammar as this error does; `before` is the word before the failing one."""
    key = signature(error)
    return _table().get((key, before.upper())) or _table().get((key, None))
