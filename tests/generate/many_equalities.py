"""Joins of three to five windows of any kinds on several attributes: cliques, cycles, stars on
different attributes, chains; and what may stand around them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

from hypothesis import strategies as st

from dsms.sql.types import INT, STRING
from tests.generate.draws import Draws
from tests.generate.inputs import Given, given
from tests.generate.many_windows import SHAPES, WINDOWS
from tests.generate.stories import story_of
from tests.generate.world import Source, World
from tests.stories.model import Arrival, Event, Story

COLUMNS = (("k", INT), ("x", INT), ("y", INT), ("z", INT), ("c", STRING))
TABLE = (("k", INT), ("y", INT), ("x", INT))
WORLD = World((*(Source(name, COLUMNS) for name in "stu"), Source("r", TABLE, "table")))
MORE = ("{0}.x < {1}.x", "{0}.x <> {1}.y OR {0}.k = 0", "{0}.x = {0}.k", "{0}.x + {1}.x = {2}.y")


def edges(d: Draws, n: int) -> list[tuple[int, int]]:
    """Which inputs are equal in something; all hang together."""
    match d.pick(("cycle", "clique", "star", "chain", "clique")):
        case "cycle":
            return [(i, (i + 1) % n) for i in range(n)]
        case "clique":
            return list(combinations(range(n), 2))
        case "star":
            return [(0, i) for i in range(1, n)]
        case _:
            return [(i, i + 1) for i in range(n - 1)]


def query(d: Draws, windows: tuple[str, ...] = WINDOWS, slide: str = "") -> str:
    """One query over `WORLD`; `slide`: in each window."""
    names = [d.name() for _ in range(d.pick((3, 3, 4, 4, 5)))]
    few = tuple(d.pick(windows) for _ in range(2))  # the same ones come again: ties
    items = []
    for name in names:
        window = d.pick((*few, d.pick(windows)))
        items.append(
            f"{d.pick('stu')} {window[:-1] + ' ' + slide + ']' if slide else window} AS {name}"
        )
    where = []
    for i, j in edges(d, len(names)):
        if d.chance(20):
            where.append(f"{names[i]}.c = {names[j]}.c")
        else:
            plus = d.pick(("", "", "", " + 1"))
            where.append(f"{names[i]}.{d.pick('kxyz')}{plus} = {names[j]}.{d.pick('kxyz')}")
    if d.chance(30):
        where.append(d.pick(MORE).format(*(d.pick(names) for _ in range(3))))
    if not slide and d.chance(15):
        items.append("r AS w")
        where.append(f"w.k = {d.pick(names)}.{d.pick('kx')}")
    flat = f"FROM {', '.join(items)} WHERE {' AND '.join(where)}"
    columns = ", ".join(f"{d.pick(names)}.{c} AS c{n}" for n, c in enumerate(("k", d.pick("xc"))))
    kind = d.pick(("Rstream", "Istream", "Dstream"))
    shape = d.pick((SHAPES[0], *SHAPES[:4]))
    return shape.format(kind=kind, columns=columns, flat=flat, first=names[0], last=names[-1])


def _few_values(d: Draws, came: Given) -> Given:
    """Rows of streams with so few values that many are equal."""

    def some(event: Event) -> Event:
        if not isinstance(event, Arrival):
            return event
        cells = [d.pick((1, 1, 1, 0, 2, None)) for _ in range(4)]
        return replace(event, values=(*cells, d.pick(("a", "a", "b", None)), event.values[-1]))

    return Given(came.first, [some(e) for e in came.events])


@st.composite
def joined_anyhow(draw: Any, most_rows: int = 28) -> Story:
    """A random query of these, with random input."""
    d = Draws(draw)
    sql = query(d)
    return story_of(WORLD, sql, _few_values(d, given(d, WORLD, most_rows)))


@st.composite
def joined_anyhow_sliding(draw: Any, most_rows: int = 24) -> Story:
    """The same, answered at boundaries."""
    d = Draws(draw)
    sql = query(d, WINDOWS[:3], f"SLIDE {d.pick((2, 3, 7))} SECONDS")
    return story_of(WORLD, sql, _few_values(d, given(d, WORLD, most_rows)))
