"""Functions and aggregates in Python: calls of them where expressions are drawn, and their
declarations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from hypothesis import strategies as st

from dsms.sql.types import BOOL, FLOAT, INT, STRING, TIMESTAMP, Type
from tests.generate.draws import Draws
from tests.generate.world import LISTED, MONEY
from tests.stories.model import Story

RESULTS = {
    INT: "int",
    FLOAT: "float",
    STRING: "text",
    MONEY: "money",
    BOOL: "truth",
    TIMESTAMP: "instant",
    LISTED: "listed",
}
BY_VALUES = ("total", "most", "maybe", "bits", "count", "typed")  # parts of states, any order
BY_ARRIVAL = ("chain", "last", "affine", "first", "rise")
LESS = ("total", "chain", "affine", "count", "typed")  # which can be subtracted
ARGUMENTS = (INT, STRING, FLOAT, MONEY, BOOL, LISTED)

_declared: ContextVar[list[str] | None] = ContextVar("declared", default=None)
Part = Callable[[Type], str]


@contextmanager
def _drawing() -> Iterator[list[str]]:
    made: list[str] = []
    token = _declared.set(made)
    try:
        yield made
    finally:
        _declared.reset(token)


@st.composite
def with_own(draw: Any, stories: st.SearchStrategy[Any]) -> Any:
    """Stories (or some together) whose queries call functions in Python, which they declare."""
    with _drawing() as made:
        found = draw(stories)
    for story in found if isinstance(found, tuple) else (found,):
        if isinstance(story, Story):
            story.sections[0].body = "\n".join([story.sections[0].body, *made])
    return found


def wanted(d: Draws, percent: int) -> bool:
    """Whether the next call is to be one in Python."""
    return _declared.get() is not None and d.chance(percent)


def function(d: Draws, type_: Type, part: Part) -> str:
    """A call of a function that is made for it."""
    types = [d.pick(ARGUMENTS) for _ in range(d.number(1, 2))]
    name = _declare("FUNCTION", types, type_, RESULTS[type_])
    return f"{name}({', '.join(map(part, types))})"


def aggregate(d: Draws, type_: Type, part: Part, ordered: bool, minus: bool = False) -> str:
    """A call of an aggregate that is made for it; `ordered`: it may go by the order of rows;
    `minus`: it has `subtract`, as others may."""
    types = [d.pick(ARGUMENTS) for _ in range(d.number(1, 2))]
    minus = minus or d.chance(40)
    kinds = [k for k in BY_ARRIVAL + BY_VALUES if not minus or k in LESS]
    kinds = kinds if ordered else [k for k in kinds if k in BY_VALUES]
    parts = [f"{d.pick(kinds)}{d.number(0, len(types) - 1)}" for _ in range(d.number(1, 3))]
    words = [RESULTS[type_].capitalize(), *parts, *(["minus"] if minus else [])]
    name = _declare("AGGREGATE", types, type_, "_".join(words))
    return f"{name}({', '.join(map(part, types))})"


def _declare(kind: str, types: list[Type], result: Type, what: str) -> str:
    made = _declared.get()
    assert made is not None
    name = f"own{len(made)}"
    takes = ", ".join(f"p{k} {t}" for k, t in enumerate(types))
    made.append(f"CREATE {kind} {name}({takes}) RETURNS {result} AS PYTHON 'drawn:{what}';")
    return name
