"""Statements of other streaming systems, said in this language: what a hint shows, made from the
statement itself.

What does not parse here is rewritten as text (table functions TUMBLE and HOP, WINDOW TUMBLING,
EMIT, WATERMARK FOR), what parses as a tree (GROUP BY TUMBLE(...), columns of windows, types).
Nothing is shown unless all of it parses then.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lark.exceptions import UnexpectedInput

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.foreign import sections
from dsms.sql.grammar import parser
from dsms.sql.literals import duration
from dsms.sql.printer import to_sql
from dsms.sql.rewriting import replaced

LONGEST = 600  # characters of a statement that a hint shows
_LENGTH = r"(INTERVAL\s*'[^']*'(?:\s*[A-Za-z]+)?|'[^']*'|\d+\s*[A-Za-z]+)"
_NAMED = r"(?:\w+\s*=>\s*)?"
_SPACE = re.IGNORECASE | re.DOTALL


# ---------------------------------------------------------------- text


def _table_function(found: re.Match[str]) -> str:
    """``TABLE(HOP(TABLE s, DESCRIPTOR(t), slide, size))``, ``TUMBLE(s, t, size)``."""
    word, kind, name, first, second = found.groups()
    size = second if kind.upper() == "HOP" and second else first
    return f"{word} {name} {_window(size, first)} "


def _window(size: str, slide: str) -> str:
    return f"[RANGE {_bare(size)} SLIDE {_bare(slide)}]"


def _bare(length: str) -> str:
    """A length without INTERVAL and quotes."""
    return re.sub(r"INTERVAL|'", " ", length, flags=re.IGNORECASE).strip()


def _put(text: str, window: str) -> str:
    """The text with a window on the first stream of FROM, if it has none."""
    return re.sub(r"\bFROM\s+(\w+)(?!\w|\s*\[)", rf"FROM \1 {window}", text, count=1, flags=_SPACE)


def _window_clause(text: str) -> str:
    """ksqlDB: ``WINDOW HOPPING (SIZE 5 MINUTES, ADVANCE BY 1 MINUTE)``."""
    clause = re.search(
        r"\s+WINDOW\s+(?:TUMBLING|HOPPING)\s*\(\s*SIZE\s+(\d+\s*\w+)"
        r"(?:\s*,\s*ADVANCE\s+BY\s+(\d+\s*\w+))?[^)]*\)",
        text,
        _SPACE,
    )
    if clause is None:
        return text
    size, slide = clause.groups()
    return _put(text[: clause.start()] + text[clause.end() :], _window(size, slide or size))


def _watermark(text: str) -> str:
    """``CREATE TABLE s (..., WATERMARK FOR t AS t - INTERVAL '5' SECOND) WITH (...)``."""
    mark = re.search(
        rf",?\s*WATERMARK\s+FOR\s+(\w+)(?:\s+AS\s+\1(?:\s*-\s*{_LENGTH})?)?", text, _SPACE
    )
    if mark is None:
        return text
    rest = text[: mark.start()] + text[mark.end() :]
    made = re.match(
        r"\s*CREATE\s+(?:TABLE|STREAM|SOURCE)\s+(\w+)\s*\((.*)\)\s*(?:WITH\s*\(.*\)\s*)?;?\s*$",
        rest.partition("WITH")[0].rstrip() if "connector" in rest else rest,
        _SPACE,
    )
    if made is None:
        return text
    slack = f" SLACK {_bare(mark[2])}" if mark[2] else ""
    columns = re.sub(r"(TIMESTAMP\w*)\s*\(\s*\d\s*\)", r"\1", made[2], flags=_SPACE)
    return f"CREATE STREAM {made[1]} ({columns}) TIMESTAMP BY {mark[1]}{slack}"


def _substituted(pattern: str, put: str | Callable[[re.Match[str]], str]) -> Callable[[str], str]:
    compiled = re.compile(pattern, _SPACE)
    return lambda text: compiled.sub(put, text)


_CONTINUOUS = (  # what makes a SELECT of others go on by itself
    _substituted(
        rf"\b(FROM|JOIN|,)\s*(?:TABLE\s*\(\s*)?(TUMBLE|HOP)\s*\(\s*{_NAMED}(?:TABLE\s+)?(\w+)\s*,\s*"
        rf"{_NAMED}(?:DESCRIPTOR\s*\(\s*\w+\s*\)|\w+)\s*,\s*{_NAMED}{_LENGTH}"
        rf"(?:\s*,\s*{_NAMED}{_LENGTH})?\s*\)(?:\s*\))?",
        _table_function,
    ),
    _window_clause,
    _substituted(
        r"\s+EMIT\s+(?:CHANGES|FINAL|ON\s+WINDOW\s+CLOSE|ON\s+UPDATE|AFTER\s+WATERMARK)\s*;?\s*$",
        "",
    ),
)
_OTHERS = (
    _substituted(
        r"^\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:MATERIALIZED\s+VIEW|TABLE|VIEW)\s+(\w+)"
        r"(?:\s+WITH\s*\([^)]*\))?\s+AS\s+(?=SELECT\b)",
        r"CREATE QUERY \1 AS ",
    ),
    _watermark,
)


# ---------------------------------------------------------------- trees

_STARTS = ("TUMBLE_START", "HOP_START", "TUMBLE", "HOP", "WINDOW", "WINDOW_START", "WINDOWSTART")
_ENDS = ("TUMBLE_END", "HOP_END", "WINDOW_END", "WINDOWEND", "TUMBLE_ROWTIME", "HOP_ROWTIME")
_WINDOWS = ("TUMBLE", "HOP", "WINDOW", "TUMBLINGWINDOW", "HOPPINGWINDOW")
FUNCTIONS = frozenset((*_STARTS, *_ENDS, *_WINDOWS))  # of windows, elsewhere
MOST = 4000  # characters of a statement that is looked at


def _name(node: ast.Node) -> str:
    """Of a call or a column, upper case."""
    return node.name.text.upper() if isinstance(node, ast.FuncCall | ast.ColumnRef) else ""


def _grouped(select: ast.Select) -> ast.Select:
    """``GROUP BY TUMBLE(t, INTERVAL '5' MINUTE)``: the window goes behind the streams of FROM."""
    calls = [e for e in select.group_by if isinstance(e, ast.FuncCall) and _name(e) in _WINDOWS]
    window = _of_call(calls[0]) if calls else None
    if calls and window is None:
        return select
    keys = tuple(e for e in select.group_by if e not in calls and not _is_bound(e))
    items = tuple(_told(item) for item in select.items)
    select = replace(select, group_by=keys, items=items)
    return select if window is None else replace(select, from_=_windowed(select.from_, window))


def _is_bound(node: ast.Node) -> bool:
    """A column `window_start` or `window_end`."""
    return isinstance(node, ast.ColumnRef) and _name(node) in ("WINDOW_START", "WINDOW_END")


def _told(item: ast.SelectItem | ast.StarItem) -> ast.SelectItem | ast.StarItem:
    """A column that tells the window's start or end."""
    if not isinstance(item, ast.SelectItem):
        return item
    name = _name(item.expr)
    known = isinstance(item.expr, ast.FuncCall) or _is_bound(item.expr)
    if not known or name not in (*_STARTS, *_ENDS):
        return item
    called = "WINDOW_START" if name in _STARTS else "WINDOW_END"
    alias = item.alias or (ast.Ident(name.lower()) if _is_bound(item.expr) else None)
    return replace(item, expr=ast.FuncCall(ast.Ident(called)), alias=alias)


