"""Functions and aggregates in Python: what they answer, what may go wrong in them, and that it goes
wrong for the query alone that calls them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.aggregates.parts.cells import CellRows
from dsms.aggregates.python import PythonAggregate
from dsms.engine import Engine
from dsms.errors import DsmsError, QueryError, UsageError
from dsms.python_functions import Functions, host
from dsms.settings import Settings
from dsms.sql.types import FLOAT
from tests.archive_local import Local
from tests.archives import killed
from tests.effort import examples
from tests.users import declared, told

S = 1_000_000
LONG = 120.0  # seconds that no call of these takes, however busy the machine
STREAM = "CREATE STREAM s (k STRING, x FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;"
SOURCE = '''
import threading
from os import system

import pyarrow as pa
import pyarrow.compute as pc


def half(x):
    return pc.divide(x, 2.0)


def later(t, by):
    return pc.add(t, by)


def total(a, b):
    return [None if x is None or y is None else x + y for x, y in zip(a.to_pylist(), b.to_pylist())]


def hangs(x):
    threading.Event().wait()


def dies(x):
    import os
    os._exit(3)


def eats(x):
    return pa.array([len(bytearray(1 << 40))])


def fails(x):
    if (pc.max(x).as_py() or 0) > 100:
        raise ValueError("too much")
    return x


def few(x):
    return x[:1]


def texts(x):
    return ["a"] * len(x)


def talks(x):
    print("hello")
    return x


class Mean:
    """With what leaves taken out."""

    def lift(self, x):
        return _pairs(x, pa.array([1] * len(x), pa.int64()))

    def combine(self, a, b):
        return _pairs(pc.add(a.field(0), b.field(0)), pc.add(a.field(1), b.field(1)))

    def subtract(self, a, b):
        return _pairs(pc.subtract(a.field(0), b.field(0)), pc.subtract(a.field(1), b.field(1)))

    def lower(self, s):
        return pc.divide(s.field(0), pc.cast(s.field(1), pa.float64()))


def _pairs(total, count):
    return pa.StructArray.from_arrays([total, count], ["total", "count"])


class Last:
    """Of two states the newer one: so it tells whether they come in their order."""

    def lift(self, x, by):
        return x

    def combine(self, a, b):
        return b

    def lower(self, s):
        return s


class Halfway:
    def lift(self, x):
        return x


class Nested:
    def lift(self, x):
        return pa.array([[1.0]] * len(x))

    def combine(self, a, b):
        return a

    def lower(self, s):
        return s
'''
LINE = SOURCE.splitlines().index('        raise ValueError("too much")') + 1
CREATED = """
CREATE FUNCTION half(x FLOAT) RETURNS FLOAT AS PYTHON 'own:half';
CREATE AGGREGATE average(x FLOAT) RETURNS FLOAT AS PYTHON 'own:Mean';
CREATE AGGREGATE latest(x FLOAT, y FLOAT) RETURNS FLOAT AS PYTHON 'own:Last';
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("functions")
    (made / "own.py").write_text(SOURCE)
    yield made
    host.close()


@pytest.fixture
def named(folder: Path) -> Iterator[Functions]:
    """The folder, which other tests may have taken away."""
    found = Functions(str(folder), LONG)
    host.name(found)
    yield found


def engine(named: Functions, text: str = CREATED) -> Engine:
    made = Engine(functions=named)
    made.execute(STREAM + text)
    return made


def feed(made: Engine, count: int = 12, first: int = 0) -> None:
    seconds = range(first, first + count)
    made.ingest("s", [["ab"[t % 2], None if t % 5 == 4 else t * 0.5, t * S] for t in seconds])
    made.heartbeat("s", (first + count) * S)


def asked(made: Engine, sql: str) -> list[tuple]:
    found = made.execute(sql)[-1].data  # type: ignore[union-attr]
    return list(zip(*(c.to_pylist() for c in found.columns), strict=True))


def pushed(made: Engine, query: str) -> list[tuple]:
    pushes = made.subscribe(query, 0).take()
    return [(p.kind, p.at, p.data and p.data.to_pylist()) for p in pushes]


