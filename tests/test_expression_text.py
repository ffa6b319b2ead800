"""Text functions: positions from 1 in code points, patterns, and what is too much."""

from __future__ import annotations

import json
import re

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.sql.expr import Col, Lit
from dsms.sql.functions import FunctionError, call
from dsms.sql.functions.groups import groups_of
from dsms.sql.types import BOOL, BYTES, INT, STRING, Type
from tests.effort import examples
from tests.oracle.scalar import evaluate
from tests.scalars import apply, every_way, lit

FAIL = object()
S, SS, SI, SII = (STRING,), (STRING, STRING), (STRING, INT), (STRING, INT, INT)

ROWS = [
    ("lower", S, ("ÀÉİ",), "àéi"),
    ("upper", S, ("straße",), "STRAẞE"),
    ("length", S, ("é😀",), 2),
    ("length", (BYTES,), (b"\x00\xff",), 2),
    ("octet_length", S, ("é😀",), 6),
    ("trim", S, ("  a \t ",), "a \t"),
    ("ltrim", SS, ("xxaxx", "x"), "axx"),
    ("rtrim", SS, ("abcba", "ab"), "abc"),
    ("trim", SS, ("abc", ""), "abc"),
    ("substr", SI, ("😀béc", 2), "béc"),
    ("substr", SII, ("abc", 0, 2), "a"),
    ("substr", SII, ("abc", -1, 3), "a"),
    ("substr", SII, ("abc", 2, 0), ""),
    ("substr", SII, ("abc", 2, -1), ""),
    ("substr", SII, ("abc", 3, 2**62), "c"),
    ("substr", SI, ("abc", 2**62), ""),
    ("left", SI, ("aéc", 2), "aé"),
    ("left", SI, ("aéc", -1), "aé"),
    ("left", SI, ("aéc", -9), ""),
    ("right", SI, ("aéc", 2), "éc"),
    ("right", SI, ("aéc", -1), "éc"),
    ("replace", (STRING, STRING, STRING), ("aaa", "aa", "b"), "ba"),
    ("replace", (STRING, STRING, STRING), ("abc", "", "x"), "abc"),
    ("position", SS, ("c", "é😀c"), 3),
    ("position", SS, ("", "abc"), 1),
    ("strpos", SS, ("abc", "x"), 0),
    ("contains", SS, ("abc", "bc"), True),
    ("starts_with", SS, ("abc", ""), True),
    ("ends_with", SS, ("abc", "ab"), False),
    ("concat", SS, ("a", None), None),
    ("concat", SI, ("a", 1), "a1"),
    ("concat", (BYTES, BYTES), (b"a", b"\xff"), b"a\xff"),
    ("concat_ws", (STRING, STRING, INT), ("-", None, 5), "5"),
    ("concat_ws", (STRING, STRING, INT), ("-", "a", 5), "a-5"),
    ("concat_ws", (STRING, STRING, INT), ("-", None, None), ""),
    ("concat_ws", SS, (None, "a"), None),
    ("lpad", (STRING, INT, STRING), ("é", 4, "xy"), "xyxé"),
    ("lpad", SI, ("abc", 2), "ab"),
    ("lpad", (STRING, INT, STRING), ("a", 3, ""), "a"),
    ("rpad", SI, ("a", 3), "a  "),
    ("rpad", SI, ("a", -1), ""),
    ("rpad", SI, ("a", 1_000_001), FAIL),
    ("repeat", SI, ("ab", 2), "abab"),
    ("repeat", SI, ("ab", -2), ""),
    ("repeat", SI, ("", 2**62), ""),
    ("repeat", SI, ("ab", 500_001), FAIL),
    ("reverse", S, ("aé😀",), "😀éa"),
    ("split_part", (STRING, STRING, INT), ("a,b,c", ",", 2), "b"),
    ("split_part", (STRING, STRING, INT), ("a,b,c", ",", -1), "c"),
    ("split_part", (STRING, STRING, INT), ("a,b,c", ",", 9), ""),
    ("split_part", (STRING, STRING, INT), ("a,b,c", "", 1), "a,b,c"),
    ("split_part", (STRING, STRING, INT), ("a,b,c", ",", 0), FAIL),
    ("split_part", (STRING, STRING, INT), (None, ",", 0), None),
    ("hex", S, ("é",), "C3A9"),
    ("hex", (BYTES,), (b"\x0f",), "0F"),
    ("unhex", S, ("0fFF",), b"\x0f\xff"),
    ("unhex", S, ("abc",), FAIL),
    ("unhex", S, ("zz",), FAIL),
    ("md5", S, ("abc",), "900150983cd24fb0d6963f7d28e17f72"),
    (
        "sha256",
        (BYTES,),
        (b"",),
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    ),
]


