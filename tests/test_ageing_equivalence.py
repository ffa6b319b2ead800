"""CONFIDENTIAL FOR d: who sees rows late is answered what the definitions say of a world in which
each row is there from its timestamp + d on; who has the role, as if the clause were not there.

The oracle evaluates the query as it is written, over rows that become visible late
(`tests.oracle.Oracle`, `ages`): it knows nothing of how windows are rewritten.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from random import Random
from tempfile import TemporaryDirectory

from hypothesis import event, given, settings
from hypothesis import strategies as st

from dsms.api import Rows
from dsms.engine import Engine
from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder import bind_query
from dsms.sql.parser import parse_one
from dsms.sql.types import ALWAYS
from dsms.sql.window import Now, Partitioned, Throttled, Time
from tests.effort import examples
from tests.generate.periodic import (
    calendar_stories,
    counted_stories,
    long_periodic_stories,
    periodic_entries_stories,
    periodic_stories,
)
from tests.generate.stories import (
    entries_stories,
    kept_stories,
    long_stories,
    one_time,
    slack_stories,
    stories,
)
from tests.generate.world import SECOND
from tests.oracle import Oracle, ambiguous
from tests.oracle.keys import by_value
from tests.oracle.values import canons
from tests.stories import crashing, text
from tests.stories.compare import complaint, same_lines
from tests.stories.declared import Declared
from tests.stories.judge import expected, followed, registered, take_in
from tests.stories.model import Line, Story
from tests.stories.play import Way, feed, play, rows_of, some_ways

SEEDS = st.integers(0, 9999)
AGES = st.fixed_dictionaries({name: st.sampled_from([0, 1, 2, 3, 5]) for name in "stu"})
Ages = dict[str, int]
USERS = """CREATE ROLE desk; CREATE USER ann TOKEN; CREATE USER bob TOKEN; GRANT desk TO ann;
GRANT SELECT, CREATE ON ALL TO ann, bob;
"""


def told(story: Story, ages: Ages) -> Story:
    """The story with its streams confidential, for as many seconds."""
    out = deepcopy(story)
    body = out.sections[0].body
    for name, seconds in ages.items():
        clause = rf"\1 CONFIDENTIAL FOR {seconds} s TO desk;" if seconds else r"\1;"
        body = re.sub(rf"(CREATE STREAM {name} .*?);$", clause, body, flags=re.MULTILINE)
    out.sections[0].body = USERS + body
    return out


def refusals(output: lp.Output, ages: Ages) -> set[str]:
    """With which codes the query may be refused; none: it must not be."""
    found = set()
    for node in lp.nodes_of(output):
        if isinstance(node, lp.Window) and isinstance(node.child, lp.StreamScan):
            age = ages[node.child.stream.name]
            match node.spec:
                case Now() if age:
                    found.add("DS307")
                case Partitioned(age=int(most)) if age >= most:
                    found.add("DS307")
                case Throttled(length=length, until=until) if age and max(until, age) >= length:
                    found.add("DS307")
                case Time(length=length, until=until) if age and max(until, age) >= length:
                    found.add("DS307")
    joins = (n for n in lp.nodes_of(output) if isinstance(n, lp.AsofJoin))
    if any(_held(side, ages) for join in joins for side in lp.children(join)):
        found.add("DS370")
    patterns = (n for n in lp.nodes_of(output) if isinstance(n, lp.Match))
    if any(_held(side, ages) for pattern in patterns for side in lp.children(pattern)):
        found.add("DS375")
    read = {n.stream.name for n in lp.leaves_of(output) if isinstance(n, lp.StreamScan)}
    if output.slide is not None and output.slide.by_rows and any(ages[name] for name in read):
        found.add("DS308")
    return found


def _held(node: lp.Node, ages: Ages) -> bool:
    """Whether rows of a stream below, and not of a block that appends, are seen late."""
    if isinstance(node, lp.StreamScan):
        return ages[node.stream.name] > 0
    return not isinstance(node, lp.Append) and any(_held(c, ages) for c in lp.children(node))


class World:
    """A story with streams that are confidential, and what their outsider is to be answered."""

    def __init__(self, story: Story, seconds: Ages) -> None:
        self.story, self.played = story, told(story, seconds)
        self.declared = text.resolve(story)
        self.output = self.declared.queries["q"]
        self.ages = {name: n * SECOND for name, n in seconds.items()}
        self.begun = registered(story, self.declared, "q")
        self.came = take_in(self.declared, story)
        self.loose = ambiguous(self.output) or (self.begun > ALWAYS and by_value(self.output.child))

    def want(self, user: str) -> list[Line]:
        came = replace(self.came, ages=self.ages if user == "bob" else {})
        return expected(self.output, came, self.begun)

    def refused(self, way: Way, codes: set[str]) -> bool:
        """Whether the query is refused as it must be."""
        try:
            play(replace_events(self.played), self.declared, way)
        except QueryError as error:
            assert error.code in codes, error
            event(f"refused: {error.code}")
            return True
        assert not codes, f"not refused: {codes}"
        return False


def replace_events(story: Story) -> Story:
    """The story without its input."""
    out = deepcopy(story)
    out.sections = [s for s in out.sections if s.kind != "input"]
    return out


def check(story: Story, seconds: Ages, ways: Sequence[Way], user: str = "bob") -> None:
    world = World(story, seconds)
    codes = refusals(world.output, world.ages) if user == "bob" else set()
    if world.refused(replace(ways[0], user=user), codes):
        return
    want, loose = world.want(user), world.loose
    for way in (replace(w, user=user) for w in ways):
        got = play(world.played, world.declared, way).pushes["q"]
        assert same_lines(want, got, loose), complaint(
            story, world.declared, "q", want, got, f"{way}, {seconds}"
        )
        if loose:  # the first way set the order that the others must keep
            want, loose = got, False


def crashed(story: Story, seconds: Ages, way: Way, seed: int) -> None:
    """An engine that is killed again and again answers the outsider as one that lives."""
    world, way = World(story, seconds), replace(way, user="bob")
    if world.refused(way, refusals(world.output, world.ages)):
        return
    with TemporaryDirectory() as data:
        host = crashing.play(world.played, world.declared, way, data, Random(seed))
        got = host.pushes["q"]
        host.engine.close()
    assert same_lines(world.want("bob"), got, world.loose), complaint(
        story, world.declared, "q", world.want("bob"), got, f"{way}, {seconds}, {host.crashes}"
    )


def periodic(seed: int) -> Way:
    path = Random(seed).choice(("auto", "is", "ws", "ss", "iss"))
    return Way("upa", Random(seed).choice(("rows", "random")), True, seed, (("path", f"'{path}'"),))


@settings(max_examples=examples(60), deadline=None)
@given(stories(), AGES, SEEDS)
def test_continuous(story: Story, seconds: Ages, seed: int) -> None:
    check(story, seconds, some_ways(seed))


@settings(max_examples=examples(30), deadline=None)
@given(entries_stories(), AGES, SEEDS)
def test_what_enters_a_subquery(story: Story, seconds: Ages, seed: int) -> None:
    check(story, seconds, some_ways(seed)[:3])


@settings(max_examples=examples(6), deadline=None)
@given(long_stories(), AGES, SEEDS)
def test_long_inputs(story: Story, seconds: Ages, seed: int) -> None:
    check(story, seconds, some_ways(seed)[:3])


@settings(max_examples=examples(20), deadline=None)
@given(slack_stories(), AGES, SEEDS)
def test_rows_that_come_out_of_order(pair: tuple[Story, Story], seconds: Ages, seed: int) -> None:
    check(pair[1], seconds, some_ways(seed)[:3])


@settings(max_examples=examples(60), deadline=None)
@given(kept_stories(), AGES, SEEDS)
def test_queries_begin_with_rows_that_are_kept(story: Story, seconds: Ages, seed: int) -> None:
    check(story, seconds, some_ways(seed)[:4])


@settings(max_examples=examples(60), deadline=None)
@given(periodic_stories(), AGES, SEEDS)
def test_periodic(story: Story, seconds: Ages, seed: int) -> None:
    check(story, seconds, [periodic(seed), periodic(seed + 1), periodic(seed + 2)])


@settings(max_examples=examples(20), deadline=None)
@given(periodic_entries_stories(), AGES, SEEDS)
def test_what_enters_a_subquery_at_boundaries(story: Story, seconds: Ages, seed: int) -> None:
    check(story, seconds, [periodic(seed)])


@settings(max_examples=examples(15), deadline=None)
@given(calendar_stories(), st.sampled_from([1, 3600, 7200, 86_400, 40 * 86_400]), SEEDS)
def test_calendars(story: Story, seconds: int, seed: int) -> None:
    check(story, dict.fromkeys("stu", seconds), [periodic(seed)])


@settings(max_examples=examples(10), deadline=None)
@given(counted_stories(), AGES, SEEDS)
def test_a_slide_in_rows_is_refused(story: Story, seconds: Ages, seed: int) -> None:
    check(story, seconds, [periodic(seed)])


@settings(max_examples=examples(6), deadline=None)
@given(long_periodic_stories(), AGES, SEEDS)
def test_long_inputs_at_boundaries(story: Story, seconds: Ages, seed: int) -> None:
    check(story, seconds, [periodic(seed)])


@settings(max_examples=examples(15), deadline=None)
@given(st.one_of(stories(), periodic_stories(), counted_stories()), AGES, SEEDS)
def test_who_has_the_role_sees_rows_at_once(story: Story, seconds: Ages, seed: int) -> None:
    check(story, seconds, [replace(periodic(seed), options=())], "ann")


@settings(max_examples=examples(40), deadline=None)
@given(st.one_of(stories(), kept_stories()), AGES, SEEDS)
def test_with_restarts(story: Story, seconds: Ages, seed: int) -> None:
    crashed(story, seconds, Random(seed).choice(some_ways(seed)), seed)


@settings(max_examples=examples(30), deadline=None)
@given(periodic_stories(), AGES, SEEDS)
def test_boundaries_with_restarts(story: Story, seconds: Ages, seed: int) -> None:
    crashed(story, seconds, periodic(seed), seed)


COUNTED = [
    "SELECT * FROM s [ROWS 3]",
    "SELECT k, COUNT(*) AS n FROM s [PARTITION BY k ROWS 2] GROUP BY k",
    "SELECT * FROM s [ROWS 4 UNTIL 1 AGO]",
    "SELECT COUNT(*) AS n FROM s",
    "SELECT * FROM s [SINCE 3 s]",
    "SELECT * FROM s [SINCE 3 s UNTIL 2 s AGO]",
    "SELECT a.k, b.k AS j FROM s [ROWS 2] a, s [RANGE UNBOUNDED UNTIL 1 s AGO] b WHERE a.x = b.x",
]


@settings(max_examples=examples(60), deadline=None)
@given(one_time(), AGES, st.sampled_from(["", *COUNTED]))
def test_asked_once(pair: tuple[Story, str], seconds: Ages, other: str) -> None:
    story, sql = pair[0], other or pair[1]
    declared = text.resolve(story)
    statement = parse_one(sql)
    assert isinstance(statement, ast.SelectStatement)
    output = bind_query(statement, declared.catalog, persistent=False)
    ages = {name: n * SECOND for name, n in seconds.items()}
    came, engine = take_in(declared, story), Engine()
    engine.execute(told(story, seconds).sections[0].body)
    feed(engine, declared, list(story.events()), Way(cut="random"))
    for user, late in (("bob", ages), ("ann", {})):
        _asked(engine, declared, sql, output, came, user, late)


def _asked(
    engine: Engine,
    declared: Declared,
    sql: str,
    output: lp.Output,
    came: object,
    user: str,
    ages: Ages,
) -> None:
    codes = refusals(output, ages) if ages else set()
    at = followed(output, came)  # type: ignore[arg-type]
    oracle = Oracle(output, came.streams, came.tables, ages)  # type: ignore[attr-defined]
    want = Counter(canons(f.values) for f in oracle.answer(at))
    try:
        (rows,) = engine.execute(sql, user=user)
    except QueryError as error:
        assert error.code in (codes or {"DS701", "DS702", "DS703"}), error
        return
    assert isinstance(rows, Rows) and not codes
    assert Counter(map(canons, rows_of(rows.data))) == want, f"{user}, {ages}: {sql}"
