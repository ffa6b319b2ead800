"""Whole stories: a world, its input, one query; ready to be judged, played and printed as a golden file."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import strategies as st

from tests.generate.draws import Draws
from tests.generate.inputs import Given, given
from tests.generate.queries import Queries
from tests.generate.world import World, world
from tests.stories.model import Event, Section, Story


def examples(count: int) -> int:
    """How many examples a property test tries: `count`, or as many times that as --fuzz says."""
    return count * max(1, int(os.environ.get("DSMS_TEST_FUZZ", "0")))


def story_of(declared: World, sql: str, came: Given, events: list[Event] | None = None) -> Story:
    rows = "".join(f"\n{statement.sql};" for statement in came.first)
    return Story(
        sections=[
            Section("sql", body=declared.ddl() + rows),
            Section("query", "q", body=sql),
            Section("input", events=came.events if events is None else events),
            Section("pushes", "q"),
        ],
    )


@st.composite
def stories(draw: Any, most_rows: int = 20) -> Story:
    """A random query over a random world with random input."""
    d = Draws(draw)
    declared = world(d)
    sql = Queries(d, declared).query()
    return story_of(declared, sql, given(d, declared, most_rows))
