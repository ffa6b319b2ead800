"""Whole stories: a world, its input, one query; ready to be judged, played and printed as a golden
file."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import strategies as st

from dsms.sql.types import FLOAT, INT, STRING
from tests.generate.draws import Draws
from tests.generate.exprs import columns
from tests.generate.inputs import Given, given, shuffled
from tests.generate.queries import Queries
from tests.generate.windows import Mode
from tests.generate.world import DOMAIN, KEYS, SECOND, World, with_keys, world
from tests.stories.model import Arrival, Beat, Event, Section, Story


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
def entries_stories(draw: Any, most_rows: int = 20) -> Story:
    """Istream in FROM."""
    d = Draws(draw)
    declared = world(d)
    queries = Queries(d, declared)
    queries.entered = True
    sql = queries.body([INT, INT], d.pick((1, 2)), d.pick(("Rstream", "Istream", "", "Dstream")))
    return story_of(declared, sql, given(d, declared, most_rows))


@st.composite
def slack_stories(draw: Any) -> tuple[Story, Story]:
    """The same rows twice: in order, and shuffled within the slack of their streams."""
    d = Draws(draw)
    declared = World(tuple(s for s in world(d, slack=6).sources if s.kind == "stream"))
    sql = Queries(d, declared).query()
    came = given(d, declared)
    rows = [e for e in came.events if isinstance(e, Arrival)] + came.events[-1:]
    return story_of(declared, sql, came, rows), story_of(
        declared, sql, came, shuffled(d, rows, 6 * SECOND)
    )


@st.composite
def one_time(draw: Any, keyed: bool = False) -> tuple[Story, str]:
    """A story without a query, and a SELECT to ask at its end, over windows that the streams
    retain."""
    d = Draws(draw)
    declared = with_keys(d, world(d)) if keyed else world(d)
    sql = Queries(d, declared, "time").body([INT, d.pick((STRING, FLOAT, INT))], d.pick((0, 1)))
    story = story_of(declared, sql, given(d, declared, undated=True))
    ddl = story.sections[0]
    ddl.body = ddl.body.replace("TIMESTAMP BY ts", "TIMESTAMP BY ts RETAIN 1 HOUR")
    story.sections = [ddl, story.sections[2]]
    return story, sql


@st.composite
def kept_stories(
    draw: Any, most_rows: int = 20, appended: bool = False, keyed: bool = False
) -> Story:
    """Streams that keep their rows for an hour, in sub-windows of any length; the query comes after
    some input.  `appended`: it reads what a block has appended."""
    d = Draws(draw)
    slack = d.pick((0, 0, 6))
    declared = with_keys(d, world(d, slack)) if keyed else world(d, slack)
    queries = Queries(d, declared, "small" if appended else "any")
    sql = over_entries(d, queries) if appended else queries.query()
    came = given(d, declared, most_rows)
    tables = len(declared.sources) > len(declared.of("stream"))
    events = shuffled(d, came.events, 6 * SECOND) if slack and not tables else came.events
    cut = d.number(0, len(events) - 1)
    story = story_of(declared, sql, came, events[cut:])
    ddl, query, rest, pushes = story.sections
    clause = d.pick(("", " SUBWINDOW 1 s", " SUBWINDOW 7 s", " SUBWINDOW 30 min"))
    ddl.body = ddl.body.replace("TIMESTAMP BY ts", f"TIMESTAMP BY ts{clause} RETAIN 1 HOUR")
    return Story(sections=[ddl, Section("input", events=events[:cut]), query, rest, pushes])


def over_entries(d: Draws, queries: Queries) -> str:
    """A query over what a block appends of one stream, which rests on all rows that came."""
    text, names = queries.stream(Mode())
    inner = f"SELECT Istream({columns(names, INT)[0]} AS k, {names[-1].text} AS at) FROM {text}"
    kind = d.pick(("Istream", "Rstream", "Istream"))
    if d.chance(20):
        other, theirs = queries.stream(Mode())
        k = columns(theirs, INT)[0]
        tested = inner.replace(f", {names[-1].text} AS at", "")
        return f"SELECT {kind}({k}) FROM {other} WHERE {k} IN ({tested})"
    items, behind = d.pick(
        (
            ("COUNT(*), MAX(e.at)", ""),
            ("e.k, COUNT(*)", " GROUP BY e.k"),
            ("DISTINCT e.k", ""),
            ("DISTINCT e.at", " WHERE e.k > 0"),
        )
    )
    return f"SELECT {kind}({items}) FROM ({inner}) AS e{behind}"


@st.composite
def long_stories(draw: Any, rows: int = 220) -> Story:
    """Enough rows for state to grow, be compacted and start over, through windows that keep few of
    them."""
    d = Draws(draw)
    declared = World(tuple(s for s in world(d).sources if s.kind == "stream"))
    sql = Queries(d, declared, "small").query()
    return story_of(declared, sql, many_rows(d, declared, rows))


def many_rows(d: Draws, declared: World, rows: int) -> Given:
    """Many rows of all streams, with ties and gaps."""
    random = Random(d.number(0, 9999))
    now, out = 0, list[Event]()
    for _ in range(rows):
        now += random.choice((0, 0, 1, 1, 1, 2, 30)) * SECOND // 2
        source = random.choice(declared.sources)
        values = [random.choice(KEYS), *(random.choice(DOMAIN[t]) for _, t in source.columns[1:])]
        out.append(Arrival(source.name, now, (*values, now)))
    return Given((), [*out, Beat(None, now + 40 * SECOND)])


@st.composite
def stories(draw: Any, most_rows: int = 20, keyed: bool = False) -> Story:
    """A random query over a random world with random input."""
    d = Draws(draw)
    declared = with_keys(d, world(d)) if keyed else world(d)
    queries = Queries(d, declared)
    queries.dating = True
    return story_of(declared, queries.query(), given(d, declared, most_rows, undated=True))
