"""Values that stay while the row that began them becomes another: DISTINCT, unions, groups and joins over counts."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.generate.stories import examples
from tests.stories import text
from tests.stories.compare import complaint, same_lines
from tests.stories.judge import expected, take_in
from tests.stories.play import play, some_ways

DECLARED = """sql
CREATE STREAM s (k INT, x INT, ts TIMESTAMP) TIMESTAMP BY ts;
CREATE STREAM t (k INT, x INT, ts TIMESTAMP) TIMESTAMP BY ts;
CREATE TABLE n (k INT PRIMARY KEY, y INT);
INSERT INTO n VALUES (0, 0), (1, 0), (2, 0), (3, 1);
"""
WINDOWS = ("[RANGE 6 SECONDS]", "[RANGE UNBOUNDED]", "[ROWS 4]", "[RANGE 3 SECONDS]")
AGGREGATES = ("COUNT(*)", "COUNT(*)", "MAX(x)", "MIN(x)", "SUM(x)")
UNITED = ("UNION", "UNION", "UNION ALL", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL")
DEEPEST = 2


def rows(pick: Random) -> str:
    return f"{pick.choice('st')} {pick.choice(WINDOWS)}"


def groups(pick: Random, depth: int) -> str:
    """A block of one column c, mostly grouped."""
    how = pick.random() if depth < DEEPEST else 0.0
    if how < 0.5:
        return f"SELECT {pick.choice(AGGREGATES)} AS c FROM {rows(pick)} GROUP BY k"
    if how < 0.7:
        inner = block(pick, depth + 1)
        return f"SELECT {pick.choice(('COUNT(*)', 'MAX(c)', 'MIN(c)'))} AS c FROM ({inner}) q{depth} GROUP BY c"
    if how < 0.85:
        return f"SELECT COUNT(*) AS c FROM {rows(pick)}"
    return f"SELECT a{depth}.c AS c FROM ({block(pick, depth + 1)}) a{depth}, n WHERE n.k = a{depth}.c"


def block(pick: Random, depth: int = 0) -> str:
    """A block of one column c."""
    how = pick.random()
    if how < 0.35:
        return f"SELECT DISTINCT c FROM ({groups(pick, depth)}) d{depth}"
    if how < 0.75 or depth == DEEPEST:
        return groups(pick, depth)
    if how < 0.95:
        left, right = groups(pick, depth + 1), groups(pick, depth + 1)
        return f"SELECT c FROM ({left}) u{depth} {pick.choice(UNITED)} SELECT c FROM ({right}) v{depth}"
    return f"SELECT x AS c FROM {rows(pick)}"


def query(pick: Random) -> str:
    inner = block(pick)
    if pick.random() < 0.7:
        return f"SELECT Rstream(z.c) FROM ({inner}) z"
    return f"SELECT Rstream(z.c, n.y) FROM ({inner}) z, n WHERE z.c = n.k"


def events(pick: Random) -> str:
    lines, at = [], 0
    for _ in range(pick.randint(6, 16)):
        at += pick.choice((0, 0, 1, 1, 2))
        lines.append(f"{pick.choice('sst')} {at}s {pick.randint(0, 2)} {pick.randint(0, 2)}")
    return "\n".join([*lines, "* until 40s", ""])


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 1_000_000))
def test_every_way_tells_the_same(seed: int) -> None:
    pick = Random(seed)
    story = text.parse(f"{DECLARED}\nquery q\n{query(pick)}\n\ninput\n{events(pick)}")
    declared = text.resolve(story)
    want = expected(declared.queries["q"], take_in(declared, story))
    for way in some_ways(seed)[:4]:
        got = play(story, declared, way).pushes["q"]
        assert same_lines(want, got), complaint(story, declared, "q", want, got, str(way))
