"""The options of WITH (...), in one table: where each may stand, its type, its values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dsms.sql import ast
from dsms.sql.catalog import Option
from dsms.sql.codes import error, suggest


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """`on`: stream, table, query, select (asked once: which takes those of queries, too).  `type`:
    word (one of `choices`), int (>= `least`), share, bool, text, or duration (µs, >= `least`)."""

    on: tuple[str, ...]
    type: str
    meaning: str
    choices: tuple[str, ...] = ()
    least: int = 0


OPTIONS: dict[str, OptionSpec] = {
    "strategy": OptionSpec(("query",), "word", "how the plan runs", ("upa", "direct", "nt")),
    "boundaries": OptionSpec(
        ("query",), "word", "every boundary, or SLIDE as an upper bound", ("every", "elastic")
    ),
    "on_error": OptionSpec(("query",), "word", "what a failing scalar does", ("null", "stop")),
    "partitions": OptionSpec(
        ("query",), "int", "buckets of a calendar queue (default: from the data)", least=1
    ),
    "optimize": OptionSpec(("query",), "bool", "rewrite the plan (default), or run it as bound"),
    "negation": OptionSpec(
        ("query",), "word", "where negation stands in the plan", ("auto", "up", "down")
    ),
    "distinct": OptionSpec(
        ("query",),
        "word",
        "the form of DISTINCT",
        ("auto", "input-storing", "delta-star", "counting"),
    ),
    "joins": OptionSpec(
        ("query",),
        "word",
        "joins of two by two, or of many windows at once",
        ("auto", "tree", "pipeline", "adaptive"),
    ),
    "migration": OptionSpec(
        ("query",),
        "word",
        "which rows of an adaptive join are put under a new index",
        ("nothing", "all", "partial"),
    ),
    "tuning": OptionSpec(
        ("query",),
        "word",
        "when the indices of an adaptive join are looked at again",
        ("hybrid", "continuous", "periodic", "triggered"),
    ),
    "replan": OptionSpec(
        ("query",), "word", "whether its plan changes with the data", ("auto", "never")
    ),
    "replan_after": OptionSpec(
        ("query",), "duration", "for how long another plan has been much better"
    ),
    "result_log": OptionSpec(
        ("query",), "int", "result rows kept for subscribers that resume", least=0
    ),
    "durability": OptionSpec(
        ("stream",), "word", "when a row counts as kept", ("none", "interval", "sync")
    ),
    "description": OptionSpec(("stream", "query"), "text", "kept with the definition"),
    "path": OptionSpec(
        ("query",), "word", "how a periodic query is evaluated", ("auto", "is", "ws", "ss", "iss")
    ),
    "synopsis": OptionSpec(
        ("query",),
        "word",
        "what is kept for it (own: no other predicate's synopses cover it)",
        ("auto", "running", "interval", "landmark", "basic", "collective", "own", "none"),
    ),
    "approximate": OptionSpec(
        ("query",), "share", "by how much of a threshold of HAVING groups may miss it"
    ),
    "priority": OptionSpec(
        ("query",), "int", "which of two due queries runs first: the larger (default 0)", least=-100
    ),
    "complete": OptionSpec(
        ("select",), "word", "whether the answer may lack rows that are gone", ("any", "required")
    ),
    "archive": OptionSpec(("select",), "word", "what reads archives", ("auto", "duckdb", "spark")),
    "shed": OptionSpec(
        ("stream", "query"),
        "word",
        "whether rows are left out where they come too fast, or (scale) sums make up for them",
        ("none", "random", "scale"),
    ),
    "sample": OptionSpec(
        ("query",), "word", "whether sums make up for what is not in a SAMPLE", ("none", "scale")
    ),
    "shed_delay": OptionSpec(
        ("stream",), "duration", "how long rows may wait before some are left out", least=1
    ),
    "max_state": OptionSpec(("query",), "int", "bytes of state before the query stops", least=1),
    "over": OptionSpec(
        ("query",),
        "word",
        "what it does whose state would be larger: stop, or let go of rows of its joins",
        ("stop", "shed"),
    ),
}

ADAPTIVE = ("migration", "tuning")


def check_options(options: Sequence[ast.Option], on: str) -> tuple[tuple[str, Option], ...]:
    """The options by their known names with checked values; DS214, DS215.  `on`: stream, ..."""
    known = [name for name, spec in OPTIONS.items() if set(spec.on) & _taken(on)]
    out: dict[str, Option] = {}
    for option in options:
        name = option.name.text.casefold()
        if name not in known:
            hint = suggest(name, known, f"options of a {on}") or f"a {on} takes no options"
            raise error("DS214", f"unknown option `{option.name.text}`", option.name, hint)
        out[name] = _value(name, _spec(name, on), option)
    for option in options:
        if option.name.text.casefold() in ADAPTIVE and out.get("joins") != "adaptive":
            message = f"`{option.name.text}` is of adaptive joins alone"
            raise error("DS347", message, option.name, "add joins = adaptive, or leave it out")
    return tuple(out.items())


def _spec(name: str, on: str) -> OptionSpec:
    """What it may be there: streams shed, and queries scale."""
    spec = OPTIONS[name]
    if name != "shed":
        return spec
    other = "scale" if on == "stream" else "random"
    return replace(spec, choices=tuple(c for c in spec.choices if c != other))


def _taken(on: str) -> set[str]:
    return {on, "query"} if on == "select" else {on}


def _value(name: str, spec: OptionSpec, option: ast.Option) -> Option:
    value = option.value
    match spec.type:
        case "word":
            if isinstance(value, str) and value.casefold() in spec.choices:
                return value.casefold()
            expected = " or ".join(spec.choices)
        case "int":
            if isinstance(value, int) and not isinstance(value, bool) and value >= spec.least:
                return value
            expected = f"a whole number, at least {spec.least}"
        case "duration":
            if isinstance(value, ast.Duration) and value.micros >= spec.least:
                return value.micros
            longer = ", longer than 0 s" if spec.least else ""
            expected = f"a duration{longer}, such as 10 MINUTES"
        case "share":
            if isinstance(value, int | float) and 0.01 <= value <= 0.75:
                return float(value)
            expected = "a number from 0.01 to 0.75"
        case "bool":
            if isinstance(value, bool):
                return value
            expected = "TRUE or FALSE"
        case _:
            if isinstance(value, str):
                return value
            expected = "a text"
    raise error(
        "DS215",
        f"option {name} ({spec.meaning}) expects {expected}",
        option,
        f"got {_shown(value)}",
    )


def _shown(value: object) -> str:
    return f"{value.micros} us" if isinstance(value, ast.Duration) else repr(value)
