"""When plans change, what is told of it, and what a restart makes of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.plan.rejoin import places, shape_of
from dsms.running.query import RunningQuery
from dsms.running.watching import Watch
from tests.effort import sampled

SECOND = 1_000_000
DDL = ";".join(f"CREATE STREAM {s} (k INT, x INT, t TIMESTAMP) TIMESTAMP BY t" for s in "abc")
CHAIN = "FROM a [RANGE 5 s], b [RANGE 5 s], c [RANGE 5 s] WHERE a.k = b.k AND b.x = c.x"
COUNTED = f"SELECT a.k, COUNT(*) AS n, SUM(c.x) AS m {CHAIN} GROUP BY a.k"
SLOW, FAST = 2, 120  # rows a second
LAST = 4000  # result rows that are compared


def fed(engine: Engine, begin: int, end: int, a: int, c: int, seed: int = 1) -> None:
    """Seconds of rows: so many a second of a and of c, thirty of b."""
    rng = np.random.default_rng(seed)
    for second in range(begin, end):
        for stream, rate in (("a", a), ("b", 30), ("c", c)):
            ts = np.sort(rng.integers(second * SECOND, (second + 1) * SECOND, rate))
            columns = {"k": rng.integers(0, 8, rate), "x": rng.integers(0, 8, rate), "t": ts}
            engine.ingest(stream, columns)
        for stream in "abc":
            engine.heartbeat(stream, (second + 1) * SECOND - 1)


def made(options: str = "", folder: str | None = None, sql: str = COUNTED) -> Engine:
    engine = Engine(folder)
    engine.execute(DDL)
    engine.execute(f"CREATE QUERY q AS {sql} WITH (strategy = upa{options})")
    return engine


def query(engine: Engine) -> RunningQuery:
    found = engine.runtime.queries["q"]
    assert isinstance(found, RunningQuery)
    return found


def shape(engine: Engine) -> Any:
    phys = query(engine).phys
    (path,) = places(phys)
    for k in path:
        phys = phys.children[k]
    return shape_of(phys)


def told(engine: Engine, name: str = "q") -> list[tuple[Any, ...]]:
    """The last of it, with the numbers."""
    pushes = engine.subscribe(name, max(0, engine.next_seq(name) - LAST)).take()
    return [(p.kind, p.seq, p.at, p.data.to_pylist()) for p in pushes if p.data is not None]


def explained(engine: Engine) -> str:
    return "\n".join(engine.execute("EXPLAIN QUERY q")[0].data["plan"].to_pylist())


def test_a_plan_chosen_before_the_first_rows_changes_soon() -> None:
    """By little, since nothing spoke for it; what is told is what the first plan tells."""
    engines = [made(), made(", replan = never")]
    for engine in engines:
        assert query(engine).chosen.blind
        fed(engine, 0, 12, FAST, SLOW)
    assert [query(e).chosen.changes for e in engines] == [1, 0]
    assert shape(engines[0]) == ["join", 0, ["join", 1, 2]] != shape(engines[1])
    assert query(engines[0]).chosen.since < 5 * SECOND
    assert told(engines[0]) == told(engines[1])


def test_it_changes_with_the_data_and_does_not_flap() -> None:
    """Once as much has been lost as a change costs, and more; later once much more has."""
    engine, same = made(), made(", replan = never")
    changes = []
    for k, (begin, end) in enumerate([(0, 12), (12, 36), (36, 39), (39, 42), (42, 45), (45, 60)]):
        for one in (engine, same):
            fed(one, begin, end, *((FAST, SLOW) if k % 2 == 0 else (SLOW, FAST)), seed=k)
        changes.append(query(engine).chosen.changes)
    assert changes == [1, 2, 2, 2, 2, 2]
    assert 12 * SECOND <= query(engine).chosen.since < 24 * SECOND
    assert told(engine) == told(same)
    assert engine.stats()["replans"] == engine.stats()["queries"]["q"]["replans"] == 2


def test_for_how_long_is_said_by_replan_after() -> None:
    engine = made(", replan_after = 100 s")
    fed(engine, 0, 12, FAST, SLOW)
    fed(engine, 12, 40, SLOW, FAST)
    assert query(engine).chosen.changes == 1
    engine.execute("ALTER QUERY q SET (replan_after = 1 s)")
    fed(engine, 40, 50, SLOW, FAST)
    assert query(engine).chosen.changes == 2
    engine.execute("ALTER QUERY q SET (replan = never)")
    fed(engine, 50, 80, FAST, SLOW)
    assert query(engine).chosen.changes == 2
    assert "it does not change with the data: WITH (replan = never)" in explained(engine)


def test_what_is_told_of_it() -> None:
    engine = made()
    assert "this plan: chosen before the first rows" in explained(engine)
    fed(engine, 0, 12, FAST, SLOW)
    assert "(change 1): its joins cost" in explained(engine)
    assert "does not change" not in explained(engine)
    (line,) = engine.execute("SHOW QUERIES FULL")[0].data.to_pylist()
    assert line["replans"] == 1 and line["plan_since"] is not None
    assert line["plan"].startswith("its joins cost ")


@pytest.mark.parametrize("checkpoint", sampled([True, False], 2))
def test_after_a_kill_the_plan_is_the_one_that_it_was(tmp_path: Path, checkpoint: bool) -> None:
    engine, whole = made(folder=str(tmp_path / "live")), made()
    for one in (engine, whole):
        fed(one, 0, 12, FAST, SLOW)
    if checkpoint:
        assert engine.saver is not None and engine.saver.checkpoint()
    for one in (engine, whole):
        fed(one, 12, 36, SLOW, FAST)
    engine.sync()
    shutil.copytree(tmp_path / "live", tmp_path / "killed")
    again = Engine(str(tmp_path / "killed"))
    assert again.recovered is not None and again.recovered.notes == []
    assert query(again).chosen == query(engine).chosen and shape(again) == shape(engine)
    assert query(again).phys == query(engine).phys
    fed(again, 36, 50, FAST, SLOW)
    fed(whole, 36, 50, FAST, SLOW)
    assert told(again) == told(whole)
    assert query(again).chosen.changes >= query(engine).chosen.changes == 2


def test_one_that_does_not_fit_leaves_all_as_it_was() -> None:
    """Its state would be more than the query may have."""
    engine, same = made(", replan_after = 1 s"), made(", replan = never")
    for one in (engine, same):
        fed(one, 0, 12, FAST, SLOW)
    before = query(engine)
    before.state_limit = 3000
    before.patience = 1 << 40  # it would stop
    for one in (engine, same):
        fed(one, 12, 40, SLOW, FAST)
    assert before.chosen.changes == 1 and before.failure is None
    assert told(engine) == told(same)


def test_little_is_measured_where_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, searches = [], []
    look, search = Watch.look, Watch._searched
    monkeypatch.setattr(Watch, "look", lambda *a: looks.append(1) or look(*a))
    monkeypatch.setattr(Watch, "_searched", lambda *a: searches.append(1) or search(*a))
    engine = made()
    fed(engine, 0, 60, FAST, SLOW)
    assert len(searches) <= 3 and len(looks) < 20


OTHER = f"SELECT a.k, COUNT(*) AS n, SUM(c.x) AS m {CHAIN} GROUP BY a.k HAVING COUNT(*) > 3"


def two(options: str = "") -> Engine:
    engine = made()
    engine.execute(f"CREATE QUERY r AS {OTHER} WITH (strategy = upa{options})")
    return engine


def test_joins_that_two_queries_share_change_once_for_both() -> None:
    engine, alone, same = two(), made(sql=OTHER), two(", replan = never")
    for one in (engine, alone, same):
        fed(one, 0, 12, FAST, SLOW)
        fed(one, 12, 36, SLOW, FAST)
    both = [engine.runtime.queries[name] for name in "qr"]
    assert [q.chosen.changes for q in both] == [2, 2] and engine.stats()["replans"] == 2
    assert both[0].feeds[0].part is both[1].feeds[0].part
    assert shape(engine) == shape(alone)
    assert told(engine) == told(same)
    assert told(engine, "r") == told(alone) == told(same, "r")
    assert "does not change" not in explained(engine)
    engine.execute("DROP QUERY q")
    fed(engine, 36, 80, FAST, SLOW)
    assert engine.runtime.queries["r"].chosen.changes == 3


def test_one_that_shares_them_may_be_against_it() -> None:
    engine = two(", replan = never")
    fed(engine, 0, 12, FAST, SLOW)
    why = "it does not change with the data: query r shares its joins, and has replan = never"
    assert why in explained(engine)
    assert [q.chosen.changes for q in engine.runtime.queries.values()] == [0, 0]
    engine.execute("DROP QUERY r")
    fed(engine, 12, 24, FAST, SLOW)
    assert query(engine).chosen.changes == 1


SLIDING = CHAIN.replace("[RANGE 5 s]", "[RANGE 5 s SLIDE 2 s]")
PERIODIC = f"SELECT a.k, COUNT(*) AS n, SUM(c.x) AS m {SLIDING} GROUP BY a.k"


@pytest.mark.parametrize("options", ["", ", restore"])
def test_periodic_queries_change_between_two_boundaries(tmp_path: Path, options: str) -> None:
    sql = (
        PERIODIC
        if not options
        else PERIODIC.replace("SELECT ", "SELECT Rstream-restore(").replace(" FROM", ") FROM", 1)
    )
    how = ", path = 'is'"
    engine = made(how, str(tmp_path / "live"), sql)
    same = made(f"{how}, replan = never", sql=sql)
    for one in (engine, same):
        fed(one, 0, 12, FAST, SLOW)
        fed(one, 12, 40, SLOW, FAST)
    (line,) = engine.execute("SHOW QUERIES FULL")[0].data.to_pylist()
    assert line["replans"] == engine.stats()["queries"]["q"]["replans"] == 2
    assert "(change 2): its joins cost" in explained(engine)
    assert "WITH (replan = never)" in explained(same)
    engine.sync()
    shutil.copytree(tmp_path / "live", tmp_path / "killed")
    again = Engine(str(tmp_path / "killed"))
    for one in (engine, same, again):
        fed(one, 40, 50, FAST, SLOW)
    assert told(engine) == told(same) == told(again)


def test_a_path_without_joins_has_none_to_change() -> None:
    engine = made(", path = ws", sql=PERIODIC)
    fed(engine, 0, 12, FAST, SLOW)
    assert "replans" not in engine.stats()["queries"]["q"]


def test_options_are_checked() -> None:
    engine = Engine()
    engine.execute(DDL)
    for option in ("replan = sometimes", "replan_after = 5", "replan_after = 'soon'"):
        with pytest.raises(DsmsError) as problem:
            engine.execute(f"CREATE QUERY q AS {COUNTED} WITH ({option})")
        assert problem.value.code == "DS215"
