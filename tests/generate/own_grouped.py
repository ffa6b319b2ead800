"""Queries of aggregates in Python alone, over windows of one stream."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.generate.draws import Draws
from tests.generate.exprs import Column, condition, scalar
from tests.generate.inputs import given, shuffled
from tests.generate.own import RESULTS, aggregate
from tests.generate.stories import story_of
from tests.generate.world import LISTED, PAIR, SECOND, World, world
from tests.stories.model import Arrival, Story

WINDOWS = (
    "RANGE 3 SECONDS",
    "RANGE 9 SECONDS",
    "RANGE 6 SECONDS UNTIL 2 SECONDS AGO",
    "NOW",
    "ROWS 4",
    "ROWS 5 UNTIL 2 AGO",
    "PARTITION BY k ROWS 3",
    "RANGE UNBOUNDED",
    "RANGE UNBOUNDED UNTIL 2 SECONDS AGO",
    "SINCE 2s",
)
SLIDING = (
    "RANGE 6 SECONDS SLIDE 2 SECONDS",
    "RANGE 12 SECONDS SLIDE 1 SECONDS",
    "RANGE 5 SECONDS SLIDE 3 SECONDS",
    "RANGE 2 SECONDS SLIDE 5 SECONDS",
    "RANGE 9 SECONDS UNTIL 3 SECONDS AGO SLIDE 3 SECONDS",
    "RANGE UNBOUNDED SLIDE 2 SECONDS",
    "SINCE 2s SLIDE 3 SECONDS",
    "ROWS 6 SLIDE 2",
    "ROWS 3 SLIDE 1",
    "ROWS 7 UNTIL 2 AGO SLIDE 3",
    "PARTITION BY k ROWS 3 SLIDE 2",
)


@st.composite
def grouped_stories(draw: Any, sliding: bool, slack: int = 0, minus: bool = False) -> Story:
    """Several in one query, by groups or over all rows; rows come late within `slack` seconds;
    `minus`: over windows and of aggregates from which rows can be subtracted."""
    d = Draws(draw)
    declared = World(world(d, slack).sources[:1])
    source = declared.sources[0]
    scope = [Column(f"x.{n}", t) for n, t in source.columns]
    keys = d.some([c.text for c in scope if c.type not in (LISTED, PAIR)], 0, 1 if minus else 2)
    items = [f"{key} AS k{i}" for i, key in enumerate(keys)]
    for i in range(d.number(1, 3)):
        call = aggregate(d, d.pick(tuple(RESULTS)), lambda t: scalar(d, scope, t), True, minus)
        only = f" FILTER (WHERE {condition(d, scope)})" if d.chance(25) else ""
        items.append(f"{call}{only} AS c{i}")
    where = f" WHERE {condition(d, scope)}" if d.chance(0 if minus else 25) else ""
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    kind = d.pick(("Rstream", "Rstream", "Istream", "Dstream"))
    having = " HAVING COUNT(*) > 1" if d.chance(15) else ""
    window = d.pick(SLIDING[:2] if minus else SLIDING if sliding else WINDOWS)
    text = f"SELECT {kind}({', '.join(items)}) FROM {source.name} [{window}] AS x"
    came = given(d, declared, 30)
    rows = [e for e in came.events if isinstance(e, Arrival)] + came.events[-1:]
    events = shuffled(d, rows, slack * SECOND) if slack else came.events
    return story_of(declared, f"{text}{where}{by}{having}", came, events)
