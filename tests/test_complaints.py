"""What is said about wrong text, and that hostile text gets no more than that."""

from __future__ import annotations

import random
import string

import pytest

from dsms.errors import QueryError, UsageError
from dsms.sql import ast, grammar
from dsms.sql.mistakes import Mistake, mistakes
from dsms.sql.parser import MAX_DEPTH, is_complete, parse, parse_one, split_statements
from dsms.sql.printer import to_sql
from tests.test_papers import PAPERS
from tests.test_parser import STATEMENTS, select


def complaint(text: str) -> QueryError:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert caught.value.code.startswith("DS1")
    return caught.value


@pytest.mark.parametrize(
    ("text", "code", "column", "part"),
    [
        ("SELCT a FROM s", "DS101", 1, "did you mean SELECT?"),
        ("SELECT a FORM s", "DS101", 10, "did you mean FROM?"),
        ("SELECT a FROM s [RNAGE 5 s]", "DS101", 18, "did you mean RANGE?"),
        ("SELECT a FROM s [RANGE 5 s SLDIE 2 s]", "DS101", 28, "did you mean SLIDE?"),
        ("SELECT a FROM s GROPU BY a", "DS101", 17, "did you mean GROUP?"),
        ("CREATE STRAEM s (a INT)", "DS101", 8, "did you mean STREAM?"),
        ("SELECT a FROM s [RANGE 5 SECNDS]", "DS101", 26, "did you mean seconds?"),
        ("SHOW STREMS", "DS112", 6, "did you mean STREAMS?"),
        ("EXPLAIN FORMAT grafviz SELECT 1", "DS112", 16, "did you mean GRAPHVIZ?"),
        ("SELECT a FROM s NATURAL ANTI JOIN r USING (k)", "DS101", 37, "write ANTI JOIN r USING ("),
        (
            "SELECT a FROM s NATURAL JOIN (SELECT k FROM r) x ON k = 1",
            "DS101",
            50,
            "write JOIN r ON",
        ),
        ("SELECT a FROM s JOIN r ON s.k = r.k USING (k)", "DS101", 37, "one condition"),
        ("SELECT a FROM s LEFT OUTER JOIN r ON s.k = r.k GROUPED BY k", "DS101", 48, "GROUP?"),
        ("SELECT a FROM s RIGHT OUTER JOIN r USING k", "DS101", 42, "expected ("),
        ("SELECT a FROM s [RANGE 5 m]", "DS107", 26, "minutes or months"),
        ("SELECT a FROM s [RANGE 5 fortnights]", "DS107", 26, "not a unit of time"),
        ("SELECT INTERVAL '5' MONTH", "DS107", 8, "write DAYS"),
        ("CREATE STREAM s (a INT) SLACK 1 MONTH", "DS107", 31, "SLACK takes a fixed length"),
        ("SELECT a FROM s [RANGE 0.0000001 s]", "DS107", 24, "whole number of microseconds"),
        ("SELECT a FROM s WHERE", "DS102", 22, "expected an expression"),
        ("SELECT a FROM s [RANGE 5 s", "DS102", 27, "the [ at line 1, column 17 is not closed"),
        ("SELECT (a + 1 FROM s", "DS101", 15, "the ( at line 1, column 8 is not closed"),
        ("SELECT a) FROM s", "DS101", 9, "closes nothing"),
        ("SELECT 'abc FROM s", "DS103", 8, "string is not closed"),
        ('SELECT "abc FROM s', "DS103", 8, "quoted name is not closed"),
        ("SELECT a /* FROM s", "DS103", 10, "comment is not closed"),
        ("CREATE STREAM order (a INT)", "DS101", 15, 'written "order"'),
        ("SELECT a FROM s GROUP BY a WHERE b", "DS101", 28, "WHERE stands before GROUP"),
        ("SELECT a FROM s WHERE a WHERE b", "DS109", 25, "WHERE is said twice"),
        ("SELECT a FROM s SELECT b FROM s", "DS101", 17, "a ; is missing before SELECT"),
        ("SHOW STREAMS now", "DS101", 14, "expected FOR, FULL, LIKE, WHERE or the end of the"),
        ("SELECT 0x1F", "DS104", 8, "neither a number nor a name"),
        ("SELECT `a`", "DS104", 8, "double quotes"),
        ("SELECT a\x00b", "DS104", 9, "NUL"),
        ("SELECT 'a' = “a”", "DS104", 14, "typographic"),
        ("SELECT 99999999999999999999", "DS106", 8, "64 bits"),
        ("SELECT 9223372036854775808", "DS106", 8, "64 bits"),
        ("SELECT " + "9" * 5000, "DS106", 8, "64 bits"),
        ("SELECT 1e999", "DS106", 8, "too large for FLOAT"),
        ("SELECT X'0g'", "DS106", 8, "hexadecimal"),
        ("SELECT DECIMAL '1e5'", "DS106", 8, "not a decimal"),
        ("SELECT DECIMAL '" + "9" * 39 + "'", "DS106", 8, "38 digits"),
        ("SELECT TIMESTAMP '2013-02-30'", "DS106", 8, "not an instant"),
        ("SELECT TIMESTAMP '0001-01-01 00:00:00+01:00'", "DS106", 8, "not an instant"),
        ('SELECT ""', "DS106", 8, "can't be empty"),
        ("SELECT a FROM s [RANGE 10 s ALIGN TO 0 s]", "DS108", 29, "no SLIDE"),
        ("SELECT a FROM s [RANGE 10 s TIME ZONE 'x' SLIDE 2 s]", "DS108", 29, "stands after SLIDE"),
        (
            "SELECT a FROM s [NOW SLIDE 5 ROWS]",
            "DS108",
            22,
            "only [RANGE t] and ROWS windows slide by rows",
        ),
        ("SELECT a FROM s [ROWS 10 SLIDE 1.5]", "DS108", 26, "counts rows"),
        ("SELECT a FROM s [ROWS 1.5]", "DS101", 24, "counts rows, which are whole"),
        ("SELECT a FROM s [PARTITION BY a ROWS 2.5]", "DS101", 39, "counts rows, which are whole"),
        ("SELECT a FROM s [ROWS 5 UNTIL 1.5 AGO]", "DS101", 31, "counts rows, which are whole"),
        ("SELECT Wstream(*) FROM s", "DS108", 8, "its window is missing"),
        ("SELECT Rstream(*)[ROWS 5] FROM s", "DS108", 19, "only Wstream takes a window"),
        ("SELECT a FROM s [RANGE 1 s SLIDE 1 s SLIDE 2 s]", "DS109", 38, "SLIDE is said twice"),
        ("CREATE STREAM s (a INT) SLACK 1 s SLACK 2 s", "DS109", 35, "SLACK is said twice"),
        ("CREATE STREAM s (a INT) LATE DROP LATE INTO l", "DS109", 35, "LATE is said twice"),
        ("CREATE TABLE r (a INT NULL NOT NULL)", "DS109", 23, "both NULL and NOT NULL"),
        ("CREATE TABLE r (a INT PRIMARY KEY, b INT PRIMARY KEY)", "DS109", 36, "one PRIMARY KEY"),
        ("CREATE TABLE r (a INT) RETROACTIVE NON RETROACTIVE", "DS109", 36, "not both"),
        ("SELECT 1 WITH (a = 1, A = 2)", "DS109", 23, "the option a is said twice"),
        ("CREATE STREAM s (a INT PRIMARY KEY)", "DS110", 18, "no PRIMARY KEY"),
        ("CREATE TABLE r (PRIMARY KEY (a))", "DS110", 1, "no columns"),
        ("SELECT SUBSTRING(a FROM 2)", "DS110", 8, "only EXTRACT"),
        ("SELECT TOP 5 a FROM s", "DS110", 8, "write LIMIT"),
        ("SELECT a FROM s MINUS SELECT b FROM t", "DS110", 17, "write EXCEPT"),
        ("SELECT a FROM s [RANGE 10 s EVERY 5 s]", "DS110", 29, "write SLIDE"),
        ("SELECT a FROM s [LAST 10 s]", "DS110", 18, "[RANGE 10 min]"),
        ("CREATE VIEW v AS SELECT 1", "DS110", 8, "write CREATE QUERY"),
        ("DESC s", "DS110", 1, "write DESCRIBE"),
        ("SELECT a FROM s#length(5)", "DS104", 16, "FROM s [ROWS 5]"),
        ("SELECT a FROM s.win:time(10 sec)", "DS101", 16, "windows stand in brackets"),
        ("SELECT a FROM s [RANGE 5 s] UNIDIRECTIONAL", "DS110", 29, "takes [NOW]"),
        ("SELECT a FROM s WHERE a LIKE ALL (SELECT b FROM r)", "DS101", 30, "ALL can't stand here"),
        ("CREATE STREAM s (a INT) ARCHIVE UPDATE EVERY x", "DS101", 46, "expected a duration"),
        ("SELECT {a}", "DS101", 10, "windows and lists stand in [ ]"),
    ],
)
def test_complaint(text: str, code: str, column: int, part: str) -> None:
    error = complaint(text)
    assert (error.code, error.line, error.column) == (code, 1, column)
    assert part in f"{error.message} {error.hint}"


