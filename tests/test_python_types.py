"""What functions and aggregates in Python give: states whose types change, and what is no value of
the type that was declared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dsms.engine import Engine
from dsms.errors import QueryError
from dsms.python_functions import host
from tests.asking import asked, pushed
from tests.effort import thinned
from tests.python_folder import S, status

SOURCE = """
import pyarrow as pa


class _Largest:
    def combine(self, a, b):
        return self.of([
            y if x is None else x if y is None else max(x, y)
            for x, y in zip(a.to_pylist(), b.to_pylist())
        ])

    def of(self, values):
        return pa.array(values)

    def lower(self, s):
        return pa.array(s.to_pylist(), pa.float64())


class Missing(_Largest):
    "NULLs alone first, then integers."

    def lift(self, x):
        return self.of([None if v < 2 else int(v) for v in x.to_pylist()])


class Growing(_Largest):
    "Integers first, then floats."

    def lift(self, x):
        return self.of([int(v) if v < 2 else v + 0.5 for v in x.to_pylist()])


class Mixed(_Largest):
    "Integers first, then texts."

    def lift(self, x):
        return pa.array([int(v) if max(x.to_pylist()) < 2 else str(v) for v in x.to_pylist()])


class Columns(_Largest):
    "A column first, then two."

    def combine(self, a, b):
        return b

    def lift(self, x):
        if max(x.to_pylist()) < 2:
            return x
        return pa.StructArray.from_arrays([x, x], ["a", "b"])
"""
WINDOWS = ("[RANGE 10 s SLIDE 2 s]", "[RANGE 2 s]", "[ROWS 3]", "[UNBOUNDED]")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Engine]:
    (tmp_path / "own.py").write_text(SOURCE)
    engine = Engine(functions=str(tmp_path))
    engine.execute("CREATE STREAM s (k STRING, x FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h")
    yield engine
    host.close()


def _feed(made: Engine, single: bool) -> None:
    rows = [["a", float(t), t * S] for t in range(4)]
    for part in [[row] for row in rows] if single else [rows]:
        made.ingest("s", part)
        made.heartbeat("s", part[-1][2] + S - 1)


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize(
    ("name", "largest"), [("Missing", {None, 2.0, 3.0}), ("Growing", {0.0, 1.0, 2.5, 3.5})]
)
def test_states_of_other_types_are_brought_to_a_common_one(
    made: Engine, name: str, largest: set[float | None], single: bool
) -> None:
    made.execute(f"CREATE AGGREGATE a(x FLOAT) RETURNS FLOAT AS PYTHON 'own:{name}'")
    for i, window in enumerate(WINDOWS):
        made.execute(f"CREATE QUERY q{i} AS SELECT a(x) AS y FROM s {window} GROUP BY k")
    _feed(made, single)
    for i in range(len(WINDOWS)):
        assert status(made, f"q{i}") == "running"
        got = [r["y"] for _, _, rows in pushed(made, f"q{i}") for r in rows or []]
        assert got and set(got) <= largest and max(v for v in got if v is not None) > 1.0
    (answer,) = asked(made, "SELECT a(x) FROM s [RANGE 1 h]")
    assert answer == (max(v for v in largest if v is not None),)


@thinned()
@pytest.mark.parametrize(
    ("name", "said"),
    [("Mixed", "int64 and string"), ("Columns", "unlike columns: (a, b) and (state)")],
)
@pytest.mark.parametrize("window", WINDOWS)
def test_states_without_a_common_type_stop_the_query(
    made: Engine, name: str, said: str, window: str
) -> None:
    made.execute(f"CREATE AGGREGATE a(x FLOAT) RETURNS FLOAT AS PYTHON 'own:{name}'")
    made.execute(f"CREATE QUERY q AS SELECT a(x) AS y FROM s {window} GROUP BY k")
    _feed(made, True)
    assert status(made, "q").startswith("stopped: DS247") and said in status(made, "q")


# ---------------------------------------------------------------- results

RESULTS = """
import pyarrow as pa

FAR = pa.array([2**62], pa.int64())
ENDS = pa.py_buffer(b"\\x00\\x00\\x00\\x00\\x02\\x00\\x00\\x00")
BROKEN = pa.Array.from_buffers(pa.string(), 1, [None, ENDS, pa.py_buffer(b"a\\xff")])


def _gives(value):
    def function(x):
        return pa.concat_arrays([value] * len(x))
    return function


def _named(name, value):
    class Always:
        def lift(self, x):
            return x

        def combine(self, a, b):
            return b

        def lower(self, s):
            return pa.concat_arrays([value] * len(s))

    for key, found in ((name, _gives(value)), (name.title(), Always)):
        found.__module__, found.__name__ = __name__, key
        globals()[key] = found


_named("words", pa.array(["not json"]))
_named("half", pa.array(['["a']))
_named("texts", pa.array(['["a"]']))
_named("tight", pa.array(["[1,2]"]))
_named("far", FAR.cast(pa.timestamp("us", "UTC")))
_named("broken", BROKEN)
"""


@pytest.fixture
def gives(tmp_path: Path) -> Iterator[Engine]:
    (tmp_path / "results.py").write_text(RESULTS)
    engine = Engine(functions=str(tmp_path))
    engine.execute("CREATE STREAM s (x INT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h")
    engine.ingest("s", [[1, S]])
    engine.heartbeat("s", 2 * S)
    yield engine
    host.close()


def _declare(made: Engine, name: str, type_: str) -> None:
    for what, place in (("FUNCTION f", name), ("AGGREGATE a", name.title())):
        made.execute(f"CREATE {what}(x INT) RETURNS {type_} AS PYTHON 'results:{place}'")


@pytest.mark.parametrize(
    ("name", "type_", "said"),
    [
        ("words", "LIST(INT)", "'not json', which is no LIST"),
        ("half", "LIST(STRING)", "which is no LIST"),
        ("texts", "LIST(INT)", "which is no LIST"),
        ("far", "TIMESTAMP", "outside the years 0001-9999"),
        ("broken", "STRING", "no valid array"),
    ],
)
def test_what_is_no_value_of_the_type_is_refused(
    gives: Engine, name: str, type_: str, said: str
) -> None:
    _declare(gives, name, type_)
    for call in ("f", "a"):
        with pytest.raises(QueryError, match=f"DS247.*{said}"):
            gives.execute(f"SELECT {call}(x) FROM s [RANGE 1 h]")


def test_lists_are_written_in_the_one_way(gives: Engine) -> None:
    _declare(gives, "tight", "LIST(INT)")
    for call in ("f", "a"):
        assert asked(gives, f"SELECT {call}(x) = [1, 2] FROM s [RANGE 1 h]") == [(True,)]


def test_aggregates_take_lists(gives: Engine) -> None:
    """As their JSON text, as functions do."""
    gives.execute("CREATE AGGREGATE a(l LIST(INT)) RETURNS LIST(INT) AS PYTHON 'results:Tight'")
    assert asked(gives, "SELECT a([x]) = [1, 2] FROM s [RANGE 1 h]") == [(True,)]
