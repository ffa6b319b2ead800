"""FROM q [window] in a one-time query: the rows that q has told, at their instants, against their
definition."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.settings import Settings
from dsms.sql import logical as lp
from dsms.sql.binder import bind_query
from dsms.sql.parser import parse_one
from dsms.sql.types import ALWAYS
from tests.derived_world import BASES, READERS, SELECTS, Definition, S
from tests.effort import examples
from tests.oracle import Oracle, Periodic, Row
from tests.test_derived_oracle import arrivals, complete, cut

WINDOWS = st.sampled_from(
    ("[RANGE 2 s]", "[RANGE 1 h]", "[ROWS 3]", "[RANGE UNBOUNDED]", "[RANGE 5 s UNTIL 1 s AGO]")
)
ASKED = (
    "SELECT *, INSTANT(h) AS told FROM q0 {w} h",
    "SELECT INSTANT(h) AS told, h.* FROM q0 {w} h",
    "SELECT COUNT(*) AS n, MAX(INSTANT(a)) AS last FROM q0 {w} a",
    "SELECT COUNT(*) AS n FROM q0 {w} a JOIN q1 {v} b ON INSTANT(a) = INSTANT(b)",
    "SELECT DISTINCT INSTANT(a) AS told FROM q1 {w} a WHERE EXISTS (SELECT 1 FROM q0 {v})",
    "SELECT s.k, COUNT(*) AS n FROM q0 {w} h, s [RANGE 3 s] GROUP BY s.k",
)


def _told(model: Definition, name: str) -> list[Row]:
    """What a query has told, but what it takes back: rows of a stream."""
    lines = [x for x in model._told(model.readers[name]) if x[1] != "-"]
    ats = [ALWAYS if at is None else at for at, _, _ in lines]
    return [Row(t, n, (*x[2], x[0])) for n, (t, x) in enumerate(zip(ats, lines, strict=True))]


def _upto(model: Definition, plan: lp.Output, clock: int) -> int:
    """The instant up to which it has told all: of a periodic query its last boundary."""
    if plan.slide is None:
        return clock
    rows, clock = model._given(plan)
    last = Periodic(plan, rows, {}, clock).answer()
    return ALWAYS if last is None else last.at


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(st.sampled_from(READERS + SELECTS), min_size=2, max_size=2),
    arrivals(),
    st.data(),
    st.sampled_from([2, 1000]),
)
def test_a_history_is_what_was_told(selects, rows, data, log) -> None:
    clock = max(row[2] for _, row in rows)
    queries = [f"CREATE QUERY q{n} AS {x.format(a='s', b='r')}" for n, x in enumerate(selects)]
    model, engine = Definition(), Engine(settings=Settings(result_log_rows=log))
    for sql in [*BASES.values(), *queries]:
        model.declare(sql)
        engine.execute(sql)
    for event in cut(data, rows):
        engine.ingest(event.stream, event.rows)
    for name in BASES:
        engine.heartbeat(name, clock)
    model.told(complete(rows), clock)
    text = data.draw(st.sampled_from(ASKED)).format(w=data.draw(WINDOWS), v=data.draw(WINDOWS))
    bound = bind_query(parse_one(text), model.catalog, persistent=False)
    read = {n.stream.name for n in lp.leaves_of(bound) if n.history}
    given_ = {name: _told(model, name) for name in read} | {"s": model.rows.get("s", [])}
    at = min(_upto(model, model.readers[name], clock) for name in read)
    want = Counter(f.values for f in Oracle(bound, given_).answer(at))
    (answer,) = engine.execute(text)
    came = Counter(tuple(row.values()) for row in answer.data.to_pylist())
    if answer.since is None:
        assert came == want, text
        assert answer.as_of == (at if at > ALWAYS else None), text
    elif text.startswith("SELECT *"):
        complete_ = [{row: n for row, n in x.items() if _later(row, answer)} for x in (came, want)]
        assert complete_[0] == complete_[1] and came <= want, text
        with pytest.raises(DsmsError, match="DS407"):
            engine.execute(f"{text} WITH (complete = required)")


def _later(row: tuple, answer) -> bool:
    return row[-1] is not None and row[-1] >= answer.since


# ---------------------------------------------------------------- beside the definition


def _engine(folder: str | None = None, **options) -> Engine:
    made = Engine(folder, Settings(**options))
    if not made.names()["streams"]:
        made.execute(
            "CREATE STREAM s (k STRING, v INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;"
            "CREATE QUERY n AS SELECT k, COUNT(*) AS n FROM s [RANGE 10 s] GROUP BY k;"
            "CREATE QUERY every AS SELECT COUNT(*) AS n FROM s [RANGE 10 s SLIDE 10 s];"
            "CREATE QUERY asked AS SELECT COUNT(*) FROM s [RANGE 10 s] ON LOOKUP"
        )
        made.ingest("s", [["a", 1, 0], ["b", 2, S], ["a", 3, 2 * S], ["a", 4, 25 * S]])
        made.heartbeat("s", 30 * S)
    return made


def ask(engine: Engine, text: str, user: str | None = None) -> list[tuple]:
    return [tuple(r.values()) for r in engine.execute(text, user=user)[-1].data.to_pylist()]


HOURLY = "SELECT INSTANT(e) AS at, n FROM every [RANGE 1 h] e ORDER BY at"
ALL = "SELECT k, n, INSTANT(n) FROM n [RANGE 1 h]"


def test_it_outlives_a_restart_and_is_told_by_explain(tmp_path):
    first = _engine(str(tmp_path / "data"))
    told, history = ask(first, HOURLY), ask(first, ALL)
    assert told == [(10 * S, 3), (20 * S, 0), (30 * S, 1)]
    assert history == [
        ("a", 1, 0), ("b", 1, S), ("a", 2, 2 * S), ("a", 1, 10 * S), ("a", 1, 25 * S),
    ]  # a table  # fmt: skip
    first.close()
    again = _engine(str(tmp_path / "data"))
    assert ask(again, HOURLY) == told and ask(again, ALL) == history
    again.execute("CREATE TABLE was (at TIMESTAMP, n INT)")
    again.execute("INSERT INTO was SELECT INSTANT(every), n FROM every [RANGE 1 h]")
    assert sorted(ask(again, "SELECT * FROM was")) == told
    plan = "\n".join(x for (x,) in ask(again, f"EXPLAIN {HOURLY}"))
    assert "History every AS e" in plan
    again.execute("END STREAM s")
    assert ask(again, HOURLY)[-1] == (40 * S, 0)
    again.close()


def test_who_sees_a_query_in_part_sees_its_history_in_part():
    engine = _engine()
    tokens = "CREATE USER ann TOKEN; CREATE USER bob TOKEN;"
    engine.execute(f"{tokens} GRANT SELECT (n) ON n TO ann WHERE k = 'a'")
    sees = "SELECT *, INSTANT(n) AS at FROM n [ROWS 2]"
    assert ask(engine, sees, "ann") == [(1, 10 * S), (1, 25 * S)]
    assert ask(engine, sees) == [("a", 1, 10 * S), ("a", 1, 25 * S)]
    for text, code in (
        ("SELECT k FROM n [ROWS 2]", "DS201"),
        ("SELECT * FROM every [ROWS 2]", "DS"),
    ):
        with pytest.raises(DsmsError, match=code):
            engine.execute(text, user="ann")


def test_a_table_must_know_how_it_was_when_a_row_was_told(monkeypatch):
    engine = _engine()
    engine.execute("CREATE TABLE d (k STRING PRIMARY KEY, x INT) NON RETROACTIVE")
    engine.execute("INSERT INTO d VALUES ('a', 1); UPDATE d SET x = 2 WHERE k = 'a'")
    text = "SELECT INSTANT(n) AS at, x FROM n [RANGE 1 h] JOIN d ON n.k = d.k"
    engine.ingest("s", [["a", 5, 31 * S]])
    engine.heartbeat("s", 32 * S)
    assert [x for _, x in ask(engine, text)] == [1, 1, 1, 2, 2]
    table = type(engine.runtime.tables["d"])
    monkeypatch.setattr(table, "forgotten", property(lambda self: 15 * S))
    (answer,) = engine.execute(text)
    assert (answer.since, answer.data.column(1).to_pylist()) == (15 * S, [2, 2])
    with pytest.raises(DsmsError, match="DS407"):
        engine.execute(f"{text} WITH (complete = required)")


def test_what_has_no_history_says_so():
    engine = _engine(result_log_rows=1)
    (answer,) = engine.execute(HOURLY)
    assert answer.since is not None and answer.data.num_rows == 1
    for text, code in (
        ("SELECT * FROM asked [RANGE 1 h]", "DS329"),
        ("SELECT * FROM n [RANGE 1 h ARCHIVE]", "DS391"),
        (f"{HOURLY.replace(' ORDER BY at', '')} WITH (complete = required)", "DS407.*query every"),
        ('SELECT "$at" FROM n [RANGE 1 h]', "DS201"),
        ("SELECT * FROM Istream(n) [RANGE 1 h]", r"DS416.*(?s:.)*FROM q \[RANGE"),
    ):
        with pytest.raises(DsmsError, match=code):
            engine.execute(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM {r} [SESSION 2 s BY k INTERNAL] GROUP BY k",
        "SELECT a.k, b.v FROM {r} [RANGE 3 s INTERNAL] a, s [RANGE 3 s INTERNAL] b WHERE a.v = b.v",
        "SELECT a.k, a.v FROM MATCH (a {r}, NOT n s) [RANGE 3 s INTERNAL] PER k WHERE n.v = 2",
        "SELECT k FROM (SELECT Istream(DISTINCT k) FROM {r} [RANGE 2 s]) [RANGE 1 h]",
    ],
)
def test_what_blocks_append_over_a_history_is_what_they_do_over_the_same_rows(text):
    engine = Engine(settings=Settings(result_log_rows=6))
    engine.execute(BASES["s"])
    engine.execute("CREATE QUERY all_of AS SELECT * FROM s")
    rows = [[1, 1, S], [2, 2, S], [1, 2, 2 * S], [None, 3, 4 * S], [1, 1, 9 * S]]
    assert engine.ingest("s", rows).accepted == 5
    engine.heartbeat("s", 20 * S)
    told, same = (engine.execute(text.format(r=name))[0] for name in ("all_of", "s"))
    assert told.data.num_rows > 0
    bags = (Counter(map(repr, answer.data.to_pylist())) for answer in (told, same))
    assert next(bags) == next(bags)
    assert (told.as_of, told.since, told.waiting) == (same.as_of, None, 0)
    engine.ingest("s", [[2, n, (30 + n) * S] for n in range(6)])
    engine.heartbeat("s", 60 * S)
    (told,) = engine.execute(text.format(r="all_of"))
    assert told.since is not None
    with pytest.raises(DsmsError, match=r"DS407.*query all_of"):
        engine.execute(f"{text.format(r='all_of')} WITH (complete = required)")
