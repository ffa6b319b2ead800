"""ALTER STREAM s SET CLOCK takes punctuations back: also where the clock stands right, for one
that was a mistake.  Queries begin anew, and answer as if none had been made."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError
from tests.effort import sampled

S = 1_000_000
STREAMS = """
CREATE STREAM s (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
CREATE STREAM u (k INT, w INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
"""
QUERIES = {
    "groups": "SELECT k, MEDIAN(v) AS m, COUNT(DISTINCT v) AS n FROM s GROUP BY k",
    "hours": "SELECT k, DATE_TRUNC('minute', t) AS at, STRING_AGG(CAST(v AS STRING)) AS vs FROM s "
    "GROUP BY k, DATE_TRUNC('minute', t)",
    "kinds": "SELECT Rstream(DISTINCT k) FROM s",
    "joins": "SELECT Rstream(s.k, v, w) FROM s, u WHERE s.k = u.k",
    "padded": "SELECT Rstream(s.k, v, w) FROM s LEFT JOIN u ON s.k = u.k",
    "above": "SELECT k, COUNT(*) AS n FROM joins GROUP BY k",
    "slides": "SELECT k, MEDIAN(v) AS m FROM s [RANGE UNBOUNDED SLIDE 5 s] GROUP BY k",
}
REGISTER = "".join(f"CREATE QUERY {name} AS {sql};" for name, sql in QUERIES.items())
MISTAKES = (
    "PUNCTUATE s WHERE k IN (1, 2)",
    "PUNCTUATE u WHERE k = 1",
    "PUNCTUATE s WHERE k = 0 UPTO '1970-01-01 00:30:00'",
    "PUNCTUATE s WHERE k = 1 AND v = 3",
)


def answers(engine: Engine) -> dict[str, list[Any]]:
    asked = {name: engine.execute(f"SELECT * FROM {name}")[0].data for name in QUERIES}  # type: ignore[union-attr]
    return {name: sorted(rows.to_pylist(), key=str) for name, rows in asked.items()}


def played(engine: Engine, chance: Random, first: int, count: int = 60) -> int:
    for at in range(first, first + count):
        name = chance.choice("su")
        row = [chance.randrange(3), chance.randrange(6), at * S]
        assert engine.ingest(name, [row]).late == 0
        for each in "su":
            engine.heartbeat(each, at * S)
    return first + count


@pytest.mark.parametrize("way", ["alive", "stopped", "killed"])
@pytest.mark.parametrize("seed", sampled(range(6), 3))
def test_a_mistake_is_taken_back(tmp_path: Path, seed: int, way: str) -> None:
    """Where the clock has not come so far, nothing else is."""
    engine, right = Engine(str(tmp_path / "data")), Engine()
    for one in (engine, right):
        one.execute(STREAMS + REGISTER)
        now = played(one, Random(seed), 1)
    for mistake in Random(seed).sample(MISTAKES, 2):
        engine.execute(mistake)
    for one in (engine, right):
        for each in "su":
            one.heartbeat(each, now * S)
    promised = [s for s in ("s", "u") if engine.runtime.inputs[s].promises is not None]
    for each in promised:
        done = engine.execute(f"ALTER STREAM {each} SET CLOCK TO '1970-01-01 02:00:00'")[0]
        assert done.message.startswith(f"punctuations of stream {each} are taken back; registered")
        assert "partial" not in str(done.warnings)
    if way == "stopped":
        engine.close()
        engine = Engine(str(tmp_path / "data"))
    elif way == "killed":
        engine.sync()
        shutil.copytree(tmp_path / "data", tmp_path / "killed")
        engine = Engine(str(tmp_path / "killed"))
    for one in (engine, right):
        played(one, Random(-seed), now + 1)
    assert answers(engine) == answers(right)
    counts = engine.runtime.inputs["s"].counts
    assert (counts.late, counts.contradicting) == (0, 0)


@pytest.mark.parametrize("seed", sampled(range(6), 3))
def test_the_clock_takes_them_with_it(seed: int) -> None:
    """Promises that were made before the clock went too far, and behind that."""
    engine, right = Engine(), Engine()
    for one in (engine, right):
        one.execute(STREAMS + REGISTER)
        now = played(one, Random(seed), 1)
    chance = Random(seed)
    for mistake in chance.sample(MISTAKES, 2):
        engine.execute(mistake)
    for each in "su":
        engine.heartbeat(each, 1200 * S)
    for mistake in chance.sample(MISTAKES, 2):
        engine.execute(mistake)
    for each in "su":
        engine.execute(f"ALTER STREAM {each} SET CLOCK TO '1970-01-01 00:01:01'")
    for one in (engine, right):
        played(one, Random(-seed), now)
    assert answers(engine) == answers(right)


def test_of_system_time() -> None:
    """The smallest case: a row of a key that was promised not to come."""
    engine = Engine()
    engine.execute(
        "CREATE STREAM a (k INT) RETAIN 1 h; CREATE QUERY q AS SELECT Rstream(DISTINCT k) FROM a"
    )
    engine.advance(10 * S)
    engine.ingest("a", [(1,)])
    engine.advance(11 * S)
    engine.execute("PUNCTUATE a WHERE k IN (1, 2)")
    assert engine.ingest("a", [(2,)]).late == 1
    done = engine.execute("ALTER STREAM a SET CLOCK TO NOW")[0]
    assert done.message == "punctuations of stream a are taken back; registered anew: q"
    assert engine.ingest("a", [(2,), (1,)]).accepted == 2
    engine.advance(12 * S)
    assert sorted(engine.execute("SELECT * FROM q")[0].data["k"].to_pylist()) == [1, 2]  # type: ignore[union-attr]
    done = engine.execute("ALTER STREAM a SET CLOCK TO NOW")[0]
    assert done.message == "the clock of stream a has not passed 1970-01-01T00:00:12Z"


def test_what_is_gone_is_told() -> None:
    engine = Engine()
    engine.execute(
        "CREATE STREAM a (k INT, v INT, t TIMESTAMP) TIMESTAMP BY t;"
        "CREATE QUERY q AS SELECT k, MEDIAN(v) AS m FROM a GROUP BY k"
    )
    engine.ingest("a", [(1, 5, S), (1, 6, 2 * S)])
    engine.execute("PUNCTUATE a WHERE k = 1; HEARTBEAT a AT '1970-01-01 00:00:03'")
    done = engine.execute("ALTER STREAM a SET CLOCK TO '1970-01-01 00:00:04'")[0]
    assert "answers are partial for ever" in str(done.warnings)


def test_what_it_does_not_go_with() -> None:
    engine = Engine()
    engine.execute(
        "CREATE STREAM a (k INT, t TIMESTAMP) TIMESTAMP BY t KEY (k); PUNCTUATE a WHERE k = 1"
    )
    with pytest.raises(DsmsError, match="DS417"):
        engine.execute("ALTER STREAM a SET CLOCK TO '1970-01-01 01:00:00'")
