"""Plans that change while they run: pushes and their numbers are those of plans that never do."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from tests.effort import examples, sampled
from tests.generate.many_windows import joined_sliding, joined_windows
from tests.replans import forced, kinds_of_changes
from tests.stories.model import Story
from tests.stories.play import Way
from tests.test_equivalence import check
from tests.test_periodic_equivalence import check as check_boundaries
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
    "three": f"SELECT a.v, c.v AS w {THREE.format('', '')}",
    "again": f"SELECT a.v, COUNT(*) AS n, MAX(c.v) AS m {THREE.format('', '')} GROUP BY a.v",
    "four": f"SELECT a.v, c.v AS w {THREE.format(', a [RANGE 1 s] d', ' AND c.k = d.k')}",
    "pair": f"SELECT a.v, b.v AS w {PAIR.format('', '')}",
    "more": f"SELECT DISTINCT a.v, c.v AS w {THREE.format('', '')}",
    "last": f"SELECT a.v, c.v AS w {THREE.format(', a [RANGE 1 s] d', ' AND c.k = d.k')}",
}


def seen(
    seed: int,
    chance: float,
    queries: dict[str, str] = QUERIES,
    begin: int = 1,
    folder: Path | None = None,
) -> tuple[dict[str, list[object]], int]:
    """What queries tell that share parts of their plans, by name, and how many changes; so many of
    them begin before the first rows, and so have equal plans.

    folder  of engines that are killed now and then"""
    random, fate, names = Random(seed), Random(seed), list(queries)
    with forced(seed, chance) as changes:
        engine = Engine(None if folder is None else str(folder / "0"))
        engine.execute(DDL)
        for second in range(12):
            for name in names[: 1 if second else begin] if second % 2 == 0 else ():
                names.remove(name)
                engine.execute(f"CREATE QUERY {name} AS {queries[name]}")
            if second == 9:
                engine.execute(f"DROP QUERY {list(queries)[3]}")
            for stream in "abc":
                if folder is not None and fate.random() < 0.1:
                    engine = _killed(engine, folder, fate)
                n = random.randint(0, 6)
                ts = sorted(random.randrange(second * 1000, second * 1000 + 1000) for _ in range(n))
                rows = {
                    "k": [random.randint(0, 2) for _ in ts],
                    "v": [random.randint(0, 9) for _ in ts],
                    "t": [1000 * at for at in ts],
                }
                engine.ingest(stream, rows)
                engine.heartbeat(stream, (second + 1) * 1_000_000 - 1)
        told = {name: _told(engine, name) for k, name in enumerate(queries) if k != 3}
        engine.close()
    return told, changes.made


def _told(engine: Engine, name: str) -> list[object]:
    pushes = engine.subscribe(name, 0).take()
    return [(p.kind, p.seq, p.at, p.data.to_pylist()) for p in pushes if p.data is not None]


def _killed(engine: Engine, folder: Path, fate: Random) -> Engine:
    """Another one, over what that one has written by now."""
    if fate.random() < 0.3:
        assert engine.saver is not None and engine.saver.checkpoint()
    engine.sync()
    number = len(list(folder.iterdir()))
    shutil.copytree(folder / f"{number - 1}", folder / f"{number}")
    engine.close()
    again = Engine(str(folder / f"{number}"))
    assert again.recovered is not None and again.recovered.notes == []
    return again


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
    told, made = seen(seed, (0.03, 0.1, 0.3)[seed % 3], SHARING, 4)
    assert made == sum(kinds.values()) > 0
    assert told == seen(seed, 0.0, SHARING, 4)[0]


@pytest.mark.parametrize("seed", sampled(range(24), 4))
def test_joins_that_are_shared_across_kills(seed: int, tmp_path: Path) -> None:
    """What is written down is done again, whoever shares the joins by then."""
    told, made = seen(seed, (0.05, 0.3)[seed % 2], SHARING, 4, tmp_path)
    assert made > 0
    assert told == seen(seed, 0.0, SHARING, 4)[0]


def periodic(seed: int) -> Way:
    options = (("joins", ("auto", "tree", "pipeline")[seed % 3]), ("path", "'is'"))
    return Way("upa", ("rows", "random")[seed % 2], True, seed, options)


@settings(max_examples=examples(30), deadline=None)
@given(joined_sliding(), SEEDS)
def test_periodic_queries(story: Story, seed: int) -> None:
    """Between two boundaries; with and without restore, from scratch and by changes."""
    with forced(seed):
        check_boundaries(story, [periodic(seed)])


@settings(max_examples=examples(20), deadline=None)
@given(joined_sliding(), SEEDS)
def test_periodic_queries_across_kills(story: Story, seed: int) -> None:
    with forced(seed):
        check_restarts(story, periodic(seed), seed)