@pytest.mark.parametrize("mistake", mistakes(), ids=lambda m: m.message[:40])
def test_known_mistakes_reach_their_message(mistake: Mistake) -> None:
    for snippet in mistake.snippets:
        error = complaint(snippet)
        start = mistake.message.partition("{found}")[0]
        assert error.message.startswith(start), snippet
        assert (error.hint or "").startswith(mistake.hint or ""), snippet


def test_complaints_name_no_token_of_the_parser() -> None:
    for mistake in mistakes():
        for snippet in mistake.snippets:
            message = str(complaint(snippet))
            assert "__ANON" not in message
            assert not any(
                word in message
                for word in ("LPAR", "RSQB", "TIME_UNIT", "ATTACHED", "QUOTED", "COMMA")
            )


# ---------------------------------------------------------------- hostile input


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 100_000,
        "SELECT " + "(" * 300 + "1" + ")" * 300,
        "SELECT " + "- " * 20_000 + "1",
        "SELECT " + "NOT " * 20_000 + "a",
        "SELECT " + "1 + " * 10_000 + "1",
        "SELECT 1" + " UNION SELECT 1" * 3_000,
        "SELECT " + "CASE WHEN a THEN " * 5_000,
        "SELECT * FROM " + "(SELECT * FROM " * 20_000,
        "SELECT a" + "::INT" * 10_000,
        "SELECT " + "[" * 1000,
        "x" * 200_000,
        "'" * 99_999,
        "SELECT '" + "a" * 1_100_000 + "'",
        "\x00" * 1000,
        "".join(map(chr, range(256))),
        "\ud800 SELECT 1",
        "SELECT '\udfff'",
        "/*" * 50_000,
        ";" * 10_000 + "x",
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_hostile_text_gets_a_complaint(text: str) -> None:
    try:
        parse(text)
    except QueryError as error:
        assert error.code.startswith("DS1")
        assert len(str(error)) < 1000
    else:
        assert text.startswith("SELECT " + "(" * 300 + "1"), (
            "only many parentheses around a number are fine"
        )


