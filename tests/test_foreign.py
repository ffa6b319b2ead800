"""Words of other systems: never taken for an alias in silence, and each answered with this
language's form."""

from __future__ import annotations

from importlib import resources

import pytest

from dsms.engine import Engine
from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.foreign import sections
from dsms.sql.parser import parse, parse_one
from dsms.sql.printer import to_sql
from tests.effort import thinned


def refused(text: str) -> QueryError:
    with pytest.raises(QueryError) as caught:
        parse(text)
    return caught.value


JOIN_WORDS = [w for w in sections()["join"] if w != "STRAIGHT_JOIN"]
CLAUSE_WORDS = list(sections()["clause"])


@thinned()
@pytest.mark.parametrize("word", JOIN_WORDS)
@pytest.mark.parametrize("source", ["s", "s [RANGE 1 min]", "(SELECT k FROM s) [NOW]", "q, s"])
@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN", "FULL OUTER JOIN", "CROSS JOIN"])
def test_a_join_word_is_no_alias(word: str, source: str, join: str):
    condition = "" if join == "CROSS JOIN" else " USING (k)"
    text = f"SELECT 1 FROM {source} {word.lower()} {join} r{condition}"
    error = refused(text)
    assert error.code == "DS110" and word.lower() in error.message
    assert error.column == text.index(f" {word.lower()} {join}") + 2
    assert f"AS {word.lower()}" in (error.hint or "")
    for written in (
        f"AS {word}",
        f'"{word}"',
        f"AS {word} [NOW]" if source == "s" else f'AS "{word}"',
    ):
        assert isinstance(
            parse_one(f"SELECT 1 FROM {source} {written} {join} r{condition}"), ast.SelectStatement
        )


@pytest.mark.parametrize("word", JOIN_WORDS)
def test_a_join_word_elsewhere_is_a_name(word: str):
    """Before another clause it can mean nothing else."""
    parse_one(f"SELECT {word}.k FROM s {word} WHERE {word}.k = 1")
    parse_one(f"SELECT {word} FROM s {word}, r")
    parse_one(f"SELECT k {word} FROM s")


OPERATORS = [
    *sorted(
        sections()["operator"].keys() - {"ANY", "SOME", "ALL", "EXCLUDE", "REPLACE", "PLACING"}
    ),
    *sections()["behind value"],
]


@pytest.mark.parametrize("word", OPERATORS)
def test_an_operator_of_others_is_no_bare_alias_of_a_column(word: str):
    for text in (f"SELECT v {word} FROM s", f"SELECT 1, v + 1 {word.lower()}, k FROM s [NOW]"):
        error = refused(text)
        assert error.code == "DS110" and word in error.message.upper()
        assert f"AS {word}" in (error.hint or "").replace(word.lower(), word)
        assert error.column == text.upper().index(f" {word}") + 2
    for alias in (f"AS {word}", f'"{word}"', f'AS "{word}"'):
        assert isinstance(parse_one(f"SELECT v {alias} FROM s"), ast.SelectStatement)
    parse_one(f"SELECT {word} FROM s")
    parse_one(f"CREATE QUERY q AS SELECT v {word} FROM s")  # as a data folder may have it


@pytest.mark.parametrize("word", sections()["ours"])
@pytest.mark.parametrize("source", ["s", "s [NOW]", "(SELECT k FROM s)", "q, s"])
@pytest.mark.parametrize("join", ["SEMI JOIN", "ANTI JOIN", "LEFT JOIN", "NATURAL JOIN"])
def test_a_word_that_begins_a_join_is_no_alias_before_one(word: str, source: str, join: str):
    condition = "" if join == "NATURAL JOIN" else " USING (k)"
    text = f"SELECT 1 FROM {source} {{}} {join} r{condition}"
    if word != "NATURAL" and not join.startswith(word):
        error = refused(text.format(word.lower()))
        assert (error.code, error.column) == ("DS110", 16 + len(source)), error
        assert f"AS {word.lower()}" in (error.hint or "")
    for written in (f"AS {word}", f'"{word}"'):
        made = parse_one(text.format(written))
        assert parse_one(to_sql(made)) == made
    parse_one(f"SELECT {word}.k FROM {source} {word} WHERE {word}.k = 1")


def test_words_of_others_are_names_where_they_are_spelled_so():
    parse_one("SELECT k AS rlike, rlike.glob FROM s rlike")
    parse_one("SELECT regexp FROM s WITH (strategy = upa)")
    parse_one("EXPLAIN plan")


