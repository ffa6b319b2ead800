"""Sessions and WHEN windows against their definitions, on random rows and queries: ties, NULLs,
disorder, cuts, strategies, restarts, boundaries, and asked once."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests import test_equivalence as continuous
from tests import test_oneshot as once
from tests import test_periodic_equivalence as periodic
from tests import test_recovery_equivalence as restarts
from tests.effort import examples
from tests.stories.model import Arrival, Beat, End, Event, Section, Story
from tests.stories.play import some_ways

SEEDS = st.integers(0, 9999)
S = 1_000_000
COLUMNS = "(k INT, m STRING, v INT, d INTERVAL, t TIMESTAMP)"
STREAMS = "".join(
    f"CREATE STREAM {name} {COLUMNS} TIMESTAMP BY t SLACK 2 s RETAIN 1 h;\n" for name in "su"
)
STREAMS += "CREATE TABLE names (k INT PRIMARY KEY, name STRING) NON RETROACTIVE;\n"
CORES = (
    "SESSION 2 s",
    "SESSION 3 s",
    "SESSION 1 us",
    "SESSION (d)",
    "SESSION (d)",
    "SESSION (v * INTERVAL '1' SECOND)",
    "WHEN v > 1 UNTIL v = 0",
    "WHEN v > 0 UNTIL v < 2",
    "WHEN m = 'a' UNTIL m = 'b'",
    "WHEN TRUE UNTIL v = 0",
    "WHEN v = 1 UNTIL v = 1",
    "WHEN v / v = 1 UNTIL FALSE",
)
KEYS = ("k", "k", "m", "k, m", "")
FORMS = (
    "SELECT x.k, x.v FROM {x}",
    "SELECT x.v FROM {x} WHERE x.k > 0",
    "SELECT x.k, COUNT(*) AS n, SUM(x.v) AS s, MIN(x.t) AS t FROM {x} GROUP BY x.k",
    "SELECT COUNT(*) AS n, FIRST(x.v) AS a, LAST(x.v) AS z FROM {x}",
    "SELECT DISTINCT x.v FROM {x}",
    "SELECT x.k, y.v FROM {x} JOIN u [RANGE 3 s] y ON x.k = y.k",
    "SELECT x.k, y.v FROM {x} LEFT JOIN u [SESSION 2 s BY k] y ON x.k = y.k",
    "SELECT x.k, y.v FROM {x} ASOF LEFT JOIN u y ON x.k = y.k",
    "SELECT x.k, n.name FROM {x} LEFT JOIN names n ON x.k = n.k",
    "SELECT x.k FROM {x} WHERE NOT EXISTS (SELECT * FROM u [RANGE 3 s] y WHERE y.k = x.k)",
    "SELECT x.k, x.v FROM {x} UNION ALL SELECT k, v FROM u [NOW]",
    "SELECT x.k, x.v FROM {x} ORDER BY x.v LIMIT 2 PER x.k",
)
SOURCES = (
    "s",
    "s",
    "s",
    "(SELECT * FROM s WHERE v IS NOT NULL)",
    "(SELECT * FROM s UNION ALL SELECT * FROM u)",
)
CLOSING = (
    "SELECT {by}COUNT(*) AS n, SUM(v) AS s, MIN(t) AS a, MAX(t) AS z FROM {x} {group}",
    "SELECT {by}FIRST(v) AS a, LAST(v) AS z, MEDIAN(v) AS m FROM {x} WHERE v >= 0 {group}",
    "SELECT {by}COUNT(DISTINCT v) AS n FROM {x} {group} HAVING COUNT(*) > 1",
    "SELECT COUNT(*) AS n FROM {x} {group}",
    "SELECT {by}v, COUNT(*) AS n FROM {x} {finer}",
    "SELECT q.n, COUNT(*) AS many FROM (SELECT {by}COUNT(*) AS n FROM {x} {group}) [RANGE 4 s] q "
    "GROUP BY q.n",
    "SELECT {by}v FROM {x}",
)


@st.composite
def rows(draw: st.DrawFn, most: int = 24) -> list[Event]:
    """Of few keys, some NULL, many at one instant or up to 2 s late."""
    found, now = list[Event](), 2
    for _ in range(draw(st.integers(2, most))):
        now += draw(st.sampled_from([0, 0, 1, 1, 2, 4]))
        at = (now - draw(st.sampled_from([0, 0, 0, 1, 2]))) * S
        k = draw(st.sampled_from([0, 0, 1, 1, None]))
        m = draw(st.sampled_from(["a", "a", "b", None]))
        v = draw(st.sampled_from([0, 1, 1, 2, 2, None]))
        d = draw(st.sampled_from([0, 1, 2 * S, 2 * S, 5 * S, -S, None]))
        found.append(Arrival(draw(st.sampled_from("sssu")), at, (k, m, v, d, at)))
    return [*found, Beat(None, (now + draw(st.integers(0, 8))) * S)]


def story(draw: st.DrawFn, text: str, late: bool) -> Story:
    """`late`: the query comes after some of the rows."""
    events = draw(rows())
    if draw(st.booleans()):
        events.append(End(None))
    first = draw(st.integers(0, len(events) - 1)) if late else 0
    before = [Section("input", events=events[:first])] if first else []
    rest = [Section("input", events=events[first:]), Section("pushes", "q")]
    return Story(
        sections=[Section("sql", body=STREAMS), *before, Section("query", "q", body=text), *rest]
    )


def window(draw: st.DrawFn) -> tuple[str, str]:
    """Without options, and its keys."""
    by = draw(st.sampled_from(KEYS))
    return draw(st.sampled_from(CORES)) + (f" BY {by}" if by else ""), by


@st.composite
def episode_stories(draw: st.DrawFn, *, boundaries: bool = False, late: bool = False) -> Story:
    """What is in the window while an episode is open."""
    inner, _ = window(draw)
    slide = boundaries and draw(st.booleans())
    source = draw(st.sampled_from(SOURCES))
    form = draw(st.sampled_from(FORMS))
    text = form.format(x=f"{source} [{inner}{' SLIDE 2 s' if slide else ''}] x")
    kind = draw(st.sampled_from(["", "", "Istream", "Rstream", "Dstream"]))
    if kind and form in FORMS[:4]:
        head, _, rest = text.partition(" FROM ")
        text = f"SELECT {kind}({head.removeprefix('SELECT ')}) FROM {rest}"
    if boundaries and not slide:
        text += " EVERY 2 s"
    return story(draw, text, late)


@st.composite
def closing_stories(draw: st.DrawFn, *, boundaries: bool = False) -> Story:
    """What is told of episodes as they end."""
    inner, by = window(draw)
    group, finer = (f"GROUP BY {by}" if by else ""), f"GROUP BY {by + ', ' if by else ''}v"
    form = draw(st.sampled_from(CLOSING))
    x = f"{draw(st.sampled_from(SOURCES))} [{inner} INTERNAL]"
    text = form.format(by=f"{by}, " if by else "", x=x, group=group, finer=finer)
    return story(draw, text + (" EVERY 2 s" if boundaries else ""), False)


@settings(max_examples=examples(240), deadline=None)
@given(episode_stories(), SEEDS)
def test_rows_are_there_while_their_episode_is_open(story: Story, seed: int) -> None:
    continuous.check(story, some_ways(seed))


@settings(max_examples=examples(200), deadline=None)
@given(closing_stories(), SEEDS)
def test_episodes_are_told_as_they_end(story: Story, seed: int) -> None:
    continuous.check(story, some_ways(seed))


@settings(max_examples=examples(100), deadline=None)
@given(episode_stories(late=True), SEEDS)
def test_queries_begin_with_rows_that_are_kept(story: Story, seed: int) -> None:
    continuous.check(story, some_ways(seed))


@settings(max_examples=examples(160), deadline=None)
@given(st.one_of(episode_stories(boundaries=True), closing_stories(boundaries=True)), SEEDS)
def test_boundaries(story: Story, seed: int) -> None:
    periodic.check(story, periodic.ways(seed))


@settings(max_examples=examples(80), deadline=None)
@given(
    st.one_of(episode_stories(), closing_stories(), episode_stories(boundaries=True)),
    SEEDS,
)
def test_restarts(story: Story, seed: int) -> None:
    restarts.check(story, restarts.one_way(seed), seed)


@settings(max_examples=examples(120), deadline=None)
@given(episode_stories(), SEEDS)
def test_asked_once(story: Story, seed: int) -> None:
    once.test_plans_run_once_answer_as_the_oracle_does.hypothesis.inner_test(story, seed)