def status(made: Engine, query: str) -> str:
    return next(row[1] for row in asked(made, "SHOW QUERIES") if row[0] == query)


# ---------------------------------------------------------------- what they answer


@pytest.mark.parametrize("window", ["[RANGE 4 s]", "[ROWS 3]", "[RANGE 6 s SLIDE 2 s]"])
def test_a_function_is_what_it_says_in_each_kind_of_query(named: Functions, window: str) -> None:
    made = engine(named)
    for name, y in (("p", "half(x)"), ("h", "x / 2.0")):
        plain = f"SELECT k, {y} AS y FROM s {window} WHERE {y} > 1"
        grouped = f"SELECT {y} AS y, SUM({y}) AS n FROM s {window} GROUP BY {y}"
        made.execute(f"CREATE QUERY {name} AS {plain}; CREATE QUERY g{name} AS {grouped}")
    feed(made)
    for query in ("p", "gp"):
        assert pushed(made, query) == pushed(made, query.replace("p", "h"))
    assert asked(made, "SELECT half(x) FROM s [RANGE 1 h] ORDER BY half(x)") == asked(
        made, "SELECT x / 2 FROM s [RANGE 1 h] ORDER BY x"
    )
    assert asked(made, "SELECT half(3), half(NULL)") == [(1.5, None)]


def test_types_are_those_of_arrow(named: Functions) -> None:
    made = engine(
        named,
        "CREATE FUNCTION later(t TIMESTAMP, d INTERVAL) RETURNS TIMESTAMP AS PYTHON 'own:later';"
        "CREATE FUNCTION total(a DECIMAL(10,2), b DECIMAL(10,2)) RETURNS DECIMAL(12,2) AS "
        "PYTHON 'own:total';",
    )
    feed(made, 2, 1)
    shown = "SELECT later(t, INTERVAL '2' SECOND) AS t FROM s [RANGE 1 h] ORDER BY t"
    assert asked(made, shown) == asked(
        made, "SELECT t + INTERVAL '2' SECOND AS t FROM s [RANGE 1 h] ORDER BY t"
    )
    (found,) = asked(made, "SELECT total(DECIMAL '1.50', 2)")[0]
    assert str(found) == "3.50"


def brute(pairs: list[tuple[str, float | None]]) -> dict[str, float | None]:
    """The mean of each group, from its definition."""
    groups: dict[str, list[float]] = {}
    for k, x in pairs:
        groups.setdefault(k, []).extend([] if x is None else [x])
    return {k: sum(v) / len(v) if v else None for k, v in groups.items()}


ROWS = st.lists(
    st.tuples(st.sampled_from("ab"), st.none() | st.integers(-4, 4).map(float), st.integers(0, 2)),
    min_size=1,
    max_size=20,
)


@settings(max_examples=examples(60), deadline=None)
@given(ROWS, st.sampled_from(["auto", "ws", "ss"]), st.integers(1, 3))
def test_an_aggregate_is_its_definition_by_each_path(
    rows: list[tuple], path: str, periods: int
) -> None:
    made = Engine()
    made.execute(STREAM + CREATED)
    made.execute(
        f"CREATE QUERY p AS SELECT k, average(x) AS m, latest(x, 1.0) AS l FROM s "
        f"[RANGE {2 * periods} s SLIDE 2 s] GROUP BY k WITH (path = {path})"
    )
    made.execute(
        "CREATE QUERY one AS SELECT average(x) FILTER (WHERE x > 0) AS m FROM s "
        "[RANGE 4 s SLIDE 4 s]"
    )
    at, stamped = 0, []
    for k, x, step in rows:
        at += step
        stamped.append((at * S, k, x))
    made.ingest("s", [[k, x, t] for t, k, x in stamped])
    made.heartbeat("s", (at + 20) * S)
    answers = 0
    for kind, bound, found in pushed(made, "p"):
        if kind != "result" or bound is None:
            continue
        inside = [(k, x) for t, k, x in stamped if bound - 2 * periods * S <= t < bound]
        assert {r["k"]: r["m"] for r in found or []} == pytest.approx(brute(inside))
        lasts = {k: x for k, x in inside if x is not None}
        assert {r["k"]: r["l"] for r in found or []} == {k: lasts.get(k) for k, _ in inside}
        answers += 1
    assert answers
    for kind, bound, found in pushed(made, "one"):
        if kind == "result" and bound is not None and found:
            inside = [x for t, _, x in stamped if bound - 4 * S <= t < bound and x is not None]
            some = [x for x in inside if x > 0]
            assert found[0]["m"] == (pytest.approx(sum(some) / len(some)) if some else None)
    once = asked(made, "SELECT k, average(x) FROM s [RANGE 1 h] GROUP BY k")
    assert dict(once) == pytest.approx(brute([(k, x) for _, k, x in stamped]))