@pytest.mark.parametrize("word", CLAUSE_WORDS)
@pytest.mark.parametrize(
    "after", ["", " WHERE k = 1", " JOIN r USING (k)", ", r", " GROUP BY k", " UNION SELECT 1"]
)
def test_a_clause_word_is_no_alias(word: str, after: str):
    for source in ("s", "s [RANGE 1 min]", "(SELECT k FROM s) [NOW]"):
        error = refused(f"SELECT k FROM {source} {word}{after}")
        assert (error.code, error.column) == ("DS110", 16 + len(source)), error
        for written in (f"AS {word}", f'"{word}"'):
            parse_one(f"SELECT k FROM {source} {written}{after}")
    parse_one(f"SELECT {word} FROM s")


WINDOW_WORDS = ["range", "rows", "slide", "now", "internal", "until", "ago", "since", "unbounded"]


@pytest.mark.parametrize("word", WINDOW_WORDS)
def test_words_of_windows_stay_names(word: str):
    parse_one(f"SELECT {word} FROM s WHERE {word} > 1")
    parse_one(f"SELECT {word}.k FROM s AS {word}")


def hint_of(text: str) -> str:
    engine = Engine()
    engine.execute(
        "CREATE STREAM s (k INT, v FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h; CREATE TABLE r "
        "(k INT)"
    )
    with pytest.raises(QueryError) as caught:
        engine.execute(text)
    assert caught.value.line is not None, caught.value
    return caught.value.hint or ""


PLACES = {  # where a word of a section stands
    "statement": "{} k",
    "create": "CREATE {} x AS SELECT 1",
    "drop": "DROP {} x",
    "column": "CREATE STREAM x (k INT {} 1)",
    "operator": "SELECT k FROM s [NOW] WHERE v {} v",
    "function": "SELECT {}(v) FROM s [NOW]",
    "bare": "SELECT {}() FROM s [NOW]",
    "type": "SELECT CAST(v AS {}) FROM s [NOW]",
    "behind": "SELECT k FROM s {} 5",
    "clause": "SELECT k FROM s {} 5",
    "show": "SHOW {}",
    "relation": "SELECT * FROM {}",
    "with": "SELECT k FROM s [NOW] GROUP BY k WITH {}",
    "explain": "EXPLAIN {} SELECT 1",
    "side": "SELECT k FROM s [NOW] a {} SEMI JOIN r USING (k)",
    "ours": "SELECT k FROM s {} CROSS JOIN r",
}
ELSEWHERE = {  # words that this grammar takes there, or that another complaint answers
    ("operator", "ANY"),
    ("operator", "SOME"),
    ("operator", "ALL"),
    ("operator", "EXCLUDE"),
    ("operator", "REPLACE"),
    ("function", "TABLE"),
    ("function", "IF"),
    ("bare", "STREAM"),
    ("bare", "TOP"),
    ("behind", "EVERY"),
    ("clause", "SAMPLE"),
    ("side", "LEFT"),
    ("bare", "WINDOW_START"),
    ("bare", "WINDOW_END"),
    *(("bare", word) for word in ("COUNT", "SUM", "AVG", "MIN", "MAX")),
}


