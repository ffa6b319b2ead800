"""Functions and aggregates in Python: what may go wrong in them goes wrong for the query alone that
calls them; what becomes of them after a restart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError, QueryError, UsageError
from dsms.python_functions import Functions, host
from dsms.settings import Settings
from tests.archive_local import Local
from tests.archives import killed
from tests.asking import asked, pushed
from tests.python_folder import (
    CREATED,
    LINE,
    LONG,
    STREAM,
    engine,
    feed,
    own_folder,
    own_functions,
    status,
)
from tests.users import declared, told


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield from own_folder(tmp_path_factory.mktemp("functions"))


@pytest.fixture
def named(folder: Path) -> Functions:
    return own_functions(folder)


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