@pytest.mark.parametrize(
    ("name", "types", "args", "want"), ROWS, ids=[f"{r[0]}{r[2]}"[:40] for r in ROWS]
)
def test_text(name: str, types: tuple[Type, ...], args: tuple[object, ...], want: object) -> None:
    expected = None if want is FAIL else want
    nothing = tuple(None for _ in types)
    found, errors = apply(name, types, [args, nothing, args])
    assert [found[0], found[2]] == [expected, expected]
    assert errors == (2 if want is FAIL else 0)


PATTERNS = [
    # pattern, escape, what matches, what does not
    ("abc", None, ["abc"], ["abcd", "ABC", ""]),
    ("", None, [""], ["a", " "]),
    ("%", None, ["", "a\nb"], []),
    ("a%", None, ["a", "abc"], ["ba", ""]),
    ("%a", None, ["a", "ba"], ["ab"]),
    ("%a%", None, ["bab", "a"], ["b"]),
    ("_", None, ["é", "😀", "\n"], ["", "ab"]),
    ("a_c%e", None, ["abce", "axcdde", "a\nce"], ["ace", "abc"]),
    ("%%", None, [""], []),
    ("a.c", None, ["a.c"], ["abc"]),
    ("(a|b)*", None, ["(a|b)*"], ["a"]),
    ("100!%", "!", ["100%"], ["100", "1000"]),
    ("!_!!%", "!", ["_!", "_!x"], ["a!"]),
    ("a\\%", "\\", ["a%"], ["a\\b", "ab"]),
    ("a\\%", None, ["a\\", "a\\b"], ["a%"]),
    ("%%a", "%", ["%a"], ["a", "xa"]),
]


@pytest.mark.parametrize(("pattern", "escape", "yes", "no"), PATTERNS)
def test_like(pattern: str, escape: str | None, yes: list[str], no: list[str]) -> None:
    params = () if escape is None else (escape,)
    rows = [(s, pattern) for s in [*yes, *no]] + [(None, pattern)]
    want = [True] * len(yes) + [False] * len(no) + [None]
    assert apply("like", SS, rows, params) == (want, 0)


def test_a_pattern_column_may_end_in_its_escape() -> None:
    rows = [("a", "a!"), ("a", "a"), (None, "a!"), ("a!", "a!!")]
    assert apply("like", SS, rows, ("!",)) == ([None, True, None, True], 1)


def test_regular_expressions() -> None:
    s = Col(0, STRING)
    rows = [("foo42",), ("bar",), (None,), ("",)]
    found = every_way(call("regexp_matches", [s, lit("[0-9]+$")]), [STRING], rows)
    assert found == ([True, False, None, False], 0)
    changed = every_way(call("regexp_replace", [s, lit("([a-z])o"), lit("<\\1>")]), [STRING], rows)
    assert changed == (["<f>o42", "bar", None, ""], 0)


def test_like_against_nothing() -> None:
    expr = call("like", [Col(0, STRING), Lit(None, STRING)])
    assert every_way(expr, [STRING], [("a",), (None,)]) == ([None, None], 0)
    assert expr.type == BOOL