@thinned(3)
@pytest.mark.parametrize(
    ("section", "word"), [(s, w) for s, words in sections().items() for w in words if s in PLACES]
)
def test_each_word_is_answered(section: str, word: str):
    if (section, word) not in ELSEWHERE:
        assert sections()[section][word] in hint_of(PLACES[section].format(word))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("SELECT k, COUNT(*) FROM s GROUP BY k ORDER BY count", "COUNT(*) AS n"),
        ("SELECT max FROM s", "arguments stand in ( )"),
        ("SELECT SUBSTRING(k FROM 2 FOR 3) FROM s", "separated by commas"),
        (
            "SELECT 1 FROM s [NOW] LEFT OUTER ASOF JOIN r ON s.k = r.k",
            "write ASOF JOIN or ASOF LEFT",
        ),
        ("SELECT 1 FROM s [NOW] ASOF RIGHT JOIN r ON s.k = r.k", "write ASOF JOIN or ASOF LEFT"),
        ("SELECT 1 FROM s [NOW] LATEST JOIN r ON s.k = r.k", "ASOF JOIN finds the newest row"),
        ("SELECT 5 DIV 2", "write a / b"),
        ("SELECT substring('a' FOR 2)", "separated by commas"),
        ("CREATE UNIQUE INDEX i ON r (k)", "the engine chooses"),
        ("CREATE STREAM x (k INT KEY, v INT)", "PRIMARY KEY"),
        ("SELECT 'a' + 'b'", "||"),
        ("SELECT t + '1 day' FROM s", "INTERVAL '5' MINUTE"),
        ("SELECT trim(BOTH ' ' FROM 'a')", "LTRIM(x, 'a')"),
        ("SELECT trim('x' FROM 'a')", "TRIM(text, 'a')"),
        ("SELECT trim(LEADING FROM 'a')", "LTRIM(text)"),
        ('SELECT k COLLATE "C" FROM s [NOW]', "code point"),
        ("SELECT k FROM s [NOW] ORDER BY k COLLATE nocase", "code point"),
        ("SELECT overlay('a' PLACING 'b' FROM 1)", "SUBSTR(a, 1, start - 1) || b"),
        ("SELECT v XOR 5 FROM s [NOW]", "write a <> b"),
        ("SELECT 0x1F", "decimal digits, 31;"),
        ("SELECT k FROM s [ROWS 0b101]", "decimal digits, 5;"),
        ("SELECT k FROM s [ROWS 1_000]", "without _: 1000"),
        ("SELECT 1_0.5", "without _: 10.5"),
        ("SELECT k FROM s [NOW] WHERE v = 1k", "double quotes"),
        ("SELECT 1_ FROM s [NOW]", "double quotes"),
        ("SELECT position('a' IN k) FROM r", "POSITION(part, text)"),
        ("SELECT * FROM 'x.csv'", "dsms load"),
        ("WITH RECURSIVE x AS (SELECT k FROM s) SELECT * FROM x", "can't be recursive"),
        ("SELECT 1 FROM s [NOW] OUTER APPLY f(k)", "LEFT JOIN"),
        ("SELECT 1 FROM s STRAIGHT_JOIN r", "write JOIN"),
        ("SELECT 1 FROM s JOIN s u WITHIN 1 HOUR ON s.k = u.k", "by their windows"),
        ("SELECT 1 FROM s LATEST ON t PARTITION BY k", "PARTITION BY k ROWS 1"),
        ("SELECT 1 FROM LATERAL x", "UNNEST(s.l)"),
        ("SELECT * FROM read_csv('x')", "dsms load"),
        (
            "SELECT * FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(t), INTERVAL '1' MINUTE))",
            "SLIDE 10 min",
        ),
        ("SELECT k FROM s EMIT CHANGES", "Istream"),
        ("SELECT k FROM s [RANGE 5m]", "write 5 min, or 5 MONTHS"),
        ("CREATE QUERY q AS SELECT now() FROM s", "[NOW]"),
        ("CREATE QUERY q AS SELECT CURRENT_TIMESTAMP FROM s", "WINDOW_END()"),
        ("SELECT CURRENT_DATE", "NOW()"),
        ("SELECT STREAM k FROM s [NOW]", "leave it out"),
        ("SELECT nosuch(1)", "SHOW FUNCTIONS"),
        ("SELECT medain(k) FROM s [NOW]", "did you mean MEDIAN?"),
        ("SELECT k FROM s [NOW] WHERE k LIKE ANY (SELECT k FROM r)", "a = ANY (SELECT"),
        ("SELECT k FROM s [NOW] WHERE k = ANY (1, 2)", "IN (1, 2)"),
        ("SELECT * EXCLUDE (k) FROM s", "name the columns"),
        ("SELECT * REPLACE (k AS v) FROM s", "name the columns"),
        ("SELECT t::timestamptz FROM s [NOW]", "write TIMESTAMP"),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", "DROP ... IF EXISTS"),
        ("CREATE TABLE x (t TIMESTAMP, WATERMARK FOR t AS t)", "SLACK"),
        ("CREATE STREAM x (t TIMESTAMP) WATERMARK FOR t AS t - INTERVAL '5' SECOND", "SLACK"),
        ("DROP MATERIALIZED VIEW v", "DROP QUERY"),
        ("SELECT k FROM s [NOW] LIMIT 5 OFFSET 2 ROWS", "LIMIT 10 OFFSET 5"),
        ("SELECT k FROM s [NOW] OFFSET 2 LIMIT 5", "LIMIT 10 OFFSET 5"),
        ("exit", "Ctrl-D"),
        ("help;", "SHOW STREAMS"),
        ("KILL 3", "CANCEL SESSION"),
        ("KILL QUERY 3", "CANCEL SESSION"),
        ("CANCEL QUERY q", "SHOW SESSIONS"),
        ("SELECT k FROM s [NOW] GROUP BY k WITH ROLLUP HAVING k > 1", "GROUP BY ROLLUP (a, b)"),
        ("EXPLAIN PLAN FOR SELECT 1", "write EXPLAIN SELECT"),
        ("EXPLAIN QUERY PLAN SELECT 1", "write EXPLAIN SELECT"),
        ("SELECT k RLIKE 'a' FROM s", "REGEXP_MATCHES(a, 'regex')"),
        ("SELECT k NOT REGEXP 'a' FROM s", "REGEXP_MATCHES(a, 'regex')"),
        ("SELECT k GLOB 'a' FROM s", "REGEXP_MATCHES(a, 'regex')"),
        ("SELECT k SIMILAR TO 'a' FROM s", "REGEXP_MATCHES(a, 'regex')"),
        ("SELECT k FROM s RIGHT OUTER ANTI JOIN r USING (k)", "turn the sides"),
        ("SELECT k FROM s LEFT OUTER SEMI JOIN r USING (k)", "without more"),
        ("SELECT FIRST(k ORDER BY v) FROM s", "ARGMIN(x, y)"),
        ("SELECT JSON_VALUE(k, '$.a' RETURNING INT) FROM s", "JSON_VALUE(j, '$.a' AS INT)"),
        ("SELECT JSON_VALUE(k, '$.a' AS INT NULL ON EMPTY) FROM s", "COALESCE(JSON_VALUE(...), x)"),
        ("SELECT JSON_EXISTS(k, '$.a' ERROR ON ERROR) FROM s", "COALESCE(JSON_VALUE(...), x)"),
        ("SELECT GROUP_CONCAT(k ORDER BY k) FROM s", "STRING_AGG(x, ',')"),
        ("SELECT STRING_AGG(k, ',') WITHIN GROUP (ORDER BY k) FROM s", "ORDER BY k)"),
    ],
)
def test_statements_of_others(text: str, part: str):
    assert part in hint_of(text)


