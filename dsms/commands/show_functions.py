"""SHOW FUNCTIONS: what may stand in an expression, as the binder knows it."""

from __future__ import annotations

from collections.abc import Iterator

from dsms.api import Rows
from dsms.commands.own_functions import function_lines
from dsms.commands.rows import as_rows
from dsms.sql import functions
from dsms.sql.catalog import Catalog
from dsms.sql.functions import Card, Function
from dsms.sql.types import STRING

Line = tuple[str, str, str, str, str, str | None]
NAMES = ("function", "kind", "arguments", "result", "meaning", "aliases")


def show_functions(catalog: Catalog) -> Rows:
    """One row for each signature, by name."""
    found = [*_lines(), *function_lines(catalog)]
    lines = sorted(found, key=lambda line: line[0] or "")
    return as_rows([(name, STRING, [line[i] for line in lines]) for i, name in enumerate(NAMES)])


def _lines() -> Iterator[Line]:
    for name in functions.scalar_names(operators=False):
        yield from _signatures(functions.function(name), "scalar")
    yield (
        "current_user",
        "scalar",
        "",
        "STRING",
        "The name of who asks; of a persistent query, of its creator.",
        None,
    )
    for name, end in (("window_start", "begins"), ("window_end", "ends")):
        meaning = f"Where the window of a periodic answer {end}; a column of the outermost SELECT."
        yield name, "scalar", "", "TIMESTAMP", meaning, None
    meaning = "The instant of a row of a stream in FROM, as its TIMESTAMP BY column has it."
    yield "instant", "scalar", "a stream of FROM", "TIMESTAMP", meaning, None
    meaning = "Which grouping set a row is of: a bit for each key, 1 where it is not grouped by it."
    yield "grouping", "scalar", "keys of GROUP BY", "INT", meaning, None
    meaning = (
        "In a one-time query the instant that the answer holds at; NULL where nothing has a clock."
    )
    yield "now", "scalar", "", "TIMESTAMP", meaning, "current_timestamp"
    meaning = "Rows for which the condition is true: COUNT(*) FILTER (WHERE c)."
    yield "count_if", "aggregate", "BOOL", "INT", meaning, "countif"
    for name in functions.aggregate_names():
        yield from _signatures(functions.aggregate(name), "aggregate")


def _signatures(found: Function | Card, kind: str) -> Iterator[Line]:
    meaning = " ".join(found.doc.split())
    aliases = ", ".join(found.aliases) or None
    for overload in found.overloads:
        arguments, _, result = overload.text.partition(" -> ")
        inside = arguments.removeprefix("(").removesuffix(")")
        if isinstance(found, Card):
            inside = ", ".join(part for part in (inside, *_constants(found)) if part)
        if found.name == "count_star":
            yield "count", kind, "*", result, meaning, None
        else:
            yield found.name, kind, inside, result, meaning, aliases


def _constants(found: Card) -> list[str]:
    """Trailing constants, in brackets those that may be left out."""
    needed = len(found.params) - len(found.defaults)
    return [name if i < needed else f"[{name}]" for i, name in enumerate(found.params)]