EXTRACTED = [
    # regex, group, text, the first, all
    ("[0-9]+", 0, "a12b3", "12", ["12", "3"]),
    ("([a-z])([0-9]+)", 2, "a12b3", "12", ["12", "3"]),
    ("(?P<k>[a-z]+)=(?P<v>[^;]*)", 1, "a=1;bc=;d", "a", ["a", "bc"]),
    ("(?i)B|C", 0, "abC", "b", ["b", "C"]),
    ("a|(b)", 1, "ab", "", ["", "b"]),
    ("x*", 0, "axxb", "", ["", "xx", ""]),
    ("^a", 0, "aa", "a", ["a"]),
    ("é(.)", 1, "é😀é", "😀", ["😀"]),
    (r"[(](\d)[])]", 1, "(1)(2]", "1", ["1", "2"]),
    (r"[[:alpha:](]+(\()", 1, "a((", "(", ["("]),
    (r"\(([^()]*)\)", 1, "f(x)(y)", "x", ["x", "y"]),
    (r"\Q(a\E(b)", 1, "(ab", "b", ["b"]),
    (r"(b)\Q(a\E", 1, "b(a", "b", ["b"]),
    ("(?:a(?P<n>b))+", 1, "abab", "b", ["b"]),
    ("(?s)a(.)b", 1, 'a"b', '"', ['"']),
    ("z", 0, "a", None, []),
    ("", 0, "", "", [""]),
]


@pytest.mark.parametrize(("regex", "group", "text", "first", "every"), EXTRACTED)
def test_what_regular_expressions_extract(
    regex: str, group: int, text: str, first: str | None, every: list[str]
) -> None:
    s, more = Col(0, STRING), [lit(group)] if group else []
    rows = [(text,), (None,), (text,)]
    one = every_way(call("regexp_extract", [s, lit(regex), *more]), [STRING], rows)
    assert one == ([first, None, first], 0)
    expr = call("regexp_extract_all", [s, lit(regex), *more])
    found, errors = every_way(expr, [STRING], rows)
    assert errors == 0 and found[1] is None
    assert [json.loads(str(found[k])) for k in (0, 2)] == [every, every]


REGEXES = st.sampled_from(
    ["a", "b*", "(a|b)+", "(a)|(,)", "[^,]*", "(?:é|a)(b?)", "^(.)|(.)$", "(,)(a?)(b?)", "()"]
)


@settings(max_examples=examples(100), deadline=None)
@given(REGEXES, st.lists(st.text('aab,é"\\\n', max_size=7), min_size=1, max_size=6), st.data())
def test_matches_are_those_of_the_oracle_and_of_duckdb(
    regex: str, texts: list[str], data: st.DataObject
) -> None:
    group = data.draw(st.integers(0, groups_of(regex)))
    args = [Col(0, STRING), lit(regex), lit(group)]
    rows = [(text,) for text in texts]
    connection = duckdb.connect()
    for name in ("regexp_extract", "regexp_extract_all"):
        expr = call(name, args)
        found, _ = every_way(expr, [STRING], rows)
        assert found == [evaluate(expr, row) for row in rows]
        for (text,), value in zip(rows, found, strict=True):
            (other,) = connection.execute(f"SELECT {name}(?, ?, {group})", [text, regex]).fetchone()
            if name == "regexp_extract":
                assert (value or "") == other
            elif not any(re.finditer(regex, "")):  # DuckDB finds empty matches in other places
                assert json.loads(str(value)) == [part or "" for part in other]


def test_a_list_of_matches_is_bounded() -> None:
    rows = [("a" * 65_536,), ("a" * 65_537,), ("b" * 2_000_000,)]
    found, errors = every_way(
        call("regexp_extract_all", [Col(0, STRING), lit("a")]), [STRING], rows
    )
    assert (errors, found[1], found[2]) == (1, None, "[]")
    assert len(json.loads(str(found[0]))) == 65_536
    quoted = '"' * 3_000_000
    whole = call("regexp_extract_all", [Col(0, STRING), lit("(?s).+")])
    assert every_way(whole, [STRING], [(quoted,)]) == ([None], 1)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([lit("(a)(b)"), lit(3)], r"a group from 0 \(the whole\) to 2 .*3 is none of it"),
        ([lit("(a)"), lit(-1)], "-1 is none of it"),
        ([lit("(a)"), Col(1, INT)], "this is no constant"),
        ([lit("(a")], "no regular expression"),
        ([Col(0, STRING)], "must be a constant text"),
    ],
)
def test_groups_are_checked(more: list, message: str) -> None:
    for name in ("regexp_extract", "regexp_extract_all"):
        with pytest.raises(FunctionError, match=message):
            call(name, [Col(0, STRING), *more])
