"""ASOF JOIN against its definition, on random rows and queries: ties, NULLs, disorder, cuts,
strategies, restarts, boundaries, and asked once."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests import test_equivalence as continuous
from tests import test_oneshot as once
from tests import test_periodic_equivalence as periodic
from tests import test_recovery_equivalence as restarts
from tests.effort import examples
from tests.stories.model import Arrival, Beat, Event, Section, Story
from tests.stories.play import some_ways

SEEDS = st.integers(0, 9999)
S = 1_000_000
COLUMNS = "(k INT, m STRING, v INT, t TIMESTAMP)"
STREAMS = "".join(
    f"CREATE STREAM {name} {COLUMNS} TIMESTAMP BY t SLACK 2 s RETAIN 1 h;\n" for name in "lru"
)
WINDOWS = (
    "",
    "[RANGE 4 s]",
    "[RANGE 4 s]",
    "[NOW]",
    "[ROWS 2]",
    "[PARTITION BY k ROWS 1]",
    "[SINCE 3s]",
)
RIGHTS = (
    "r",
    "r [RANGE 3 s]",
    "r [NOW]",
    "(SELECT * FROM r WHERE v > 0)",
    "(SELECT * FROM r UNION ALL SELECT * FROM u)",
    "(SELECT Istream(k, m, COUNT(*) AS v) FROM r GROUP BY k, m)",
    "(SELECT a.k, a.m, b.v FROM r a JOIN u b ON a.k = b.k)",
    "l",
)
KEYS = ("x.k = y.k", "x.m = y.m", "x.k = y.k AND x.m = y.m", "x.k + 1 = y.k", "x.v = y.k", "TRUE")
PLAIN = "SELECT x.k, x.m, x.v, y.k AS yk, y.v AS yv FROM {from_}"
FORMS = (
    PLAIN,
    PLAIN,
    f"{PLAIN} WHERE x.v > 0",
    f"{PLAIN} WHERE y.v > 0",
    f"{PLAIN} WHERE y.v IS NULL",
    "SELECT y.v, COUNT(*) AS n, SUM(x.v) AS s FROM {from_} GROUP BY y.v",
    "SELECT DISTINCT y.v FROM {from_}",
    "SELECT x.k, y.v, z.v AS zv FROM {from_} ASOF LEFT JOIN u z ON y.v = z.k WITHIN 3 s",
    "SELECT x.k, y.v, z.v AS zv FROM {from_} JOIN u [RANGE 3 s] z ON y.v = z.k",
    "SELECT q.v, COUNT(*) AS n FROM (SELECT x.k, y.v FROM {from_}) q GROUP BY q.v",
    "SELECT x.k, y.v FROM {from_} UNION ALL SELECT k, v FROM u [RANGE 3 s]",
    "SELECT x.k, y.v FROM {from_} WHERE EXISTS (SELECT * FROM u [RANGE 3 s] z WHERE z.k = y.v)",
)


@st.composite
def rows(draw: st.DrawFn, most: int = 24) -> list[Event]:
    """Of few keys, some NULL, many at one instant or up to 2 s late."""
    found, now = list[Event](), 2
    for _ in range(draw(st.integers(2, most))):
        now += draw(st.sampled_from([0, 0, 1, 1, 2, 4]))
        at = (now - draw(st.sampled_from([0, 0, 0, 1, 2]))) * S
        k = draw(st.sampled_from([0, 0, 1, 1, 2, None]))
        m = draw(st.sampled_from(["a", "a", "b", None]))
        row = (k, m, draw(st.integers(0, 2)), at)
        found.append(Arrival(draw(st.sampled_from("lllrrru")), at, row))
    return [*found, Beat(None, (now + draw(st.integers(0, 8))) * S)]


def from_(draw: st.DrawFn, window: str) -> str:
    right = draw(st.sampled_from(RIGHTS))
    kind = draw(st.sampled_from(["ASOF", "ASOF LEFT"]))
    timed = "Istream" not in right and "JOIN" not in right
    order = draw(st.sampled_from(["", " AND x.t >= y.t", " AND y.t < x.t"])) if timed else ""
    within = draw(st.sampled_from(["", "", " WITHIN 2 s", " WITHIN 0 s"]))
    on = draw(st.sampled_from(KEYS))
    return f"l {window} x {kind} JOIN {right} y ON {on}{order}{within}"


@st.composite
def asof_stories(draw: st.DrawFn, *, boundaries: bool = False, late: bool = False) -> Story:
    """A query with an ASOF JOIN; `late`: it comes after some of the rows."""
    window = draw(st.sampled_from(WINDOWS))
    slide = boundaries and window.startswith("[RANGE") and draw(st.booleans())
    if slide:
        window = f"{window[:-1]} SLIDE 2 s]"
    form = draw(st.sampled_from(FORMS[:7] if slide else FORMS))
    text = form.format(from_=from_(draw, window))
    kind = draw(st.sampled_from(["", "", "Istream", "Rstream", "Dstream"]))
    if kind and form in FORMS[:6]:
        head, _, rest = text.partition(" FROM ")
        text = f"SELECT {kind}({head.removeprefix('SELECT ')}) FROM {rest}"
    if boundaries and not slide:
        text += " EVERY 2 s"
    events = draw(rows())
    first = draw(st.integers(0, len(events) - 1)) if late else 0
    before = [Section("input", events=events[:first])] if first else []
    query = Section("query", "q", body=text)
    rest_ = [Section("input", events=events[first:]), Section("pushes", "q")]
    return Story(sections=[Section("sql", body=STREAMS), *before, query, *rest_])


@settings(max_examples=examples(200), deadline=None)
@given(asof_stories(), SEEDS)
def test_each_row_finds_the_newest_one_of_its_key(story: Story, seed: int) -> None:
    continuous.check(story, some_ways(seed))


@settings(max_examples=examples(100), deadline=None)
@given(asof_stories(late=True), SEEDS)
def test_queries_begin_with_rows_that_are_kept(story: Story, seed: int) -> None:
    continuous.check(story, some_ways(seed))


@settings(max_examples=examples(120), deadline=None)
@given(asof_stories(boundaries=True), SEEDS)
def test_boundaries(story: Story, seed: int) -> None:
    periodic.check(story, periodic.ways(seed))


@settings(max_examples=examples(60), deadline=None)
@given(st.one_of(asof_stories(), asof_stories(late=True), asof_stories(boundaries=True)), SEEDS)
def test_restarts(story: Story, seed: int) -> None:
    restarts.check(story, restarts.one_way(seed), seed)


@settings(max_examples=examples(120), deadline=None)
@given(asof_stories(), SEEDS)
def test_asked_once(story: Story, seed: int) -> None:
    once.test_plans_run_once_answer_as_the_oracle_does.hypothesis.inner_test(story, seed)