def _of_call(call: ast.FuncCall) -> ast.RangeWindow | None:
    """The window that is meant: (t, size), HOP (t, slide, size), Spark's window(t, size, slide),
    the (unit, size, hop) of Azure."""
    if _name(call).endswith("INGWINDOW") and len(call.args) > 1:
        unit, *counts = call.args
        numbers = [a.value for a in counts if isinstance(a, ast.IntLit)]
        if not isinstance(unit, ast.ColumnRef) or len(numbers) != len(counts):
            return None
        lengths = [_duration(f"{n} {unit.name.text}") for n in numbers]
    else:
        lengths = [_length_of(a) for a in call.args[1:]]
        if _name(call) == "HOP":
            lengths.reverse()
    known = [length for length in lengths if length is not None]
    if not known or len(known) < len(lengths) or len(known) > 2:
        return None
    return ast.RangeWindow(known[0], slide=ast.Slide(known[-1]))


def _length_of(node: ast.Expr) -> ast.Duration | None:
    match node:
        case ast.IntervalLit():
            return node.duration
        case ast.StringLit(value):
            return _duration(value)
        case _:
            return None


def _duration(text: str) -> ast.Duration | None:
    number, _, unit = text.strip().partition(" ")
    try:
        return duration(number, unit.strip(), ast.NOWHERE)
    except (QueryError, ValueError):
        return None


