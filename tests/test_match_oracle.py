"""MATCH against its definition, on random rows and patterns: ties, NULLs, disorder, cuts,
strategies, restarts, boundaries, and asked once."""

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
COLUMNS = "(k INT, m STRING, v INT, f FLOAT, t TIMESTAMP)"
STREAMS = "".join(
    f"CREATE STREAM {name} {COLUMNS} TIMESTAMP BY t SLACK 2 s RETAIN 1 h;\n" for name in "lru"
)
SOURCES = (
    "l",
    "l",
    "r",
    "u",
    "(SELECT * FROM r WHERE v > 0)",
    "(SELECT * FROM r UNION ALL SELECT * FROM u)",
    "(SELECT Istream(k, m, COUNT(*) AS v, 0.5 AS f) FROM r GROUP BY k, m)",
    "(SELECT x.k, x.m, y.v, y.f FROM r x JOIN u y ON x.k = y.k)",
)
PATTERNS = (
    "a {}, b {}",
    "a {}, b {}",
    "a {}, b {}, c {}",
    "a {}, b {}, c {}",
    "a {}, NOT n {}, b {}",
    "a {}, NOT n {}, b {}, c {}",
    "a {}, b {}, NOT n {}, c {}",
    "a {}, NOT n {}, NOT o {}, b {}",
    "a {}, x+ {}, b {}",
    "a {}, x+ {}, b {}, c {}",
    "a {}, b {}, x+ {}, c {}",
    "a {}, NOT n {}, x+ {}, y+ {}, b {}",
)
SILENT = (
    "a {}, NOT n {}",
    "a {}, NOT n {}",
    "a {}, b {}, NOT n {}",
    "a {}, NOT n {}, b {}, NOT o {}",
    "a {}, x+ {}, b {}, NOT n {}",
)
OWN = ("{}.v > 0", "{}.v = 1", "{}.f < 1", "{}.m = 'a'", "{}.v IS NOT NULL")
BOTH = (
    "{0}.v > {1}.v",
    "{1}.v <= {0}.v",
    "{0}.v = {1}.v",
    "{0}.v <> {1}.v",
    "{0}.f >= {1}.f",
    "{0}.f < {1}.f * 2",
    "{0}.m <> {1}.m",
    "{0}.v - {1}.v > 0",
    "{0}.v > {1}.v AND {0}.m = {1}.m",
    "({0}.v > {1}.v OR {0}.f > {1}.f)",
    "{0}.k <> {1}.k",
)
# of a step that takes many rows, in a condition of a later one
UPTO = (
    "{0}.v > MAX({1}.v)",
    "{0}.v <> LAST({1}.v)",
    "{0}.f >= AVG({1}.f)",
    "COUNT({1}) > 1",
    "COUNT({1}.v) = 1",
    "{0}.v * COUNT({1}) FILTER (WHERE {1}.v > 0) <= SUM({1}.v)",
    "FIRST({1}.m) <> {0}.m",
)
PERS = ("", " PER k", " PER k", " PER m", " PER (k, m)")
SKIPS = ("", "", " SKIP PAST LAST")
FORMS = (
    "SELECT a.k, a.v, b.v AS w FROM {from_}{where}",
    "SELECT a.k, a.v, b.v AS w FROM {from_}{where}",
    "SELECT * FROM {from_}{where}",
    "SELECT a.k, COUNT(*) AS n, SUM(b.v) AS s FROM {from_}{where} GROUP BY a.k",
    "SELECT DISTINCT b.v FROM {from_}{where}",
    "SELECT a.k, LAST(b.v) AS w FROM {from_}{where} GROUP BY a.k",
    "SELECT a.k, z.v FROM {from_} JOIN u [RANGE 3 s] z ON b.v = z.k{where}",
    "SELECT a.k, z.v FROM {from_} ASOF LEFT JOIN u z ON b.v = z.k{where}",
    "SELECT b.k, b.v FROM {from_}{where} UNION ALL SELECT k, v FROM u [RANGE 3 s]",
    "SELECT q.k, COUNT(*) AS n FROM (SELECT b.k FROM {from_}{where}) q GROUP BY q.k",
)
SILENTLY = (
    "SELECT a.k, a.v, a.m AS w FROM {from_}{where}",
    "SELECT a.k, a.v FROM {from_}{where}",
    "SELECT COUNT(*) AS n FROM (SELECT a.v FROM {from_}{where}) [RANGE 4 s]",
    "SELECT a.v, z.v AS y FROM (SELECT a.k, a.v FROM {from_}{where}) [RANGE 3 s] a "
    "JOIN u [RANGE 3 s] z ON a.k = z.k",
)
OVER = (
    "COUNT(x.v)",
    "SUM(x.v)",
    "AVG(x.f)",
    "MIN(x.f)",
    "MAX(x.m)",
    "FIRST(x.v)",
    "LAST(x.m)",
    "COUNT(DISTINCT x.v)",
    "SUM(x.v) FILTER (WHERE x.f < 1)",
    "SUM(x.v * 2) + COUNT(x.k)",
)
FLOATS = [0.0, 0.5, 1.5, -0.0, float("nan"), None]