@pytest.fixture(scope="module", autouse=True)
def _folder_of_all(folder: Path) -> None:
    host.name(Functions(str(folder), LONG))


def test_states_are_cells_as_of_any_algebra(named: Functions) -> None:
    how = PythonAggregate("own:Mean", (FLOAT,), FLOAT, True)

    def lift(cells: list[int], values: list[float | None]) -> Any:
        order = np.arange(len(cells))
        rows = CellRows(np.array(cells, np.int64), order, order, (pa.array(values, pa.float64()),))
        return how.lift(rows, 3)

    a, b = lift([0, 2, 0], [1.0, 5.0, 2.0]), lift([2, 1], [7.0, None])
    both = how.combine(a, b)
    assert how.lower(both).to_pylist() == [1.5, None, 6.0]
    assert how.lower(how.subtract(both, a)).to_pylist() == [None, None, 7.0]
    assert how.lower(how.take(both, np.array([2, -1, 0]))).to_pylist() == [6.0, None, 1.5]
    stacked = how.concat([how.empty(1), a, b])
    assert how.lower(stacked).to_pylist() == [None, 1.5, None, 5.0, None, None, 7.0]
    assert how.lower(how.combine(how.empty(3), a)).to_pylist() == [1.5, None, 5.0]
    assert how.size(stacked) == 7 and how.nbytes(stacked) > 0
    assert how.lower(how.empty(2)).to_pylist() == [None, None]


def test_an_aggregate_is_asked_for_by_look_up_and_over_archives(
    named: Functions, tmp_path: Path
) -> None:
    made = Engine(settings=Settings(archive=str(tmp_path), archive_runner=Local()), functions=named)
    made.execute(
        "CREATE STREAM s (k STRING, x FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 s "
        "ARCHIVE FOR 1 h UPDATE EVERY 10 s;" + CREATED
    )
    made.execute("CREATE QUERY l AS SELECT average(x) AS m FROM s [RANGE 30 s] ON LOOKUP")
    made.execute("CREATE QUERY b AS SELECT AVG(x) AS m FROM s [RANGE 30 s] ON LOOKUP")
    feed(made, 60)
    assert asked(made, "LOOKUP l")[0] == pytest.approx(asked(made, "LOOKUP b")[0])
    place = "FROM ARCHIVE s [RANGE 1 h] GROUP BY k ORDER BY k"
    assert asked(made, f"SELECT k, average(x), COUNT(half(x)) {place}") == [
        (k, pytest.approx(m), n) for k, m, n in asked(made, f"SELECT k, AVG(x), COUNT(x) {place}")
    ]


def test_a_continuous_query_has_no_sub_windows_for_an_aggregate(named: Functions) -> None:
    made = engine(named)
    problem = told(made, "CREATE QUERY q AS SELECT average(x) FROM s [RANGE 4 s]", None)
    assert problem.startswith("DS331")


# ---------------------------------------------------------------- what may go wrong

ONE = "CREATE FUNCTION one(x FLOAT) RETURNS FLOAT AS PYTHON 'own:{}'"


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("fails", "DS247", f"ValueError: too much (own.py, line {LINE})"),
        ("few", "DS247", "it gave 1 values for"),
        ("texts", "DS247", "it gave string, which is no double"),
        ("dies", "DS248", "ended the process"),
        ("eats", "DS247", "more memory"),
    ],
)
def test_what_goes_wrong_stops_the_query_that_calls(
    named: Functions, name: str, code: str, said: str
) -> None:
    made = engine(named, CREATED + ONE.format(name))
    made.execute("CREATE QUERY q AS SELECT one(x + 200) AS y FROM s [ROWS 20]")
    made.execute("CREATE QUERY fine AS SELECT half(x) AS y FROM s [ROWS 20]")
    feed(made)
    assert status(made, "q").startswith(f"stopped: {code}") and said in status(made, "q")
    assert status(made, "fine") == "running"
    with pytest.raises(QueryError, match=code):
        made.execute("SELECT one(x + 200) FROM s [RANGE 1 h]")
    feed(made, 3, 12)
    assert sum(len(rows or []) for _, _, rows in pushed(made, "fine")) == 14  # one was late


