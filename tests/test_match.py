"""MATCH over many rows, so that attempts are swept, rows compacted and keys forgotten; its text,
its plan, and what its state costs."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest

import dsms
from dsms.api import Rows
from dsms.operators import match_attempts, match_many, match_search, pieces
from dsms.operators.match import MatchOp
from dsms.plan.planner import plan
from dsms.sql.binder import bind_query
from dsms.sql.parser import parse_one
from dsms.sql.printer import to_sql
from dsms.sql.render import to_sql as plan_to_sql
from tests.plan_forms import comparable
from tests.test_rules import SCHEMA, declared

S = 1_000_000
SPAN = 20 * S
DECLARE = "CREATE STREAM s (k INT, kind INT, v INT, t TIMESTAMP) TIMESTAMP BY t"
Row = tuple[int, int, int, int]  # k, kind, v, t

CONDITIONS = "a.kind = 0 AND b.kind = 1 AND n.kind = 2 AND b.v > a.v AND c.kind = 1"
QUERIES = {
    "simple": f"b.v - a.v < 9 AND c.v < b.v AND n.v > a.v AND {CONDITIONS}",
    "words": f"b.v < a.v + 9 AND c.v < b.v AND n.v > a.v AND {CONDITIONS}",
}
TEXT = (
    "SELECT Istream(a.k, a.t, b.t AS second, c.t AS last, COUNT(m.v) AS n, SUM(m.v) AS total) "
    "FROM MATCH (a s, NOT n s, b s, m+ s, c s) [RANGE 20 s] PER k "
    "WHERE m.kind = 0 AND m.v >= a.v AND "
)


def rows(seed: int, count: int) -> list[Row]:
    """Many keys, each for a while."""
    rng = random.Random(seed)
    made = [
        (i // 40 + rng.randrange(12), rng.choice((0, 0, 1, 1, 2)), rng.randrange(12), i * S // 8)
        for i in range(count)
    ]
    return [(k, kind, v, t - t % (S // 4)) for k, kind, v, t in made]  # some of one instant


def answers(given: list[Row]) -> list[tuple[Any, ...]]:
    """By definition."""
    of: dict[int, list[Row]] = defaultdict(list)
    for row in given:
        of[row[0]].append(row)
    out = []
    for a in given:
        same = [r for r in of[a[0]] if a[3] < r[3] < a[3] + SPAN]
        if a[1] != 0:
            continue
        b = next((r for r in same if r[1] == 1 and r[2] > a[2] and r[2] - a[2] < 9), None)
        if b is None or any(r[1] == 2 and r[2] > a[2] and r[3] < b[3] for r in same):
            continue
        after = [r for r in same if r[3] > b[3]]
        m = next((r for r in after if r[1] == 0 and r[2] >= a[2]), None)
        if m is None:
            continue
        c = next((r for r in after if r[3] > m[3] and r[1] == 1 and r[2] < b[2]), None)
        if c is None:
            continue
        many = [r[2] for r in after if r[1] == 0 and r[2] >= a[2] and r[3] < c[3]]
        out.append((a[0], a[3], b[3], c[3], len(many), sum(many)))
    return sorted(out)


def taken(reader: Any) -> list[tuple[Any, ...]]:
    found = [row for push in reader.take() if push.data for row in push.data.to_pylist()]
    return [tuple(_plain(v) for v in row.values()) for row in found]


def _plain(value: Any) -> Any:
    return round(value.timestamp() * S) if hasattr(value, "timestamp") else value


@pytest.mark.parametrize("conditions", QUERIES)
@pytest.mark.parametrize("crowd", [4, 1 << 20])
def test_many_rows(conditions: str, crowd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match_attempts, "CROWD", crowd)
    monkeypatch.setattr(pieces, "STRETCH", 97)
    monkeypatch.setattr(match_search, "PAIRS", 32)
    monkeypatch.setattr(match_many, "PAIRS", 8)
    given, rng = rows(3, 4000), random.Random(4)
    engine = dsms.Engine()
    engine.execute(DECLARE)
    engine.execute(f"CREATE QUERY q AS {TEXT}{QUERIES[conditions]}")
    reader, start, found = engine.subscribe("q"), 0, []
    while start < len(given):
        stop = start + rng.choice((1, 3, 50, 700))
        engine.ingest("s", given[start:stop])
        found += taken(reader)
        start = stop
    engine.end("s")
    found += taken(reader)
    expected = answers(given)
    assert sorted(found) == expected and len(expected) > 50


@pytest.mark.parametrize("crowd", [4, 1 << 20])
def test_many_rows_that_nothing_follows(crowd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match_attempts, "CROWD", crowd)
    monkeypatch.setattr(pieces, "STRETCH", 97)
    given, rng = rows(5, 4000), random.Random(6)
    engine = dsms.Engine()
    engine.execute(DECLARE)
    engine.execute(
        "CREATE QUERY q AS SELECT a.k, a.t, b.t AS second FROM MATCH (a s, b s, NOT n s) "
        "[RANGE 20 s INTERNAL] PER k WHERE a.kind = 0 AND b.v > a.v AND n.v < b.v AND n.kind = 2"
    )
    reader, start, found = engine.subscribe("q"), 0, []
    while start < len(given):
        stop = start + rng.choice((1, 3, 50, 700))
        engine.ingest("s", given[start:stop])
        for push in reader.take():
            instants = push.ats.to_pylist() if push.ats else [push.at] * push.data.num_rows
            found += [
                (at, *map(_plain, r.values()))
                for at, r in zip(instants, push.data.to_pylist(), strict=True)
            ]
        start = stop
    expected = []
    for a in given:
        same = [r for r in given if r[0] == a[0] and a[3] < r[3] < a[3] + SPAN]
        b = next((r for r in same if r[2] > a[2]), None)
        if a[1] != 0 or b is None or a[3] + SPAN > given[-1][3] - 1:
            continue
        if not any(r[1] == 2 and r[2] < b[2] and r[3] > b[3] for r in same):
            expected.append((a[3] + SPAN, a[0], a[3], b[3]))
    assert sorted(found) == sorted(expected) and len(expected) > 100


SKIPS = {
    "last": "SELECT Istream(a.k, a.t, b.t AS second, c.t AS last) FROM MATCH (a s, b s, c s) "
    "[RANGE 20 s] PER k SKIP PAST LAST WHERE a.kind = 0 AND b.v > a.v AND b.kind = 1 AND c.v < b.v",
    "upto": "SELECT Istream(a.k, a.t, COUNT(m) AS n, c.t AS last) FROM MATCH (a s, m+ s, c s) "
    "[RANGE 20 s] PER k SKIP PAST LAST WHERE a.kind = 0 AND m.v < a.v AND c.v > MAX(m.v) + 2 AND "
    "COUNT(m) > 1",
}


@pytest.mark.parametrize("form", SKIPS)
@pytest.mark.parametrize("crowd", [4, 1 << 20])
def test_matches_that_do_not_overlap(
    form: str, crowd: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(match_attempts, "CROWD", crowd)
    monkeypatch.setattr(pieces, "STRETCH", 97)
    monkeypatch.setattr(match_search, "PAIRS", 32)
    given, rng = rows(7, 4000), random.Random(8)
    engine = dsms.Engine()
    engine.execute(DECLARE)
    engine.execute(f"CREATE QUERY q AS {SKIPS[form]}")
    reader, start, found = engine.subscribe("q"), 0, []
    while start < len(given):
        stop = start + rng.choice((1, 3, 50, 700))
        engine.ingest("s", given[start:stop])
        found += taken(reader)
        start = stop
    engine.end("s")
    found += taken(reader)
    expected = apart(given, form)
    assert sorted(found) == expected and len(expected) > 50


def apart(given: list[Row], form: str) -> list[tuple[Any, ...]]:
    """By definition: of each key what is complete first, the oldest attempt of an instant, and then
    nothing that begins before it is over."""
    of: dict[int, list[Row]] = defaultdict(list)
    for row in given:
        of[row[0]].append(row)
    out = []
    for same in of.values():
        each = [(a, following(a, same, form)) for a in same if a[1] == 0]
        until = -1
        for a, m in sorted((m for m in each if m[1]), key=lambda m: m[1][-1]):  # it is stable
            if a[3] > until:
                out.append((a[0], a[3], *m))
                until = m[-1]
    return sorted(out)


def following(a: Row, same: list[Row], form: str) -> tuple[int, ...] | None:
    """What is told of the match that a row begins, its last instant last."""
    after = [r for r in same if a[3] < r[3] < a[3] + SPAN]
    if form == "last":
        b = next((r for r in after if r[2] > a[2] and r[1] == 1), None)
        c = b and next((r for r in after if r[3] > b[3] and r[2] < b[2]), None)
        return None if b is None or c is None else (b[3], c[3])
    many = [r for r in after if r[2] < a[2]]
    for c in after:
        upto = [r for r in many if r[3] < c[3]]
        if len(upto) > 1 and c[2] > max(r[2] for r in upto) + 2:
            return len(upto), c[3]
    return None


def test_two_steps_of_which_there_is_no_row() -> None:
    """One of them comes in between, the other one behind the row of the next step."""
    engine = dsms.Engine()
    engine.execute(DECLARE)
    engine.execute(
        "CREATE QUERY q AS SELECT Istream(a.v, b.v AS w) FROM MATCH (a s, NOT n s, NOT o s, b s) "
        "[RANGE 20 s] PER k WHERE a.kind = 0 AND n.kind = 1 AND o.kind = 2 AND b.kind = 3"
    )
    kinds = [0, 1, 3, 2, 9, 0, 3, 2, 9]
    engine.ingest("s", [(1, kind, at, at * S) for at, kind in enumerate(kinds)])
    assert taken(engine.subscribe("q", 0)) == [(5, 6)]


def test_state_is_let_go() -> None:
    engine = dsms.Engine()
    engine.execute(DECLARE)
    engine.execute(f"CREATE QUERY q AS {TEXT}{QUERIES['words']}")
    sizes = []
    for part in range(12):
        given = enumerate(rows(1, 2000))
        engine.ingest(
            "s", [(i // 4 + part * 500, x, v, t + part * 1000 * S) for i, (_, x, v, t) in given]
        )
        engine.heartbeat("s", (part + 1) * 1000 * S - 1)
        sizes.append(machine(engine).nbytes())
    assert max(sizes[6:]) <= 2 * max(sizes[:3])
    assert machine(engine).live() == 0


def machine(engine: Any) -> MatchOp:
    query = engine.runtime.queries["q"]
    return next(s.operator for s in query.pipeline.stages if isinstance(s.operator, MatchOp))


# ---------------------------------------------------------------- text and plans

TWO = "SELECT a.sym FROM MATCH (a trades, b quotes) [RANGE 5 s]"
TEXTS = (
    f"{TWO} PER sym",
    "SELECT a.sym FROM MATCH (a trades, NOT u trades, b trades) [RANGE 5 INTERNAL] PER (sym, qty)",
    "SELECT COUNT(b.px) FROM MATCH (a trades, b+ trades, c (SELECT qty FROM trades)) [RANGE 9]",
    f"{TWO} PER sym SKIP PAST LAST WHERE b.n > a.qty",
    f"{TWO} SKIP PAST LAST",
    f"{TWO[:-1]} SLIDE 1 s], limits l WHERE l.sym = a.sym",
)
PLANS = (
    *TEXTS,
    f"{TWO.replace('quotes', 'trades')} PER sym WHERE b.px > a.px AND a.qty > 3",
    "SELECT a.sym, SUM(b.qty) AS n FROM MATCH (a trades, b+ trades, c trades) [RANGE 5 s] PER sym "
    "WHERE b.px > a.px AND c.px < a.px",
    "SELECT a.sym, COUNT(b) AS n FROM MATCH (a trades, b+ trades, c trades, d quotes) [RANGE 5 s] "
    "PER sym SKIP PAST LAST WHERE b.px > a.px AND c.px < MAX(b.qty) AND COUNT(b.px) > 2 AND "
    "COUNT(b) FILTER (WHERE b.px > 1) > 2 AND d.bid > SUM(b.px) FILTER (WHERE b.qty > 3)",
    f"SELECT m.sym FROM ({TWO.replace('a.sym', 'a.sym, b.n')}) m WHERE n > 3",
    f"{TWO} JOIN limits l ON l.sym = a.sym AND b.n > 3",
    "SELECT sym FROM trades [NOW] t WHERE EXISTS (SELECT * FROM MATCH (a quotes, b quotes) "
    "[RANGE 5 s] PER sym WHERE a.sym = t.sym AND b.bid > a.bid)",
)


@pytest.mark.parametrize("text", [*TEXTS, "SELECT match.sym FROM trades [NOW] AS match"])
def test_text(text: str) -> None:
    parsed = parse_one(text)
    assert parse_one(to_sql(parsed)) == parsed


@pytest.mark.parametrize("text", PLANS)
def test_plans_print_back(text: str) -> None:
    catalog = declared(SCHEMA)
    for output in (bound := bind_query(parse_one(text), catalog), plan(bound).node):
        again = plan_to_sql(output)
        found = plan(bind_query(parse_one(again), catalog)).node
        assert comparable(found) == comparable(plan(bound).node)


def test_explain() -> None:
    engine = dsms.Engine()
    engine.execute(DECLARE)
    (shown,) = engine.execute(f"EXPLAIN {TEXT}{QUERIES['words']}")
    assert isinstance(shown, Rows)
    text = "\n".join(shown.data.column(0).to_pylist())
    assert "Match a, NOT n, b, m+, c within 20 s PER a.k; NOT n: n.v > a.v; b: " in text
    assert "; count(m.v); sum(m.v)" in text and "attempts of each key" in text
    (shown,) = engine.execute(f"EXPLAIN {SKIPS['upto']}")
    assert isinstance(shown, Rows)
    text = "\n".join(shown.data.column(0).to_pylist())
    assert "Match a, m+, c within 20 s PER a.k, skip past last; m+: m.v < a.v; c: " in text
