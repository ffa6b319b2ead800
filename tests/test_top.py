"""ORDER BY ... LIMIT n PER k against its definition, on random rows: ties, NULLs, text keys,
windows of all kinds, sub-queries, restarts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from tests import test_equivalence as continuous
from tests import test_periodic_equivalence as periodic
from tests import test_recovery_equivalence as recovery
from tests.effort import examples
from tests.oracle.values import canons
from tests.stories import text
from tests.stories.model import Arrival, Beat, Event, Section, Story
from tests.stories.play import Way, feed, rows_of, some_ways

SEEDS = st.integers(0, 9999)
S = 1_000_000
STREAMS = """
CREATE STREAM s (k INT, v INT, n STRING, f FLOAT, t TIMESTAMP) TIMESTAMP BY t;
CREATE STREAM u (k INT, v INT, n STRING, f FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
"""
KEPT = STREAMS.replace("BY t;", "BY t RETAIN 1 h;")
TEXTS = (None, "a", "b", "ab", "é", "")
FLOATS = (None, 0.0, -0.0, 1.5, float("nan"), float("-inf"))
WINDOWS = (
    "[RANGE 4 s]", "[RANGE 9 s]", "[NOW]", "[ROWS 5]", "[PARTITION BY k ROWS 2]", "",
    "[RANGE 6 s UNTIL 2 s AGO]", "[SINCE 3s]", "[RANGE UNBOUNDED]",
)  # a long list  # fmt: skip
KEYS = ("v", "v DESC", "n", "n DESC NULLS FIRST", "f DESC", "f NULLS FIRST", "v DESC, n", "k + v")
PER = (" PER k", " PER n", " PER k, n", " PER f", " PER ()", " PER v / 2", "")
FORMS = (
    "SELECT k, v, n FROM s {w}{end}",
    "SELECT v FROM s {w} WHERE k > 0{end}",
    "SELECT x.k, x.v, y.n, x.f FROM s {w} x JOIN u {z} y ON x.k = y.k{joined}",
    "SELECT k, v, n, f FROM s {w} UNION ALL SELECT k, v, n, f FROM u {z}{set}",
    "SELECT k, v FROM s {w} WHERE NOT EXISTS (SELECT * FROM u {z} WHERE u.v = s.v){end}",
    "SELECT DISTINCT k, v FROM s {w} ORDER BY v DESC LIMIT {n} PER k",
    "SELECT k, n, COUNT(*) AS c FROM s {w} GROUP BY k, n ORDER BY c DESC LIMIT {n} PER k",
    "SELECT n FROM s {w} GROUP BY k, n ORDER BY SUM(v) DESC LIMIT {n}",
    "SELECT COUNT(*) AS c, SUM(q.v) AS x FROM (SELECT k, v, n FROM s {w}{end}) q",
    "SELECT q.k, q.v, y.v AS w FROM (SELECT k, v FROM s {w}{end}) q JOIN u {z} y ON q.k = y.k",
    "SELECT DISTINCT q.v FROM (SELECT k, v FROM s {w}{end}) q",
    "SELECT k, LAST(v) AS x FROM (SELECT k, v FROM s {w}{end}) q GROUP BY k",
    "SELECT k, v FROM u {z} WHERE k IN (SELECT k FROM s {w}{end})",
    "SELECT * FROM (SELECT Istream(k, v) FROM s {w}{end}) q",
    "(SELECT k, v FROM s {w}{end}) EXCEPT SELECT k, v FROM u {z}",
    "SELECT k, v FROM (SELECT k, v, n, f FROM s {w}{end}) q ORDER BY v, k DESC LIMIT 2 PER k",
)


@st.composite
def rows(draw: st.DrawFn, most: int = 30) -> list[Event]:
    """Rows of few keys, many at one instant."""
    found, now = list[Event](), 0
    for _ in range(draw(st.integers(1, most))):
        now += draw(st.sampled_from([0, 0, 1, 1, 2, 4]))
        k = draw(st.sampled_from([0, 1, 1, None]))
        v = draw(st.sampled_from([0, 1, 2, 3, 4, None]))
        row = (k, v, draw(st.sampled_from(TEXTS)), draw(st.sampled_from(FLOATS)), now * S)
        found.append(Arrival(draw(st.sampled_from("ssu")), now * S, row))
    return [*found, Beat(None, (now + draw(st.integers(0, 12))) * S)]


@st.composite
def ranked(draw: st.DrawFn, *, boundaries: bool = False, late: bool = False) -> Story:
    """A query with rows that are ranked; `late`: it comes after some of the rows."""
    form = draw(st.sampled_from(FORMS))
    n = draw(st.sampled_from([0, 1, 2, 2, 3, 3, 300, 10**12]))
    key, per = draw(st.sampled_from(KEYS)), draw(st.sampled_from(PER))
    if boundaries and not per and " q" not in form:
        per = " PER ()"
    asks = form.format(
        n=n,
        w=draw(st.sampled_from(WINDOWS)),
        z=draw(st.sampled_from(WINDOWS)),
        end=f" ORDER BY {key} LIMIT {n}{per}",
        set=f" ORDER BY {key.replace('k + v', '2 DESC, 1')} LIMIT {n}{per.replace('v / 2', 'v')}",
        joined=f" ORDER BY {_qualified(key)} LIMIT {n}{_qualified(per)}",
    )
    kind = draw(st.sampled_from(["", "", "Istream", "Dstream"]))
    if kind and asks.startswith("SELECT ") and "DISTINCT" not in asks and "Istream" not in asks:
        head, _, behind = asks.partition(" FROM ")
        asks = f"SELECT {kind}({head.removeprefix('SELECT ')}) FROM {behind}"
    if boundaries:
        asks += " EVERY 2 s"
    events = draw(rows())
    first = draw(st.integers(0, len(events) - 1)) if late else 0
    before = [Section("input", events=events[:first])] if first else []
    ddl = KEPT if late else STREAMS
    query = Section("query", "q", body=asks)
    rest = [Section("input", events=events[first:]), Section("pushes", "q")]
    return Story(sections=[Section("sql", body=ddl), *before, query, *rest])


def _qualified(text: str) -> str:
    """Over the join: each column of the left side, texts of the right one."""
    words = {"v": "x.v", "k": "x.k", "n": "y.n", "f": "x.f"}
    return " ".join(
        words.get(w.rstrip(","), w.rstrip(",")) + "," * w.endswith(",") for w in text.split(" ")
    )


@settings(max_examples=examples(200))
@given(ranked(), SEEDS)
def test_what_is_shown_are_the_first_rows_of_each_key(story: Story, seed: int) -> None:
    continuous.check(story, some_ways(seed))


@settings(max_examples=examples(80))
@given(ranked(late=True), SEEDS)
def test_queries_that_come_later_begin_with_what_is_kept(story: Story, seed: int) -> None:
    continuous.check(story, some_ways(seed))


@settings(max_examples=examples(120))
@given(ranked(boundaries=True), SEEDS)
def test_boundaries_see_the_first_rows_of_each_key(story: Story, seed: int) -> None:
    periodic.check(story, periodic.ways(seed))


@settings(max_examples=examples(40), deadline=None)
@given(ranked(), SEEDS)
def test_an_engine_that_is_killed_goes_on(story: Story, seed: int) -> None:
    recovery.check(story, recovery.one_way(seed), seed)


@settings(max_examples=examples(60), deadline=None)
@given(rows(), st.sampled_from(FORMS), st.sampled_from(KEYS), st.sampled_from(PER), SEEDS)
def test_asked_once_it_is_what_a_continuous_query_shows(
    events: list[Event], form: str, key: str, per: str, seed: int
) -> None:
    if "Istream" in form:  # what has entered is not known any more
        return
    end = f" ORDER BY {key} LIMIT 2{per or ' PER ()'}"
    asks = form.format(
        n="2", w="[RANGE 4 s]", z="[RANGE 9 s]", end=end,
        set=f" ORDER BY n LIMIT 2{per.replace('v / 2', 'v')}",
        joined=f" ORDER BY {_qualified(key)} LIMIT 2{_qualified(per)}",
    )  # a row  # fmt: skip
    engine = Engine()
    engine.execute(f"{KEPT} CREATE QUERY q AS {asks}")
    story = Story(sections=[Section("sql", body=KEPT), Section("input", events=events)])
    feed(engine, text.resolve(story), events, Way(cut="random", seed=seed))
    (asked,) = engine.execute(asks)
    (shown,) = engine.execute("SELECT * FROM q")
    want, got = (Counter(map(canons, rows_of(r.data))) for r in (shown, asked))  # type: ignore[union-attr]
    assert got == want, asks


@pytest.mark.parametrize(
    "window", ["[RANGE 300 ms]", "[ROWS 300]", "[RANGE 300 ms] WHERE v > 20", ""]
)
@pytest.mark.parametrize("n", [0, 2, 40, 300])
@pytest.mark.parametrize("strategy", ["upa", "nt"])
def test_state_that_is_compacted_answers_as_before(window: str, n: int, strategy: str) -> None:
    """Enough rows, keys and texts for all of them to be let go of, many times."""
    random, engine = Random(n), Engine()
    engine.execute("CREATE STREAM s (k STRING, v INT, n STRING, t TIMESTAMP) TIMESTAMP BY t")
    order = f"ORDER BY n DESC, v LIMIT {n} PER k WITH (strategy = {strategy})"
    engine.execute(f"CREATE QUERY q AS SELECT k, v, n FROM s {window} {order}")
    rows = [
        (f"k{i // 700}{random.randint(0, 3)}", random.randint(0, 99), f"{random.randint(0, i)}", i)
        for i in range(6000)
    ]
    for start in range(0, 6000, 500):
        part = rows[start : start + 500]
        engine.ingest("s", [(*row[:3], row[3] * 1000) for row in part])
        now = part[-1][3]
        engine.heartbeat("s", now * 1000)
        (shown,) = engine.execute("SELECT * FROM q")
        assert Counter(rows_of(shown.data)) == _first(rows[: start + 500], now, window, n)  # type: ignore[union-attr]


def test_a_query_stops_at_its_max_state_and_goes_on() -> None:
    engine = Engine()
    engine.execute(KEPT)
    engine.execute("CREATE QUERY q AS SELECT k, v FROM s [RANGE 1 h] ORDER BY v LIMIT 2 PER k")
    _come(engine, 0, 500)
    room = engine.runtime.queries["q"].nbytes() + 1000
    engine.execute(f"ALTER QUERY q SET (max_state = {room})")
    _come(engine, 500, 4000)
    (status,) = [q["status"] for q in _asked(engine, "SHOW QUERIES FULL")]
    assert status.startswith("stopped: DS630")
    engine.execute("ALTER QUERY q SET (max_state = 1000000000); RESUME QUERY q")
    assert len(_asked(engine, "SELECT * FROM q")) == 3600


def test_rows_that_can_not_come_in_are_let_go_of() -> None:
    """Each row stands before all that came before it, and lives longer."""
    engine = Engine()
    engine.execute(KEPT)
    engine.execute("CREATE QUERY q AS SELECT v FROM s [RANGE 1 h] ORDER BY v DESC LIMIT 3")
    _come(engine, 0, 3000)
    (live,) = [q["live_rows"] for q in _asked(engine, "SHOW QUERIES FULL")]
    assert live < 20
    assert sorted(r["v"] for r in _asked(engine, "SELECT * FROM q")) == [2997, 2998, 2999]


@pytest.mark.parametrize("end", ["", " EVERY 1 s"])
def test_the_first_rows_are_those_of_what_a_user_may_see(tmp_path: Path, end: str) -> None:
    """Whose creator may see some rows: the query ranks these alone, after a restart, too; and who
    comes later, with another condition, shares no ranks with it."""
    engine = Engine(str(tmp_path))
    engine.execute(f"{KEPT} CREATE USER al TOKEN; CREATE USER bo TOKEN")
    engine.execute("GRANT CREATE ON ALL TO al, bo; GRANT SELECT ON s TO bo")
    engine.execute("GRANT SELECT ON s TO al MASK (n AS 'hidden') WHERE v < 50")
    asks = "SELECT k, v, n FROM s [RANGE 1 h] ORDER BY v DESC LIMIT 1 PER ()" + end
    engine.execute(f"CREATE QUERY mine AS {asks}", user="al")
    _come(engine, 0, 80)
    engine.execute(f"CREATE QUERY later AS {asks}", user="bo")
    for again in (False, True):
        if again:
            engine.close()
            engine = Engine(str(tmp_path))
        _come(engine, 80 + 10 * again, 90 + 10 * again)
        for name, v, n in (("mine", 49, "hidden"), ("later", 89 + 10 * again, "x")):
            assert [(r["v"], r["n"]) for r in _asked(engine, f"SELECT * FROM {name}")] == [(v, n)]
    for user, v in (("al", 49), ("bo", 99)):
        once = "SELECT v FROM s [RANGE 1 h] ORDER BY v DESC LIMIT 1 PER ()"
        assert [r["v"] for r in _asked(engine, once, user)] == [v]
    engine.close()


def test_keys_that_are_sums_are_scaled_as_the_answer_is() -> None:
    shed = STREAMS.replace("BY t;", "BY t WITH (shed = random, shed_delay = 2 s);")
    asks = "SELECT k, COUNT(*) AS c FROM s [RANGE 9 s] GROUP BY k ORDER BY k LIMIT 1 PER COUNT(*)"
    engine = Engine()
    engine.execute(shed)
    plan = str(_asked(engine, f"EXPLAIN {asks} WITH (shed = scale)"))
    assert "PER COUNT" not in plan
    assert "PER c" in plan


def _come(engine: Engine, first: int, last: int) -> None:
    """Rows that each stand before the one before, by v DESC; a key each, one a second."""
    rows = [(i, i, "x", 0.5, i * S) for i in range(first, last)]
    engine.ingest("s", rows)
    engine.heartbeat("s", last * S - 1)


def _asked(engine: Engine, statement: str, user: str | None = None) -> list[dict[str, Any]]:
    (found,) = engine.execute(statement, user=user)
    return found.data.to_pylist()  # type: ignore[union-attr]


def _first(rows: list[tuple], now: int, window: str, n: int) -> Counter:
    """The definition, of all rows that have come."""
    inside = [r for r in rows if r[3] > now - 300] if "RANGE" in window else rows
    inside = inside[-300:] if "ROWS" in window else inside
    inside = [r for r in inside if r[1] > 20] if "WHERE" in window else inside
    ranked = sorted(inside, key=lambda r: r[1])
    ranked.sort(key=lambda r: r[2], reverse=True)
    keys = {r[0] for r in ranked}
    return Counter(r[:3] for k in keys for r in [r for r in ranked if r[0] == k][:n])
