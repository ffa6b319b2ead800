"""Joins of three to five windows of any kinds on a common attribute, and what may stand around
them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.generate.draws import Draws
from tests.generate.inputs import given
from tests.generate.stories import story_of
from tests.plan_queries import WORLD
from tests.stories.model import Story

WINDOWS = (
    "[RANGE 9 SECONDS]",
    "[RANGE 5 SECONDS]",
    "[RANGE 15 SECONDS]",
    "[ROWS 3]",
    "[NOW]",
    "",
    "[PARTITION BY k ROWS 2]",
    "[PARTITION BY k ROWS 2 RANGE 7 SECONDS]",
    "[PARTITION BY k EVERY 6 SECONDS]",
    "[RANGE 9 SECONDS UNTIL 2 SECONDS AGO]",
)
MORE = ("{0}.x < {1}.x", "{0}.x = {1}.x", "{0}.x <> {1}.x OR {0}.k = 0", "{0}.x = {0}.k")
SHAPES = (
    "SELECT {kind}({columns}) {flat}",
    "SELECT {kind}({columns}) {flat}",
    "SELECT {kind}(DISTINCT {columns}) {flat}",
    "SELECT {kind}({first}.k, COUNT(*) AS n, SUM({last}.x) AS m) {flat} GROUP BY {first}.k",
    "SELECT {kind}(*) FROM (SELECT {columns} {flat} UNION ALL SELECT z.k, z.x FROM s [NOW] AS z) q",
    "SELECT {kind}({columns}) {flat} AND NOT EXISTS (SELECT * FROM s [ROWS 2] z WHERE z.x = "
    "{first}.x)",
)


def query(d: Draws, windows: tuple[str, ...] = WINDOWS, slide: str = "") -> str:
    """One query over `plan_queries.WORLD`; `slide`: in each window."""
    names = [d.name() for _ in range(d.pick((3, 3, 3, 4, 5)))]
    few = tuple(d.pick(windows) for _ in range(2))  # the same ones come again: ties
    items = [
        f"{d.pick('stu')} {_slid(d.pick((*few, d.pick(windows))), slide)} AS {a}" for a in names
    ]
    star, both = d.chance(50), d.chance(20)
    where = []
    for i, name in enumerate(names[1:]):
        other = names[0] if star else names[i]
        where += [f"{other}.k = {name}.k"] + ([f"{other}.x = {name}.x"] if both else [])
    for _ in range(d.pick((0, 0, 1, 2))):
        where.append("(" + d.pick(MORE).format(d.pick(names), d.pick(names)) + ")")
    if not slide and d.chance(25):
        table = d.pick(("r", "n"))
        items.append(f"{table} AS w")
        where.append(f"w.k = {d.pick(names)}.{d.pick('kx')}")
    flat = f"FROM {', '.join(items)} WHERE {' AND '.join(where)}"
    columns = f"{names[0]}.k AS c0, {d.pick(names)}.x AS c1"
    kind = d.pick(("Rstream", "Istream", "Dstream"))
    shape = d.pick(SHAPES[:4] if slide else SHAPES)
    if slide and shape == SHAPES[0]:
        kind = d.pick(("Rstream", "Istream", "Istream-restore", "Rstream-restore"))
    return shape.format(kind=kind, columns=columns, flat=flat, first=names[0], last=names[-1])


def _slid(window: str, slide: str) -> str:
    return f"{window[:-1]} {slide}]" if slide else window


@st.composite
def joined_windows(draw: Any, most_rows: int = 24) -> Story:
    """A random query of these, with random input."""
    d = Draws(draw)
    sql = query(d)
    return story_of(WORLD, sql, given(d, WORLD, most_rows))


@st.composite
def joined_sliding(draw: Any, most_rows: int = 24) -> Story:
    """The same, answered at boundaries."""
    d = Draws(draw)
    sql = query(d, WINDOWS[:3], f"SLIDE {d.pick((2, 3, 7))} SECONDS")
    return story_of(WORLD, sql, given(d, WORLD, most_rows))
