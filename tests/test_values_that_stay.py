"""Values that stay while the row that began them becomes another: DISTINCT, unions, groups and
joins over counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.plan.identity import order, width
from dsms.plan.paths import from_past
from dsms.plan.planner import plan
from tests.effort import examples
from tests.oneshot_runs import run, values
from tests.oracle import Oracle, ambiguous
from tests.oracle.values import canons
from tests.stories import text
from tests.stories.compare import complaint, same_lines
from tests.stories.judge import expected, take_in
from tests.stories.model import Story
from tests.stories.play import play, some_ways

DECLARED = """sql
CREATE STREAM s (k INT, x INT, ts TIMESTAMP) TIMESTAMP BY ts;
CREATE STREAM t (k INT, x INT, ts TIMESTAMP) TIMESTAMP BY ts;
CREATE TABLE n (k INT PRIMARY KEY, y INT);
CREATE TABLE m (k INT PRIMARY KEY, y INT) NON RETROACTIVE;
INSERT INTO n VALUES (0, 0), (1, 0), (2, 0), (3, 1);
INSERT INTO m VALUES (0, 1), (1, 0), (2, 1), (3, 0);
"""
WINDOWS = (
    "[RANGE 6 SECONDS]",
    "[RANGE UNBOUNDED]",
    "[ROWS 4]",
    "[RANGE 3 SECONDS]",
    "[PARTITION BY k ROWS 2]",
)
AGGREGATES = ("COUNT(*)", "COUNT(*)", "MAX(x)", "MIN(x)", "SUM(x)", "COUNT(DISTINCT x)")
UNITED = ("UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL")
BESIDE = ("n", "m", "s [RANGE 4 SECONDS]", "t [ROWS 3]")
DEEPEST = 3


@dataclass(slots=True)
class Blocks:
    """Blocks of one column c, in each other, mostly grouped."""

    pick: Random
    named: int = 0

    def name(self) -> str:
        self.named += 1
        return f"q{self.named}"

    def grouped(self) -> str:
        having = self.pick.choice(("", "", "", " HAVING COUNT(*) > 1"))
        rows = f"{self.pick.choice('sst')} {self.pick.choice(WINDOWS)}"
        return f"SELECT {self.pick.choice(AGGREGATES)} AS c FROM {rows} GROUP BY k{having}"

    def block(self, depth: int = 0) -> str:
        if depth == DEEPEST or self.pick.random() < 0.2:
            return self.grouped()
        a, b, inner = self.name(), self.name(), self.block(depth + 1)
        match self.pick.randrange(7):
            case 0:
                return f"SELECT DISTINCT c FROM ({inner}) {a}"
            case 1:
                how = self.pick.choice(("COUNT(*)", "MAX(c)", "MIN(c)", "FIRST(c)"))
                return f"SELECT {how} AS c FROM ({inner}) {a} GROUP BY c"
            case 2:
                other = self.block(depth + 1)
                return (
                    f"SELECT c FROM ({inner}) {a} {self.pick.choice(UNITED)} SELECT c FROM "
                    f"({other}) {b}"
                )
            case 3:
                some = (
                    f"{self.pick.choice(('', 'NOT '))}EXISTS (SELECT * FROM {self.beside()} "
                    f"{b} WHERE {b}.k = {a}.c)"
                )
                return f"SELECT {a}.c AS c FROM ({inner}) {a} WHERE {some}"
            case 4:
                some = (
                    f"{self.pick.choice(('', 'NOT '))}EXISTS (SELECT * FROM ({inner}) {b} "
                    f"WHERE {a}.k = {b}.c)"
                )
                return (
                    f"SELECT {a}.k AS c FROM {self.pick.choice(('s [RANGE 4 SECONDS]', 'n'))} "
                    f"{a} WHERE {some}"
                )
            case 5:
                how = self.pick.choice(("LEFT JOIN", "JOIN"))
                return (
                    f"SELECT {a}.c AS c FROM ({inner}) {a} {how} {self.beside()} {b} ON {b}.k "
                    f"= {a}.c"
                )
            case _:
                other = self.block(depth + 1)
                return f"SELECT {a}.c AS c FROM ({inner}) {a}, ({other}) {b} WHERE {a}.c = {b}.c"

    def beside(self) -> str:
        return self.pick.choice(BESIDE)

    def query(self) -> str:
        z, inner = self.name(), self.block()
        if self.pick.random() < 0.7:
            return f"SELECT Rstream({z}.c) FROM ({inner}) {z}"
        return f"SELECT Rstream({z}.c, n.y) FROM ({inner}) {z}, n WHERE {z}.c = n.k"


def events(pick: Random) -> str:
    lines, at = [], 0
    for _ in range(pick.randint(6, 16)):
        at += pick.choice((0, 0, 1, 1, 2))
        lines.append(f"{pick.choice('sst')} {at}s {pick.randint(0, 2)} {pick.randint(0, 2)}")
        if pick.random() < 0.2:
            lines.append(
                f"> UPDATE {pick.choice('nm')} SET y = {pick.randint(0, 1)} WHERE k = "
                f"{pick.randint(0, 3)}"
            )
    return "\n".join([*lines, "* until 40s", ""])


def story_of(seed: int) -> Story:
    pick = Random(seed)
    return text.parse(f"{DECLARED}\nquery q\n{Blocks(pick).query()}\n\ninput\n{events(pick)}")


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 1_000_000))
def test_every_way_tells_the_same(seed: int) -> None:
    story = story_of(seed)
    declared = text.resolve(story)
    want = expected(declared.queries["q"], take_in(declared, story))
    loose = ambiguous(declared.queries["q"])
    for way in some_ways(seed)[:4]:
        got = play(story, declared, way).pushes["q"]
        assert same_lines(want, got, loose), complaint(story, declared, "q", want, got, str(way))


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 1_000_000))
def test_asked_once_the_answer_is_the_same(seed: int) -> None:
    story = story_of(seed)
    declared = text.resolve(story)
    output, came = declared.queries["q"], take_in(declared, story)
    if from_past(output) is not None:
        return
    oracle = Oracle(output, came.streams, came.tables)
    for plan_ in (output, plan(output).node):
        at = Random(seed).choice(oracle.instants)
        want = Counter(canons(f.values) for f in oracle.answer(at))
        got = Counter(map(canons, values(run(plan_, came.streams, came.tables, at))))
        assert got == want, f"at {at}: {got}\nnot {want}\n{text.render(story, declared)}"


def test_ids_of_deep_blocks_are_found_without_going_through_them_again_and_again() -> None:
    counts = "SELECT COUNT(*) AS c FROM s [RANGE 3 SECONDS] GROUP BY k"
    deep = counts
    for k in range(40):
        deep = f"SELECT COUNT(*) AS c FROM ({deep}) q{k} GROUP BY c"
    for sql in (" UNION ".join([counts] * 60), deep):
        node = text.resolve(text.parse(f"{DECLARED}\nquery q\n{sql}\n")).queries["q"].child
        assert sorted(order(node)) == list(range(width(node)))
