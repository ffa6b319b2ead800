"""EVERY: boundaries that belong to the query.  Against the oracle over all access paths, against
SLIDE where both can say the same, and from the middle of a story."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder import bind_query
from dsms.sql.binder.boundaries import without_slides
from dsms.sql.parser import parse_one
from dsms.sql.printer import to_sql
from dsms.sql.rewriting import replaced
from tests.effort import examples
from tests.generate.periodic import (
    every_block_stories,
    every_day_stories,
    every_stories,
    periodic_stories,
    stamped_stories,
)
from tests.stories import text
from tests.stories.compare import same_lines
from tests.stories.model import Story
from tests.stories.play import Way, play
from tests.test_periodic_equivalence import SEEDS, check, ways

SCHEMA = """CREATE STREAM s (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts;
    CREATE STREAM t (k INT, v INT, ts TIMESTAMP) TIMESTAMP BY ts;
    CREATE TABLE r (k INT, y INT)"""


@settings(max_examples=examples(60))
@given(every_stories(), SEEDS)
def test_every(story: Story, seed: int) -> None:
    check(story, ways(seed))


@settings(max_examples=examples(25))
@given(every_day_stories(), SEEDS)
def test_every_by_the_calendar(story: Story, seed: int) -> None:
    check(story, ways(seed))


@settings(max_examples=examples(60))
@given(every_block_stories(), SEEDS)
def test_blocks_append_at_boundaries_of_their_own(story: Story, seed: int) -> None:
    check(story, ways(seed))


@settings(max_examples=examples(40))
@given(stamped_stories(), SEEDS)
def test_answers_say_their_windows(story: Story, seed: int) -> None:
    check(story, ways(seed))


def test_an_answer_that_is_given_once_says_its_window() -> None:
    """As at a boundary just behind the instant that it is of."""
    engine = Engine()
    engine.execute(SCHEMA.replace("BY ts;", "BY ts RETAIN 1 h;"))
    engine.ingest("s", [[1, 2, 0]])
    engine.heartbeat("s", 9_999_999)
    sql = "SELECT WINDOW_START() AS a, WINDOW_END() AS b, COUNT(*) AS n FROM s [RANGE 10 s]"
    (rows,) = engine.execute(sql)
    assert rows.data.to_pylist() == [{"a": 0, "b": 10_000_000, "n": 1}]  # type: ignore[union-attr]


# ---------------------------------------------------------------- EVERY and SLIDE


def said_at_the_end(sql: str) -> str | None:
    """The query with EVERY for the SLIDE of its windows; None where that means something else: a
    block that appends has its own."""
    statement = parse_one(sql)
    assert isinstance(statement, ast.SelectStatement)
    query = statement.query
    parts = list(ast.walk(query))
    windows = [w for w in parts if isinstance(w, ast.Window)]
    outputs = [o.kind for o in parts if isinstance(o, ast.Output)]
    if any(w.internal for w in windows) or any(isinstance(p, ast.WstreamArg) for p in parts):
        return None
    if len(outputs) > 1 or ast.OutputKind.WSTREAM in outputs:
        return None
    slide = next(w.slide for w in windows if w.slide is not None)
    return to_sql(replace(without_slides(query), every=slide))


def without(node: lp.Node) -> lp.Node:
    """The plan with no SLIDE on any window."""
    if isinstance(node, lp.Window):
        node = replace(node, spec=replace(node.spec, slide=None))
    return lp.with_children(node, tuple(map(without, lp.children(node))))


@settings(max_examples=examples(60))
@given(periodic_stories())
def test_every_is_the_slide_of_all_windows(story: Story) -> None:
    """The same plan, answered at the same boundaries; and the same is pushed, numbered alike."""
    declared = text.resolve(story)
    sql = said_at_the_end(text.expand(story.sections[1].body))
    if sql is None:
        return
    other = bind_query(parse_one(sql).query, declared.catalog)  # type: ignore[union-attr]
    bound = declared.queries["q"]
    assert (other.slide, other.kind, other.restore) == (bound.slide, bound.kind, bound.restore)
    assert without(other) == without(bound)
    sections = [*story.sections]
    sections[1] = replace(sections[1], body=sql)
    again = replace(story, sections=sections)
    way = Way()
    one, two = play(story, declared, way), play(again, text.resolve(again), way)
    assert same_lines(one.pushes["q"], two.pushes["q"], False)
    assert one.progress == two.progress


def blocks_with_every(sql: str) -> str:
    """The query with EVERY at the end of what stands in FROM, for the SLIDE of its windows."""
    statement = parse_one(sql)
    assert isinstance(statement, ast.SelectStatement)

    def said(ref: ast.Node) -> ast.Node | None:
        if not isinstance(ref, ast.SubqueryRef):
            return None
        windows = [w for w in ast.walk(ref.query) if isinstance(w, ast.Window)]
        slides = {w.slide for w in windows if w.slide is not None}
        if len(slides) != 1 or not isinstance(next(iter(slides)).every, ast.Duration):
            return None
        return replace(ref, query=replace(without_slides(ref.query), every=slides.pop()))

    return to_sql(replaced(statement, said, within_queries=True))


@settings(max_examples=examples(60))
@given(every_block_stories(), SEEDS)
def test_every_stands_at_the_end_of_a_block(story: Story, seed: int) -> None:
    sections = [*story.sections]
    sections[1] = replace(sections[1], body=blocks_with_every(text.expand(sections[1].body)))
    check(replace(story, sections=sections), ways(seed))


@pytest.mark.parametrize(
    ("sql", "slides"),
    [
        ("SELECT Istream(SUM(v) AS x) FROM s [RANGE 4 s]", "[RANGE 4 s SLIDE 2 s]"),
        ("SELECT SUM(v) AS x FROM s [RANGE 4 s INTERNAL]", "[RANGE 4 s INTERNAL SLIDE 2 s]"),
        ("SELECT SUM(v) AS x FROM s [RANGE 4 s] GROUP BY k", "[RANGE 4 s SLIDE 2 s]"),
        ("SELECT Istream(v AS x) FROM s [RANGE UNBOUNDED]", "[RANGE UNBOUNDED SLIDE 2 s]"),
        ("SELECT Istream(v AS x) FROM s [SINCE 0s]", "[SINCE 0s SLIDE 2 s]"),
    ],
)
@pytest.mark.parametrize("whole", ["", " EVERY 2 s"])
def test_a_subquery_with_every_is_one_whose_windows_slide(
    sql: str, slides: str, whole: str
) -> None:
    slid = sql.replace(sql[sql.index("[") : sql.index("]") + 1], slides)
    one, two = (f"SELECT x FROM ({q}){whole}" for q in (f"{sql} EVERY 2 s", slid))
    engine = Engine()
    engine.execute(SCHEMA)
    catalog = engine.runtime.catalog
    assert bind_query(parse_one(one).query, catalog) == bind_query(parse_one(two).query, catalog)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("block", "want"),
    [
        ("(SELECT Istream(k) FROM s EVERY 2 s) x", [(3, 1), (6, 15), (9, 28), (12, 66)]),
        ("Istream(q) x", [(3, 1), (6, 15), (9, 28), (12, 66)]),
        (
            "(SELECT Istream(k) FROM s [RANGE UNBOUNDED SLIDE 2 s])",
            [(3, 1), (6, 15), (9, 28), (12, 66)],
        ),
        ("(SELECT Istream(k) FROM s [ROWS 1] EVERY 2 s) x", [(3, 1), (6, 9), (9, 16), (12, 36)]),
    ],
)
def test_what_only_comes_enters_at_the_boundaries_of_its_block(
    block: str, want: list[tuple[int, int]]
) -> None:
    engine = Engine()
    engine.execute(SCHEMA)
    engine.execute("CREATE QUERY q AS SELECT k FROM s EVERY 2 s")
    engine.execute(f"CREATE QUERY n AS SELECT SUM(k) AS v FROM {block} EVERY 3 s")
    engine.ingest("s", [[k, k, k * 1_000_000] for k in range(13)])
    engine.heartbeat("s", 13_000_000)
    assert told(engine, "n") == [(at * 1_000_000, [(v,)]) for at, v in want]


@pytest.mark.parametrize(
    "block",
    [
        "(SELECT Istream(k, v) FROM s [RANGE UNBOUNDED SLIDE 3 s]) [RANGE 14 s]",
        "(SELECT Istream(k, v) FROM s EVERY 3 s) [RANGE 14 s]",
    ],
)
def test_what_only_comes_stays_from_the_boundary_on_at_which_it_entered(block: str) -> None:
    engine = Engine()
    engine.execute(SCHEMA)
    engine.execute(f"CREATE QUERY n AS SELECT COUNT(*) AS n FROM {block}")
    engine.execute(
        "CREATE QUERY w AS SELECT COUNT(Wstream(v)[RANGE 14 s]) AS n "
        "FROM (SELECT k, v FROM s [RANGE UNBOUNDED SLIDE 3 s]) x"
    )
    engine.ingest("s", [[1, t, t * 1_000_000] for t in (0, 3, 4, 5, 6, 9, 12, 13, 20)])
    engine.heartbeat("s", 24_000_000)
    counts = [1, 4, 5, 6, 8, 7, 5, 4]
    assert [rows for _, rows in told(engine, "n")] == [[(n,)] for n in counts]
    assert told(engine, "w") == told(engine, "n")


# ---------------------------------------------------------------- what was hardly meant


def noted(sql: str) -> tuple[str, ...]:
    """The notes of CREATE QUERY, which EXPLAIN shows too."""
    engine = Engine()
    engine.execute(SCHEMA)
    (done,) = engine.execute(f"CREATE QUERY q AS {sql}")
    (plan,) = engine.execute(f"EXPLAIN {sql}")
    shown = "\n".join(plan.data["plan"].to_pylist())  # type: ignore[union-attr]
    assert all(note in shown for note in done.warnings)  # type: ignore[union-attr]
    return done.warnings  # type: ignore[union-attr, no-any-return]


@pytest.mark.parametrize(
    ("sql", "form"),
    [
        ("SELECT k FROM s [NOW] EVERY 5 s", "[RANGE 5 s]"),
        ("SELECT k FROM s [NOW SLIDE 5 s]", "[RANGE 5 s SLIDE 5 s]"),
        ("SELECT s.k FROM s [RANGE 5 s SLIDE 1 s], t [NOW]", "[RANGE 1 s]"),
        (
            "SELECT k FROM s [NOW] EVERY 1 DAY TIME ZONE 'Europe/Berlin'",
            "[RANGE 1 DAYS SLIDE 1 DAYS TIME ZONE 'Europe/Berlin']",
        ),
        (
            "SELECT k FROM s [RANGE 1 min] WHERE EXISTS (SELECT 1 FROM t [NOW] WHERE t.k = s.k) "
            "EVERY 10 s",
            "[RANGE 10 s]",
        ),
        (
            "SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM s [RANGE 10 s INTERNAL]) [ROWS 5]",
            "[RANGE 10 s INTERNAL SLIDE 10 s]",
        ),
        (
            "SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM s [ROWS 10 INTERNAL]) [ROWS 5]",
            "[ROWS 10 INTERNAL SLIDE 10]",
        ),
    ],
)
def test_what_was_hardly_meant_is_noted_with_the_form_that_was(sql: str, form: str) -> None:
    """Put in the place of the window, the form is taken, and nothing is noted any more."""
    (note,) = (n for n in noted(sql) if "[" in n)
    assert note.endswith(form)
    statement = parse_one(sql)
    found = [w for w in ast.walk(statement) if isinstance(w, ast.Window)]
    (wrong,) = (w for w in found if isinstance(w, ast.NowWindow) or w.internal)
    assert not noted(sql.replace(f"[{written(wrong, sql)}]", form))


def written(window: ast.Window, sql: str) -> str:
    """The window as the text has it."""
    return sql[window.pos.column - 1 :].partition("]")[0]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k FROM s [NOW]",
        "SELECT Istream-restore(k) FROM s [NOW] EVERY 5 s",
        "SELECT COUNT(*) AS n FROM (SELECT Istream(k) FROM s [NOW]) [RANGE 5 s] EVERY 5 s",
        "SELECT s.k FROM s [ROWS 10 SLIDE 5], t [NOW]",
        "SELECT COUNT(*) AS n FROM s [RANGE 5 s INTERNAL]",
        "SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM s [RANGE 5 s SLIDE 5 s INTERNAL]) [ROWS 5]",
    ],
)
def test_nothing_is_noted_where_all_is_seen(sql: str) -> None:
    assert noted(sql) == ()


def test_a_one_time_query_passes_every_over() -> None:
    engine = Engine()
    engine.execute(SCHEMA.replace("BY ts;", "BY ts RETAIN 1 h;"))
    engine.ingest("s", [[1, 2, 0], [2, 3, 1_000_000]])
    engine.heartbeat("s", 7_000_000)
    (rows,) = engine.execute("SELECT k FROM s [RANGE 1 min] ORDER BY k EVERY 5 s")
    assert rows.data["k"].to_pylist() == [1, 2]  # type: ignore[union-attr]


# ---------------------------------------------------------------- what reads a query with EVERY


def told(engine: Engine, name: str) -> list[tuple[int, list[tuple]]]:
    """The answers of a query so far, by boundary."""
    reader = engine.subscribe(name, 0)
    pushed = [(p.at, p.data.to_pylist()) for p in reader.take() if p.kind == "result"]
    return [(at, [tuple(row.values()) for row in rows]) for at, rows in pushed]


def fed(*queries: str) -> Engine:
    engine = Engine()
    engine.execute(SCHEMA)
    for number, sql in enumerate(queries):
        engine.execute(f"CREATE QUERY q{number} AS {sql}")
    engine.ingest("s", [[1, 2, 1_000_000], [2, 3, 4_000_000], [1, 5, 7_000_000]])
    engine.heartbeat("s", 20_000_000)
    return engine


def test_a_reader_is_answered_when_the_query_is() -> None:
    engine = fed(
        "SELECT k, SUM(v) AS v FROM s [RANGE 10 s] GROUP BY k EVERY 5 s",
        "SELECT COUNT(*) AS n, SUM(v) AS v FROM q0",
        "SELECT COUNT(*) AS n, SUM(v) AS v FROM q0 EVERY 5 s",
        "SELECT COUNT(*) AS n, SUM(v) AS v FROM (SELECT k, SUM(v) AS v FROM s [RANGE 10 s] GROUP "
        "BY k) x EVERY 5 s",
        "SELECT WINDOW_END() AS b, COUNT(*) AS n FROM q0",
    )
    second = 1_000_000
    want = [(5 * second, [(2, 5)]), (10 * second, [(2, 10)]), (15 * second, [(1, 5)])]
    assert told(engine, "q1") == told(engine, "q2") == told(engine, "q3")
    assert told(engine, "q1")[:3] == want
    assert told(engine, "q4")[0] == (5 * second, [(5 * second, 2)])


def test_what_enters_a_query_is_read_at_other_boundaries() -> None:
    """The reader of Istream(q0) answers every 10 s over what q0 has appended every 5."""
    sql = "SELECT k, SUM(v) AS v FROM s [RANGE 10 s] GROUP BY k EVERY 5 s"
    engine = fed(sql, "SELECT COUNT(*) AS n FROM Istream(q0) [RANGE 20 s] EVERY 10 s")
    assert told(engine, "q1")[0] == (10_000_000, [(3,)])


WINDOWS = (
    "[RANGE 3 s{}]",
    "[RANGE 1 s{}]",
    "[NOW{}]",
    "[RANGE UNBOUNDED{}]",
    "[RANGE 4 s UNTIL 1 s AGO{}]",
)
READ = (
    "SELECT k, v FROM s {0}",
    "SELECT k, SUM(v) AS v FROM s {0} GROUP BY k",
    "SELECT DISTINCT k, v FROM s {0}",
    "SELECT x.k, y.v FROM s {0} x LEFT JOIN t {0} y ON x.k = y.k",
    "SELECT k, v FROM s {0} WHERE k NOT IN (SELECT k FROM t {0})",
    "SELECT k, v FROM s {0} EXCEPT ALL SELECT k, v FROM t {0}",
)
READERS = (
    "SELECT COUNT(*) AS n, SUM(v) AS v FROM {}(q) x",
    "SELECT k, v FROM {}(q) [RANGE 6 s] x EVERY 3 s",
    "SELECT x.k, y.v FROM (SELECT {}(k, v) FROM q) [ROWS 3] x JOIN t [RANGE 3 s] y ON x.k = y.k",
)


@settings(max_examples=examples(60))
@given(
    st.sampled_from(WINDOWS),
    st.sampled_from(READ),
    st.sampled_from(READERS),
    st.sampled_from(["Istream", "Dstream"]),
    st.lists(st.tuples(st.sampled_from("st"), *[st.integers(0, 3)] * 3), max_size=20),
)
def test_what_enters_and_leaves_a_query_with_every_does_so_as_with_slide(
    window: str, query: str, reader: str, kind: str, steps: list[tuple[str, int, int, int]]
) -> None:
    def of(text: str) -> list[tuple[int, list[tuple]]] | str:
        engine, now = Engine(), 0
        engine.execute(SCHEMA)
        engine.execute(f"CREATE QUERY q AS {text}")
        try:
            engine.execute(f"CREATE QUERY reader AS {reader.format(kind)}")
        except QueryError as refused:
            return refused.code
        for stream, k, v, later in steps:
            now += later * 500_000
            engine.ingest(stream, [[k, v, now]])
        for stream in "st":
            engine.heartbeat(stream, 40_000_000)
        return told(engine, "reader")

    every = f"{query.format(window.format(''))} EVERY 5 s"
    assert of(every) == of(query.format(window.format(" SLIDE 5 s")))


@pytest.mark.parametrize(
    ("kind", "query", "want"),
    [
        ("Dstream", "SELECT k FROM s [RANGE 1 s] EVERY 5 s", [(0, None), (1, 4), (2, 13), (2, 13)]),
        ("Istream", "SELECT k FROM s [ROWS 1] EVERY 5 s", [(1, 4), (2, 13), (3, 26), (3, 26)]),
        ("Dstream", "SELECT k FROM s [ROWS 1] EVERY 5 s", [(0, None), (1, 4), (2, 13), (2, 13)]),
        (
            "Istream",
            "SELECT COUNT(*) AS k FROM (SELECT Istream(k) FROM s [ROWS 1]) EVERY 5 s",
            [(1, 4), (2, 13), (3, 26), (3, 26)],
        ),
    ],
)
def test_what_enters_and_leaves_a_query_with_every_was_in_an_answer(
    kind: str, query: str, want: list[tuple]
) -> None:
    """Its answers are 4, 9, then (of the last row) 13 and 13."""
    engine = Engine()
    engine.execute(SCHEMA)
    engine.execute(f"CREATE QUERY q AS {query}")
    engine.execute(f"CREATE QUERY n AS SELECT COUNT(*) AS n, SUM(k) AS v FROM {kind}(q) x")
    engine.ingest("s", [[k, k, k * 1_000_000] for k in range(1, 14)])
    engine.heartbeat("s", 20_000_000)
    assert told(engine, "n") == [(5_000_000 * (n + 1), [row]) for n, row in enumerate(want)]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT k FROM q0 EVERY 2 s", "DS309"),
        ("SELECT q0.k FROM q0, t [RANGE 5 s SLIDE 1 s]", "DS309"),
        ("SELECT b FROM q1", "DS345"),
    ],
)
def test_a_reader_with_other_boundaries_is_refused(sql: str, code: str) -> None:
    engine = fed(
        "SELECT k, SUM(v) AS v FROM s [RANGE 10 s] GROUP BY k EVERY 5 s",
        "SELECT WINDOW_END() AS b, COUNT(*) AS n FROM s [RANGE 10 s] EVERY 5 s",
    )
    with pytest.raises(QueryError) as caught:
        engine.execute(f"CREATE QUERY q2 AS {sql}")
    assert caught.value.code == code


@pytest.mark.parametrize("output", ["Istream", "Dstream"])
def test_who_says_what_is_appended_is_told_nothing(output: str) -> None:
    block = f"SELECT {output}(COUNT(*) AS n) FROM s [RANGE 10 s]"
    assert not noted(f"SELECT AVG(n) FROM ({block}) [ROWS 5]")
