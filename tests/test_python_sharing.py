"""Queries over the same windows share synopses, but no faults of functions in Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dsms.engine import Engine
from dsms.python_functions import host
from tests.asking import asked
from tests.python_folder import S, status

SOURCE = """
def odd(x):
    if 3.0 in x.to_pylist():
        raise ValueError("three")
    return x


class Odd:
    def lift(self, x):
        return odd(x)

    def combine(self, a, b):
        return b

    def lower(self, s):
        return s
"""
CREATED = """
CREATE STREAM s (k STRING, x FLOAT, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
CREATE STREAM r (k STRING, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h;
CREATE FUNCTION odd(x FLOAT) RETURNS FLOAT AS PYTHON 'odd:odd';
CREATE AGGREGATE odds(x FLOAT) RETURNS FLOAT AS PYTHON 'odd:Odd';
"""
JOIN = "FROM s [RANGE {} s SLIDE 2 s] s JOIN r [RANGE {} s] r ON s.k = r.k GROUP BY s.k"
ALONE = "FROM s [RANGE {} s SLIDE 2 s] {} GROUP BY k"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Engine]:
    (tmp_path / "odd.py").write_text(SOURCE)
    engine = Engine(functions=str(tmp_path))
    engine.execute(CREATED)
    yield engine
    host.close()


def _fed(made: Engine) -> None:
    made.ingest("r", [["a", t * S] for t in range(8)])
    made.ingest("s", [["a", float(t), t * S] for t in range(8)])
    for stream in "rs":
        made.heartbeat(stream, 8 * S)


@pytest.mark.parametrize("first", ["mine", "others"])
@pytest.mark.parametrize(
    ("mine", "others"),
    [
        ("SELECT odds(x) AS y " + ALONE.format(10, ""), "SELECT COUNT(*) AS y " + ALONE),
        ("SELECT SUM(odd(x)) AS y " + ALONE.format(10, ""), "SELECT SUM(x) AS y " + ALONE),
        ("SELECT SUM(x) FILTER (WHERE odd(x) > 0.0) AS y " + ALONE.format(10, ""),
         "SELECT SUM(x) AS y " + ALONE),
        ("SELECT odds(s.x) AS y " + JOIN.format(10, 10), "SELECT COUNT(*) AS y " + JOIN),
    ],
)  # a table  # fmt: skip
def test_a_fault_in_python_stops_no_query_without_it(
    made: Engine, mine: str, others: str, first: str
) -> None:
    queries = {"mine": mine, "others": others.format(10, "10"), "shorter": others.format(4, "4")}
    if "JOIN" not in others:
        queries |= {"others": others.format(10, ""), "shorter": others.format(4, "")}
    for name in sorted(queries, key=lambda n: n != first):
        made.execute(f"CREATE QUERY {name} AS {queries[name]}")
    _fed(made)
    assert status(made, "mine").startswith("stopped: DS247") and "three" in status(made, "mine")
    assert [status(made, q) for q in ("others", "shorter")] == ["running", "running"]


def test_queries_with_the_same_calls_share_them(made: Engine) -> None:
    for name, length in (("mine", 10), ("yours", 4)):
        made.execute(f"CREATE QUERY {name} AS SELECT odds(x) AS y {ALONE.format(length, '')}")
    shared = asked(made, "SHOW SHARING")
    assert any("mine" in str(row) and "yours" in str(row) for row in shared)