def test_the_list_names_each_word_once_a_section():
    text = resources.files("dsms.sql").joinpath("foreign.txt").read_text(encoding="utf-8")
    listed: dict[str, list[str]] = {}
    for line in text[text.index("\n[") :].splitlines():
        if line.startswith("["):
            words = listed[line.strip("[]")] = []
        elif line and not line.startswith(" "):
            words += line.split()
    assert listed == {name: list(words) for name, words in sections().items()}


@pytest.mark.parametrize(
    ("test", "same"),
    [
        ("b IS UNKNOWN", "b IS NULL"),
        ("b IS NOT UNKNOWN", "b IS NOT NULL"),
        ("NOT v > 1 IS UNKNOWN", "NOT (v > 1) IS NULL"),
        ("v = 1 AND b IS NOT UNKNOWN IS TRUE", "v = 1 AND (b IS NOT NULL) IS TRUE"),
    ],
)
def test_a_condition_that_is_unknown_is_null(test: str, same: str):
    engine = Engine()
    engine.execute("CREATE TABLE u (b BOOL, v INT, unknown INT)")
    engine.execute(
        "INSERT INTO u VALUES (TRUE, 1, 1), (FALSE, 2, 2), (NULL, 1, 3), (TRUE, NULL, 4)"
    )
    found, right = (
        engine.execute(f"SELECT unknown FROM u WHERE {text}")[0].data for text in (test, same)
    )
    assert found == right and 0 < len(found) < 4


def test_only_a_condition_is_unknown():
    engine = Engine()
    with pytest.raises(QueryError, match="IS UNKNOWN expects a condition, and this is INT"):
        engine.execute("SELECT 1 IS UNKNOWN")


def test_what_is_said_of_trim_and_overlay_does_it():
    answer = Engine().execute(
        "SELECT TRIM('xxaxx', 'x') AS a, LTRIM('xxaxx', 'x') AS b, RTRIM('xxaxx', 'x') AS c, "
        "TRIM(' a ') AS d, SUBSTR('abcdef', 1, 3 - 1) || 'X' || SUBSTR('abcdef', 3 + 2) AS e"
    )[0]
    assert answer.data.to_pylist() == [{"a": "a", "b": "axx", "c": "xxa", "d": "a", "e": "abXef"}]