def _windowed(items: tuple[ast.FromItem, ...], window: ast.Window) -> tuple[ast.FromItem, ...]:
    def put(part: ast.Node) -> ast.Node | None:
        if not isinstance(part, ast.TableRef) or part.window is not None:
            return None
        return replace(part, window=window)

    found: tuple[ast.FromItem, ...] = replaced(items, put)
    return found


def _types() -> dict[str, str]:
    """Names of types of others, and the type here that is the same."""
    hints = sections()["type"].items()
    named = {word: re.match(r"write ([A-Z]+)\b(?!\()", hint) for word, hint in hints}
    return {w: m[1] for w, m in named.items() if m and w not in ("TIMETZ", "TIME_TZ")}


def _renamed(node: ast.Node) -> ast.Node | None:
    known = _types() if isinstance(node, ast.TypeName) else {}
    name = node.name.upper() if isinstance(node, ast.TypeName) else ""
    return ast.TypeName(known[name]) if name in known else None


def _trees(statement: ast.Statement) -> ast.Statement:
    def here(node: ast.Node) -> ast.Node | None:
        if isinstance(node, ast.Select):
            inner = replace(node, from_=replaced(node.from_, here, True))
            changed = _grouped(inner)
            return None if changed == node else replaced_types(changed)
        return _renamed(node)

    def replaced_types(node: Any) -> Any:
        return replaced(node, _renamed, True)

    found: ast.Statement = replaced(statement, here, within_queries=True)
    return found


# ---------------------------------------------------------------- the whole


def advised(hint: str | None, text: str) -> str | None:
    """The hint, and behind it the statement as it is said here, if it can be."""
    shown = translated(text)
    return hint if shown is None else beside(hint, shown)


def beside(hint: str | None, shown: str) -> str:
    """The hint with what is written here."""
    return f"write {shown}" if hint is None else f"{hint}; here: {shown}"


def translated(text: str) -> str | None:
    """The statement as it is said here; None if there is nothing to translate, or no way to."""
    said = text.strip().rstrip(";")
    if len(said) > MOST:
        return None
    went_on = said
    for step in _CONTINUOUS:
        went_on = step(went_on)
    rest = went_on
    for step in _OTHERS:
        rest = step(rest)
    try:
        statement = parser().parse(rest)
    except (UnexpectedInput, QueryError):
        return None
    other = _trees(statement)
    if (rest == said and other == statement) or _tells_inside(other):
        return None
    if isinstance(other, ast.SelectStatement) and (went_on != said or _slides(other)):
        other = ast.CreateQuery(ast.Ident("q"), other.query, options=other.options)
    shown = to_sql(other)
    return shown if len(shown) <= LONGEST else None


def of_others(failure: QueryError) -> bool:
    """Whether what is unknown is a window or a type of other systems."""
    named = re.search(r"`(\w+)`", failure.message)
    name = named[1].upper() if named else ""
    match failure.code:
        case "DS201" | "DS206":
            return name in FUNCTIONS
        case code:
            return code == "DS210"


def _tells_inside(statement: ast.Statement) -> bool:
    """Whether a subquery would tell of its window, which only a whole query can."""
    calls = [n for n in ast.walk(statement) if _name(n) in ("WINDOW_START", "WINDOW_END")]
    body = getattr(getattr(statement, "query", None), "body", None)
    items = body.items if isinstance(body, ast.Select) else ()
    outermost = [i for i in items if isinstance(i, ast.SelectItem) and i.expr in calls]
    return len(calls) > len(outermost)


def _slides(statement: ast.SelectStatement) -> bool:
    return any(isinstance(w, ast.Window) and w.slide is not None for w in ast.walk(statement))
