"""Streams with KEY against their definition, on random worlds, inputs and queries: what they hold
is, of each key, the last row in the window, unless it deletes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
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


ITEMS = ("a", "b", "s [RANGE 4 s]", "qa", "qs")
FORMS = (
    "SELECT x.k, x.v, y.v AS w FROM {x} x JOIN {y} y ON x.k = y.k",
    "SELECT x.k, y.v FROM {x} x LEFT JOIN {y} y ON x.k = y.k AND x.v = y.v",
    "SELECT k, v FROM {x} x WHERE k IN (SELECT v FROM {y} y)",
    "SELECT k, v FROM {x} x WHERE k NOT IN (SELECT v FROM {y} y)",
    "SELECT x.k, COUNT(*) AS n FROM {x} x, {y} y GROUP BY x.k",
)


@settings(max_examples=examples(100), deadline=None)
@given(changes(), st.lists(st.integers(0, 6), min_size=3, max_size=3), st.data())
def test_one_time_joins_are_of_one_instant(
    events: list[Event], longer: list[int], data: st.DataObject
) -> None:
    """What is ahead of another stream is seen as it was: as a continuous query of that text does,
    which may be behind what it reads."""
    engine = Engine()
    engine.execute(
        f"{STREAMS.replace('BY t;', 'BY t RETAIN 1 h;')} CREATE QUERY qa AS SELECT * FROM a"
    )
    engine.execute("CREATE QUERY qs AS SELECT k, MAX(v) AS v FROM s GROUP BY k")
    x, y = (data.draw(st.sampled_from(ITEMS)) for _ in "xy")
    text = data.draw(st.sampled_from(FORMS)).format(x=x, y=y)
    engine.execute(f"CREATE QUERY q AS {text}")
    _compare(engine, text)
    for event in events:
        if isinstance(event, Arrival):
            engine.ingest(event.stream, [list(event.values)])
            if data.draw(st.integers(0, 3)) == 0:
                _compare(engine, text)
    for name, more in zip("abs", longer, strict=True):
        engine.heartbeat(name, max(engine.runtime.inputs[name].completed, 0) + more * S)
        _compare(engine, text)


def _compare(engine: Engine, text: str) -> None:
    (once,), (view,) = engine.execute(text), engine.execute("SELECT * FROM q")
    assert once.as_of == view.as_of, text
    shown = [sorted(map(repr, r.data.to_pylist())) for r in (once, view)]
    assert shown[0] == shown[1], f"{text} as of {once.as_of} ({once.since})"
