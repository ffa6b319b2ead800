"""Streams with KEY against their definition, on random worlds, inputs and queries: what they hold
is, of each key, the last row in the window, unless it deletes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests import test_equivalence as continuous
from tests import test_periodic_equivalence as periodic
from tests.answers_world import AGED, ONE, TWO
from tests.effort import examples
from tests.generate.periodic import every_stories, periodic_stories
from tests.generate.stories import kept_stories, stories
from tests.stories.model import Arrival, Beat, Event, Section, Story
from tests.stories.play import some_ways

SEEDS = st.integers(0, 9999)
S = 1_000_000
STREAMS = """
CREATE STREAM a (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t KEY (k);
CREATE STREAM b (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t KEY (k, v) RETAIN 3 s;
CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t;
"""
WINDOWS = ("", "", "[RANGE 3 s]", "[RANGE 5 s UNTIL 2 s AGO]", "[NOW]", "[SINCE 4s]")


@st.composite
def changes(draw: st.DrawFn, of: str = "aabs", most: int = 24) -> list[Event]:
    """Rows of few keys, many at one instant."""
    found, now = list[Event](), 0
    for _ in range(draw(st.integers(1, most))):
        now += draw(st.sampled_from([0, 0, 1, 1, 2, 4]))
        row = [draw(st.integers(0, 1)), draw(st.integers(0, 2)), now * S]
        name = draw(st.sampled_from(of))
        row += [draw(st.sampled_from("UD"))] if name != "s" else []
        found.append(Arrival(name, now * S, tuple(row)))
    return [*found, Beat(None, (now + draw(st.integers(0, 6))) * S)]


@st.composite
def held(draw: st.DrawFn, *, boundaries: bool, late: bool = False) -> Story:
    """A query over what streams with KEY hold; `late`: it comes after some of the rows."""
    slide = " SLIDE 2 s" if boundaries and draw(st.booleans()) else ""

    def item(plain: bool = False) -> str:
        if plain:
            return f"s [RANGE 4 s{slide}]"
        window = draw(st.sampled_from(WINDOWS))
        if slide and window not in ("", "[NOW]"):
            window = f"{window[:-1]}{slide}]"
        return f"{draw(st.sampled_from('ab'))} {window}"

    form = draw(st.sampled_from(ONE + TWO + (() if late else AGED)))
    text = form.format(a=item(), b=item(draw(st.booleans())))
    kind = draw(st.sampled_from(["", "", "Istream", "Dstream"]))
    if kind and form in ONE + TWO[:4]:
        head, _, rest = text.partition(" FROM ")
        text = f"SELECT {kind}({head.removeprefix('SELECT ')}) FROM {rest}"
    if boundaries:
        text += " EVERY 2 s"
    events = draw(changes())
    first = draw(st.integers(0, len(events) - 1)) if late else 0
    before = [Section("input", events=events[:first])] if first else []
    query = Section("query", "q", body=text)
    rest = [Section("input", events=events[first:]), Section("pushes", "q")]
    return Story(sections=[Section("sql", body=STREAMS), *before, query, *rest])


@settings(max_examples=examples(120))
@given(held(boundaries=False), SEEDS)
def test_what_is_held_is_the_last_row_of_each_key(story: Story, seed: int) -> None:
    continuous.check(story, some_ways(seed))


@settings(max_examples=examples(120))
@given(held(boundaries=True), SEEDS)
def test_boundaries_see_what_is_held_then(story: Story, seed: int) -> None:
    periodic.check(story, periodic.ways(seed))


@settings(max_examples=examples(60))
@given(st.one_of(stories(keyed=True), kept_stories(keyed=True)), SEEDS)
def test_any_query_may_read_what_is_held(story: Story, seed: int) -> None:
    continuous.check(story, some_ways(seed))


@settings(max_examples=examples(60))
@given(st.one_of(periodic_stories(keyed=True), every_stories(keyed=True)), SEEDS)
def test_any_periodic_query_may_read_what_is_held(story: Story, seed: int) -> None:
    periodic.check(story, periodic.ways(seed))