def test_what_parses_can_be_walked_by_recursion() -> None:
    deepest = "SELECT " + "- " * (MAX_DEPTH - 6) + "a"
    statement = parse_one(deepest)
    assert parse_one(to_sql(statement)) == statement
    assert hash(statement) == hash(parse_one(deepest))
    assert complaint("SELECT " + "- " * MAX_DEPTH + "a").code == "DS105"


def test_long_chains_are_fine_where_they_are_flat() -> None:
    where = " AND ".join(f"a <> {i}" for i in range(2000))
    assert select(f"SELECT a FROM s WHERE {where}").where is not None
    rows = ", ".join(f"({i}, 'x')" for i in range(2000))
    insert = parse_one(f"INSERT INTO r VALUES {rows}")
    assert isinstance(insert, ast.Insert)
    assert len(insert.rows) == 2000


# ---------------------------------------------------------------- fuzzing (pytest --fuzz)

_SIGNS = (
    "(",
    ")",
    "[",
    "]",
    ",",
    ";",
    ".",
    "*",
    "+",
    "-",
    "/",
    "%",
    "=",
    "<>",
    "<",
    "::",
    "||",
    "'",
    '"',
    "--",
    "/*",
)
_OTHERS = ("*/", "a", "s", "1", "2.5", "'x'", "10s", "5 min", "X'00'", "\n", "\x00", "é", "$",
           "?", ":x", "$1", "ON LOOKUP")  # a long list  # fmt: skip
