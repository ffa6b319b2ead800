"""Text functions: positions from 1 in code points, patterns, and what is too much."""

from __future__ import annotations

import pytest

from dsms.sql.expr import Col, Lit
from dsms.sql.functions import call
from dsms.sql.types import BOOL, BYTES, INT, STRING, Type
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
