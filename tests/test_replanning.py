"""Plans that change while they run: pushes and their numbers are those of plans that never do."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from tests.effort import examples, sampled
from tests.generate.many_windows import joined_windows
from tests.replans import forced, kinds_of_changes
from tests.stories.model import Story
from tests.stories.play import Way
from tests.test_equivalence import check
from tests.test_recovery_equivalence import check as check_restarts

SEEDS = st.integers(0, 9999)


def ways(seed: int) -> list[Way]:
    joins = (("joins", ("auto", "tree", "pipeline")[seed % 3]),)
    return [
        Way("upa", "rows", True, seed),
        Way("upa", "random", True, seed, joins),
        Way("direct", "rows", True, seed, joins),
        Way("nt", "random", True, seed + 1, joins),
    ]


@settings(max_examples=examples(45), deadline=None)
@given(joined_windows(), SEEDS)
def test_any_change_at_any_instant(story: Story, seed: int) -> None:
    """Windows of all kinds, ties, NULLs, filters, tables beside; GROUP BY, DISTINCT, UNION ALL and
    negation above: as the oracle has it."""
    with forced(seed):
        check(story, ways(seed))


@settings(max_examples=examples(30), deadline=None)
@given(joined_windows(), SEEDS)
def test_across_kills(story: Story, seed: int) -> None:
    """With checkpoints before and after, and changes that the journal alone knows."""
    with forced(seed):
        check_restarts(story, ways(seed)[seed % 4], seed)


DDL = ";".join(f"CREATE STREAM {s} (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t" for s in "abc")
SUMS = "SELECT c.k AS k, COUNT(*) AS n FROM c [RANGE 4 s] GROUP BY c.k"
OVER = (
    "SELECT a.k, a.v, b.v AS w, s.n FROM a [RANGE 4 s], b [RANGE 3 s], ({sums}) s "
    "WHERE a.k = b.k AND b.k = s.k"
)
JOINED = "FROM a [RANGE 4 s], b [RANGE 3 s], c [RANGE 2 s] WHERE a.k = b.k AND b.k = c.k"
QUERIES = {
    "groups": SUMS,
    "over": OVER.format(sums=SUMS),
    "one": f"SELECT a.v, c.v AS w {JOINED}",
    "two": f"SELECT a.k, COUNT(*) AS n, MAX(c.v) AS m {JOINED} GROUP BY a.k",
    "late": f"SELECT DISTINCT a.k {JOINED}",
    "reads": "SELECT w, COUNT(*) AS n FROM one GROUP BY w",
}


PAIR = "FROM a [RANGE 4 s], b [RANGE 3 s]{} WHERE a.k = b.k{}"
THREE = PAIR.format(", c [RANGE 2 s]{}", " AND b.k = c.k{}")
SHARING = {  # in the order in which they begin: those that come later miss rows of the others
    "pair": f"SELECT a.v, b.v AS w {PAIR.format('', '')}",
    "three": f"SELECT a.v, c.v AS w {THREE.format('', '')}",
    "again": f"SELECT a.k, COUNT(*) AS n {THREE.format('', '')} GROUP BY a.k",
    "four": f"SELECT a.v, d.v AS w {THREE.format(', a [RANGE 1 s] d', ' AND c.k = d.k')}",
    "more": f"SELECT b.v, c.v AS w {THREE.format('', '')}",
    "last": f"SELECT b.v, d.v AS w {THREE.format(', a [RANGE 1 s] d', ' AND c.k = d.k')}",
}


def seen(
    seed: int, chance: float, queries: dict[str, str] = QUERIES
) -> tuple[dict[str, list[object]], int]:
    """What queries tell that share parts of their plans, by name, and how many changes."""
    random = Random(seed)
    with forced(seed, chance) as changes:
        engine = Engine()
        engine.execute(DDL)
        readers, names = {}, list(queries)
        for second in range(12):
            if names and second % 2 == 0:
                name = names.pop(0)
                engine.execute(f"CREATE QUERY {name} AS {queries[name]}")
                readers[name] = engine.subscribe(name, 0)
            if second == 9:
                engine.execute(f"DROP QUERY {list(queries)[3]}")
            for stream in "abc":
                n = random.randint(0, 6)
                ts = sorted(random.randrange(second * 1000, second * 1000 + 1000) for _ in range(n))
                rows = {
                    "k": [random.randint(0, 2) for _ in ts],
                    "v": [random.randint(0, 9) for _ in ts],
                    "t": [1000 * at for at in ts],
                }
                engine.ingest(stream, rows)
                engine.heartbeat(stream, (second + 1) * 1_000_000 - 1)
        told: dict[str, list[object]] = {
            name: [
                (p.kind, p.seq, p.at, p.data.to_pylist())
                for p in reader.take()
                if p.data is not None
            ]
            for name, reader in readers.items()
        }
    return told, changes.made


@pytest.mark.parametrize("seed", sampled(range(12), 6))
def test_beside_queries_that_share_parts(seed: int) -> None:
    """Joins whose inputs are shared, joins that are shared themselves, and answers that others
    read."""
    told, made = seen(seed, 0.5)
    assert made > 0
    assert told == seen(seed, 0.0)[0]


@pytest.mark.parametrize("seed", sampled(range(24), 6))
def test_joins_that_are_shared_change_once_for_all(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a whole, or where some of them are run by a part below, which goes on for others."""
    kinds = kinds_of_changes(monkeypatch)
    told, made = seen(seed, (0.03, 0.1, 0.3)[seed % 3], SHARING)
    assert made == sum(kinds.values()) > 0
    assert told == seen(seed, 0.0, SHARING)[0]