def test_a_function_that_hangs_is_killed(folder: Path) -> None:
    host.name(Functions(str(folder), 0.2))
    made = Engine()
    made.execute(STREAM + CREATED + ONE.format("hangs"))
    made.execute("CREATE QUERY q AS SELECT one(x) AS y FROM s [NOW]")
    feed(made)
    assert status(made, "q").startswith("stopped: DS248")
    assert "took longer than 0.2 s" in status(made, "q")
    host.name(Functions(str(folder), LONG))
    assert asked(made, "SELECT half(4)") == [(2.0,)]


def test_what_a_function_prints_is_no_answer(named: Functions) -> None:
    made = engine(named, ONE.format("talks"))
    assert asked(made, "SELECT one(4)") == [(4.0,)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (ONE.format("nothing"), "DS247"),
        (ONE.format("system"), "DS247"),
        (ONE.format("_pairs"), "DS247"),
        (ONE.format("Mean"), "DS247"),
        (ONE.format("half").replace("own:half", "os:system"), "DS246"),
        (ONE.format("half").replace("own:half", "../own:half"), "DS246"),
        (ONE.format("half").replace("own:half", "own"), "DS246"),
        ("CREATE AGGREGATE a(x FLOAT) RETURNS FLOAT AS PYTHON 'own:half'", "DS247"),
        ("CREATE AGGREGATE a(x FLOAT) RETURNS FLOAT AS PYTHON 'own:Halfway'", "DS247"),
        ("CREATE FUNCTION one(x FLOAT) AS PYTHON 'own:half'", "DS240"),
        ("CREATE FUNCTION one() RETURNS FLOAT AS PYTHON 'own:half'", "DS240"),
        ("SELECT PYTHON('own:half', 'FLOAT')", "DS207"),
        ("SELECT PYTHON('own:half', 'FLAT', 1.0)", "DS207"),
        ("SELECT PYTHON('own:half', 'FLOAT', DISTINCT)", "DS101"),
    ],
)
def test_what_can_not_be(named: Functions, text: str, code: str) -> None:
    assert told(engine(named), text, None).startswith(code)


def test_states_are_plain_columns(named: Functions) -> None:
    made = engine(named, "CREATE AGGREGATE a(x FLOAT) RETURNS FLOAT AS PYTHON 'own:Nested'")
    feed(made)
    assert "plain columns" in told(made, "SELECT a(x) FROM s [RANGE 1 h]", None)


def test_a_source_with_a_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("def f(x):\n    return (\n")
    made = Engine(functions=str(tmp_path))
    problem = told(made, "CREATE FUNCTION f(x INT) RETURNS INT AS PYTHON 'wrong:f'", None)
    assert problem.startswith("DS247") and "wrong.py, line 2" in problem


def test_there_must_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="DS246"):
        Engine(functions=str(tmp_path / "nothing"))


def test_calls_as_they_are_kept_are_for_administrators(named: Functions) -> None:
    made = declared()
    made.execute(CREATED + "GRANT SELECT ON s TO bob")
    assert told(made, "SELECT PYTHON('own:half', 'FLOAT', 1.0) FROM s [NOW]", "bob")[:5] == "DS670"
    assert told(made, "SELECT half(v) FROM s [NOW]", "bob") == ""
    assert told(made, "SELECT PYTHON('own:half', 'FLOAT', 1.0)", None) == ""


# ---------------------------------------------------------------- restarts


