"""OVER against its definition, on random rows and queries: ties, NULLs, disorder, cuts, strategies,
restarts, boundaries, and asked once."""

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
COLUMNS = "(k INT, m STRING, v INT, f FLOAT, t TIMESTAMP)"
STREAMS = "".join(
    f"CREATE STREAM {name} {COLUMNS} TIMESTAMP BY t SLACK 2 s RETAIN 1 h;\n" for name in "su"
)
WINDOWS = (
    "",
    "[RANGE 4 s]",
    "[RANGE 4 s]",
    "[RANGE 4 s]",
    "[NOW]",
    "[ROWS 3]",
    "[ROWS 3]",
    "[PARTITION BY k ROWS 2]",
    "[SINCE 3s]",
    "[RANGE 3 s INTERNAL]",
)
KEYS = ("", "PARTITION BY k", "PARTITION BY m", "PARTITION BY k, m", "PARTITION BY v % 2, k")
BY_K = ("PARTITION BY k", "PARTITION BY k, m", "PARTITION BY m, k")
FRAMES = (
    "",
    "",
    "ROWS 1 PRECEDING",
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    "ROWS CURRENT ROW",
    "RANGE 2 s PRECEDING",
    "RANGE BETWEEN 0 s PRECEDING AND CURRENT ROW",
    "ORDER BY t RANGE UNBOUNDED PRECEDING",
)
AGGREGATES = (
    "COUNT(*)",
    "COUNT(v)",
    "SUM(v)",
    "SUM(f)",
    "AVG(f)",
    "MIN(v)",
    "MAX(m)",
    "MAX(f)",
    "FIRST(m)",
    "LAST_VALUE(v)",
    "SUM(v) FILTER (WHERE v > 0)",
    "COUNT(DISTINCT m)",
    "STDDEV(v)",
    "MEDIAN(v)",
    "STRING_AGG(m, ',')",
    "STRING_AGG(m, ',' ORDER BY v DESC, m)",
    "ARGMAX(m, v)",
)
RANKS = ("RANK()", "DENSE_RANK()")
ORDERS = ("v", "v DESC", "m", "m DESC NULLS FIRST", "f", "f DESC", "v NULLS FIRST", "t", "k")
LEADS = ("LEAD(v)", "LEAD(m, 2)", "LEAD(v, 1, k)", "LEAD(f, 1, 0)")
OTHERS = ("LAG(v)", "LAG(m, 2)", "LAG(v, 0)", "LAG(v, 1, k)", "LAG(f, 1, 0)", "ROW_NUMBER()")
FROMS = (
    "s {w}",
    "s {w}",
    "s {w}",
    "s {w} WHERE v > 0",
    "(SELECT * FROM s WHERE v > 0) {w}",
    "(SELECT k, m, v, f, t FROM s UNION ALL SELECT k, m, v, f, t FROM u) {w}",
    "(SELECT * FROM s {w}) x",
    "(SELECT k, m, v, f, t FROM s {w} WHERE v < 2) x",
)
FORMS = (
    "SELECT k, m, v, {a} AS x FROM {from_}",
    "SELECT k, m, v, {a} AS x, {b} AS y, {c} AS z FROM {from_}",
    "SELECT k, m, v, {a} AS x, {b} AS y FROM {from_}",
    "SELECT k, {a} AS x FROM {from_} QUALIFY {b} IS NOT NULL AND v < 2",
    "SELECT k, {a} AS x FROM {from_} QUALIFY x IS NULL",
    "SELECT DISTINCT {a} AS x FROM {from_}",
    "SELECT q.x, COUNT(*) AS n FROM (SELECT {a} AS x FROM {from_}) q GROUP BY q.x",
    "SELECT q.k, x, z.v FROM (SELECT k, {a} AS x FROM {from_}) q JOIN u [RANGE 3 s] z ON q.k = z.k",
    "SELECT x, LAG(x) OVER (PARTITION BY k) AS y FROM (SELECT k, {a} AS x FROM {from_}) q",
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
        v = draw(st.sampled_from([0, 1, 1, 2, None]))
        f = draw(st.sampled_from([0.5, 1e30, -1e30, 0.1, float("nan"), -0.0, None]))
        found.append(Arrival(draw(st.sampled_from("ssssu")), at, (k, m, v, f, at)))
    return [*found, Beat(None, (now + draw(st.integers(0, 8))) * S)]


def call(draw: st.DrawFn, by_k: bool, frames: tuple[str, ...], leads: bool) -> str:
    keys = draw(st.sampled_from(BY_K if by_k else KEYS))
    kind = draw(st.integers(0, 6))
    if kind < 2:
        return f"{draw(st.sampled_from(OTHERS))} OVER ({keys})"
    if kind == 2:
        order = draw(st.sampled_from(ORDERS))
        return f"{draw(st.sampled_from(RANKS))} OVER ({keys} ORDER BY {order})"
    if kind == 3 and leads:
        return f"{draw(st.sampled_from(LEADS))} OVER ({keys})"
    return f"{draw(st.sampled_from(AGGREGATES))} OVER ({keys} {draw(st.sampled_from(frames))})"


@st.composite
def over_stories(draw: st.DrawFn, *, boundaries: bool = False, late: bool = False) -> Story:
    """A query with OVER; `late`: it comes after some of the rows."""
    window = draw(st.sampled_from(WINDOWS[:-1] if boundaries else WINDOWS))
    slide = boundaries and window.startswith("[RANGE") and draw(st.booleans())
    if slide:
        window = f"{window[:-1]} SLIDE 2 s]"
    internal = "INTERNAL" in window
    forms = FORMS[:5] if slide or internal else FORMS
    form, from_ = draw(st.sampled_from(forms)), draw(st.sampled_from(FROMS))
    if form == FORMS[-1] and "ROWS" in window:  # no row of a window of so many may be left out
        from_ = FROMS[0]
    frames = FRAMES[:-1] if internal else FRAMES  # what is appended has no column of its instants
    leads = not internal and form != FORMS[-1]  # which nothing looks back from
    a, b, c = (call(draw, "PARTITION" in window, frames, leads) for _ in range(3))
    text = form.format(a=a, b=b, c=c, from_=from_.format(w=window))
    kind = draw(st.sampled_from(["", "", "Istream", "Rstream", "Dstream"]))
    if kind and form in FORMS[:2] and not internal:
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


@settings(max_examples=examples(300), deadline=None)
@given(over_stories(), SEEDS)
def test_each_row_says_what_was_true_when_it_came(story: Story, seed: int) -> None:
    continuous.check(story, some_ways(seed))


@settings(max_examples=examples(150), deadline=None)
@given(over_stories(late=True), SEEDS)
def test_queries_begin_with_rows_that_are_kept(story: Story, seed: int) -> None:
    continuous.check(story, some_ways(seed))


@settings(max_examples=examples(150), deadline=None)
@given(over_stories(boundaries=True), SEEDS)
def test_boundaries(story: Story, seed: int) -> None:
    periodic.check(story, periodic.ways(seed))


@settings(max_examples=examples(90), deadline=None)
@given(st.one_of(over_stories(), over_stories(late=True), over_stories(boundaries=True)), SEEDS)
def test_restarts(story: Story, seed: int) -> None:
    restarts.check(story, restarts.one_way(seed), seed)


@settings(max_examples=examples(150), deadline=None)
@given(over_stories(), SEEDS)
def test_asked_once(story: Story, seed: int) -> None:
    once.test_plans_run_once_answer_as_the_oracle_does.hypothesis.inner_test(story, seed)