@st.composite
def rows(draw: st.DrawFn, most: int = 30) -> list[Event]:
    """Of few keys, some NULL, many at one instant or up to 2 s late."""
    found, now = list[Event](), 2
    for _ in range(draw(st.integers(2, most))):
        now += draw(st.sampled_from([0, 0, 1, 1, 1, 2]))
        at = (now - draw(st.sampled_from([0, 0, 0, 1, 2]))) * S
        k = draw(st.sampled_from([0, 0, 0, 1, 1, None]))
        m = draw(st.sampled_from(["a", "a", "b", None]))
        v, f = draw(st.integers(0, 2)), draw(st.sampled_from(FLOATS))
        row = (k, m, draw(st.sampled_from([v, v, v, None])), f, at)
        found.append(Arrival(draw(st.sampled_from("lllrru")), at, row))
    last = Beat(None, (now + draw(st.integers(0, 8))) * S)
    return [*found, draw(st.sampled_from([last, last, End(None)]))]


def steps(pattern: str) -> list[str]:
    """Names of the steps, in order."""
    return [part.split()[-2].rstrip("+") for part in pattern.split(", ")]


def where(draw: st.DrawFn, pattern: str) -> str:
    """Conditions of single steps, and of steps with earlier ones that have a row."""
    names, found = steps(pattern), list[str]()
    for i, name in enumerate(names):
        if draw(st.integers(0, 3)) == 0:
            found.append(draw(st.sampled_from(OWN)).format(name))
        earlier = [n for n in names[:i] if n not in "noxy"]
        if earlier and draw(st.booleans()):
            found.append(draw(st.sampled_from(BOTH)).format(name, draw(st.sampled_from(earlier))))
        many = [n for n in names[:i] if n in "xy"]
        if many and draw(st.integers(0, 2)) == 0:
            found.append(draw(st.sampled_from(UPTO)).format(name, draw(st.sampled_from(many))))
    return f" WHERE {' AND '.join(found)}" if found else ""


@st.composite
def match_stories(
    draw: st.DrawFn, *, boundaries: bool = False, late: bool = False, silent: bool = False
) -> Story:
    """A query with a MATCH; `late`: it comes after some of the rows; `silent`: nothing must come at
    its end."""
    pattern = draw(st.sampled_from(SILENT if silent else PATTERNS))
    same = draw(st.integers(0, 2))  # often all steps are of one stream
    sources = [draw(st.sampled_from(SOURCES[:1] if not same else SOURCES)) for _ in steps(pattern)]
    length = draw(st.sampled_from([2, 4, 4, 8]))
    slide = boundaries and not silent and draw(st.booleans())
    internal = silent or (not slide and draw(st.integers(0, 4)) == 0)
    tail = " SLIDE 2 s" if slide else " INTERNAL" if internal else ""
    from_ = f"MATCH ({pattern.format(*sources)}) [RANGE {length} s{tail}]"
    from_ += draw(st.sampled_from(PERS)) + draw(st.sampled_from(SKIPS))
    forms = FORMS[:2] if internal else FORMS[:6] if slide else FORMS
    forms = SILENTLY if silent else forms
    form = draw(st.sampled_from(forms))
    text = form.format(from_=from_, where=where(draw, pattern))
    if "+" in pattern and "SELECT a.k" in text:
        over = draw(st.sampled_from(OVER))
        over = "MAX(SUM(x.v))" if "GROUP BY a.k" in text else over
        text = text.replace("SELECT a.k", f"SELECT {over} AS o, a.k", 1)
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


@settings(max_examples=examples(250), deadline=None)
@given(match_stories(), SEEDS)
def test_rows_one_after_the_other(story: Story, seed: int) -> None:
    continuous.check(story, some_ways(seed))


@settings(max_examples=examples(150), deadline=None)
@given(st.one_of(match_stories(silent=True), match_stories(silent=True, late=True)), SEEDS)
def test_nothing_comes_at_the_end(story: Story, seed: int) -> None:
    continuous.check(story, some_ways(seed))


@settings(max_examples=examples(80), deadline=None)
@given(match_stories(late=True), SEEDS)
def test_queries_begin_with_rows_that_are_kept(story: Story, seed: int) -> None:
    continuous.check(story, some_ways(seed))


@settings(max_examples=examples(120), deadline=None)
@given(match_stories(boundaries=True), SEEDS)
def test_boundaries(story: Story, seed: int) -> None:
    periodic.check(story, periodic.ways(seed))


@settings(max_examples=examples(60), deadline=None)
@given(
    st.one_of(match_stories(), match_stories(silent=True), match_stories(boundaries=True)), SEEDS
)
def test_restarts(story: Story, seed: int) -> None:
    restarts.check(story, restarts.one_way(seed), seed)


@settings(max_examples=examples(120), deadline=None)
@given(st.one_of(match_stories(), match_stories(silent=True)), SEEDS)
def test_asked_once(story: Story, seed: int) -> None:
    once.test_plans_run_once_answer_as_the_oracle_does.hypothesis.inner_test(story, seed)