@pytest.mark.parametrize("end", [killed, Engine.close])
def test_queries_go_on_after_a_restart(
    named: Functions, tmp_path: Path, end: Callable[[Engine], None]
) -> None:
    queries = (
        "CREATE QUERY q AS SELECT k, half(x) AS y FROM s [RANGE 4 s];"
        "CREATE QUERY p AS SELECT k, average(x) AS m FROM s [RANGE 6 s SLIDE 2 s] GROUP BY k"
    )
    made, twin = Engine(str(tmp_path)), engine(named, CREATED + queries)
    made.execute(STREAM + CREATED + queries)
    for e in (made, twin):
        feed(e)
    end(made)
    made = Engine(str(tmp_path))
    assert made.saver is not None and made.saver.recovered.notes == []
    for e in (made, twin):
        feed(e, 9, 12)
    for query in "qp":
        assert pushed(made, query) == pushed(twin, query)
    made.close()


@pytest.mark.parametrize("end", [killed, Engine.close])
def test_without_the_folder_queries_stop_and_say_what_to_do(
    folder: Path, tmp_path: Path, end: Callable[[Engine], None]
) -> None:
    made = Engine(str(tmp_path))
    made.execute(STREAM + CREATED)
    made.execute(
        "CREATE QUERY q AS SELECT half(x) AS y FROM s [RANGE 4 s];"
        "CREATE QUERY p AS SELECT average(x) AS m FROM s [RANGE 6 s SLIDE 2 s];"
        "CREATE QUERY fine AS SELECT SUM(x) AS y FROM s [RANGE 4 s]"
    )
    feed(made, 3)
    end(made)
    host.close()
    try:
        for _ in range(2):  # it does not come to that again and again
            made = Engine(str(tmp_path))
            assert made.saver is not None
            assert "half: own:half is in no folder of functions" in made.saver.recovered.notes[0]
            feed(made, 9, 3)
            assert status(made, "q").startswith("stopped: DS246")
            assert status(made, "p").startswith("stopped: DS246")
            assert status(made, "fine") == "running"
            end(made)
    finally:
        host.name(Functions(str(folder), LONG))
    made = Engine(str(tmp_path))
    made.execute("RESUME QUERY q; RESUME QUERY p")
    feed(made, 9, 12)
    assert [status(made, q) for q in ("q", "p")] == ["running", "running"]
    made.close()


def test_a_source_that_has_changed_is_noted(tmp_path: Path) -> None:
    sources, data = tmp_path / "functions", tmp_path / "data"
    sources.mkdir()
    (sources / "mine.py").write_text("def f(x):\n    return x\n")
    made = Engine(str(data), functions=str(sources))
    made.execute("CREATE FUNCTION f(x INT) RETURNS INT AS PYTHON 'mine:f'")
    (statement,) = [row[2] for row in asked(made, "SHOW CREATE FUNCTION f")]
    made.close()
    (sources / "mine.py").write_text("def f(x):\n    return x  # the same\n")
    made = Engine(str(data))
    assert made.saver is not None
    assert made.saver.recovered.notes == ["function f: mine.py has changed since it was made"]
    assert "mine.py has changed" in dict(asked(made, "DESCRIBE FUNCTION f"))["source"]
    (done,) = made.execute(statement.replace("CREATE", "CREATE OR REPLACE"))
    assert "is not the one" in done.warnings[0]  # type: ignore[union-attr]
    made.close()
    assert Engine(str(data)).saver.recovered.notes == []  # type: ignore[union-attr]


def test_archives_without_a_server_take_them(named: Functions, tmp_path: Path) -> None:
    from dsms_spark.query import ask

    made = Engine(settings=Settings(archive=str(tmp_path)))
    made.execute(
        "CREATE STREAM s (k STRING, x FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 s "
        "ARCHIVE FOR 1 h UPDATE EVERY 10 s"
    )
    feed(made, 60)
    made.close()
    found = ask(str(tmp_path), CREATED + "SELECT average(x), half(1) FROM ARCHIVE s [RANGE 1 h]")
    answer = Local().run(found.job)
    assert math.isclose(answer.column(0)[0].as_py(), 14.5, rel_tol=0.2)


def test_a_place_is_a_module_and_a_name() -> None:
    with pytest.raises(DsmsError, match="no module:name"):
        host.check("own.half")