_SOUP = [*grammar.keywords(), *_SIGNS, *_OTHERS]


def _only_complains(text: str) -> None:
    try:
        for statement in parse(text):
            assert parse_one(to_sql(statement)) == statement
    except QueryError as error:
        assert error.code.startswith("DS1"), (text, error)
        assert error.line is not None or error.code == "DS105"
    except UsageError as error:
        assert error.code == "DS617" and error.line is not None, (text, error)  # a parameter
    is_complete(text)


def _mutated(rng: random.Random, text: str) -> str:
    words = text.split(" ")
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(words) + 1)
        match rng.randrange(4):
            case 0:
                words[at : at + 1] = []
            case 1:
                words.insert(at, rng.choice(_SOUP))
            case 2:
                words[at : at + 1] = rng.sample(_SOUP, 1)
            case 3:
                other = rng.randrange(len(words) + 1)
                words[at : at + 1] = words[other : other + 3]
    mutated = " ".join(words)
    if mutated and rng.random() < 0.3:
        at = rng.randrange(len(mutated))
        mutated = mutated[:at] + rng.choice(string.printable) + mutated[at + rng.randint(0, 2) :]
    return mutated


def _fuzz(seed: int, count: int) -> None:
    rng = random.Random(seed)
    texts = split_statements(PAPERS) + split_statements(STATEMENTS)
    for _ in range(count):
        _only_complains(" ".join(rng.choices(_SOUP, k=rng.randint(1, 30))))
        _only_complains(_mutated(rng, rng.choice(texts)))


def test_a_little_fuzz() -> None:
    _fuzz(seed=1, count=100)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(2, 22))
def test_fuzz(seed: int) -> None:
    _fuzz(seed, count=5000)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("SELECT a FROM s [ROWS {}]", str(2**63 - 1)),
        ("SELECT a FROM s [PARTITION BY a ROWS {}]", str(2**63 - 1)),
        ("SELECT a FROM s [ROWS 5 UNTIL {} AGO]", str(2**63 - 1)),
        ("SELECT a FROM s [ROWS 5 SLIDE {}]", str(2**63 - 1)),
        ("SELECT a FROM s LIMIT {}", str(2**63 - 1)),
        ("SELECT a FROM s LIMIT 1 OFFSET {}", str(2**63 - 1)),
        ("SELECT a FROM s [RANGE {} s]", "of days is 53375995"),
        ("SELECT a FROM s [RANGE 5 s SLIDE {} s]", "of days is 53375995"),
        ("SELECT {}", "DECIMAL"),
    ],
)
def test_a_number_that_is_too_large_is_told_the_greatest(text: str, hint: str) -> None:
    assert hint in (complaint(text.format(10**20)).hint or "")
