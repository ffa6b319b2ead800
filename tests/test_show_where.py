"""SHOW ... WHERE: rows of the answer; EXPLAIN ANALYZE of a query by its name: what runs."""

from __future__ import annotations

import numpy as np
import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.settings import Settings
from dsms.sql import ast

MADE = """
    CREATE STREAM s (a INT, t TIMESTAMP) TIMESTAMP BY t;
    CREATE STREAM system (b INT);
    CREATE TABLE small (k INT PRIMARY KEY);
    CREATE TABLE big (k INT PRIMARY KEY);
    INSERT INTO big VALUES (1), (2), (3);
    COMMENT ON STREAM s IS 'of the field';
    CREATE QUERY q AS SELECT a, COUNT(*) AS n FROM s [RANGE 10 s] GROUP BY a HAVING COUNT(*) > 1;
    CREATE QUERY r AS SELECT a, COUNT(*) AS n FROM s [RANGE 10 s] GROUP BY a HAVING COUNT(*) > 3;
    CREATE QUERY p AS SELECT COUNT(*) AS n FROM s [RANGE 10 s SLIDE 5 s];
"""


@pytest.fixture(scope="module")
def engine():
    engine = Engine(settings=Settings(timer=iter(range(10**6)).__next__))
    engine.execute(MADE)
    t = (np.arange(100) * 1_000_000).astype("datetime64[us]")
    engine.ingest("s", {"a": np.arange(100) % 3, "t": t})
    return engine


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("STREAMS WHERE accepted > 50", ["s"]),
        ("STREAMS WHERE newest >= TIMESTAMP '1970-01-01 00:01:00'", ["s"]),
        ("STREAMS WHERE comment LIKE '%field' OR kept IS NULL", ["s"]),
        ("STREAMS LIKE 's%' WHERE accepted * 2 < 100 AND NOT stream = 'x'", ["system"]),
        ("TABLES WHERE rows > 1 -- a word of windows is a name here", ["big"]),
        ("TABLES WHERE tables.rows IN (0, 1)", ["small"]),
        ("QUERIES WHERE live_rows > 1", ["q"]),
        ("QUERIES FULL WHERE path = 'SS' AND evaluations > 3", ["p"]),
        ("SETTINGS WHERE UPPER(setting) LIKE 'RETAIN_DEFAULT' AND CAST(value AS INT) > 1",
         ["retain_default"]),
        ("SESSIONS WHERE session > 1", []),
    ],
)  # statements  # fmt: skip
def test_rows_that_meet_the_condition(engine, text, names):
    (found,) = engine.execute(f"SHOW {text}")
    assert found.data.column(0).to_pylist() == names


@pytest.mark.parametrize("kind", ast.ShowKind)
def test_every_kind_takes_a_condition(engine, kind):
    (whole,) = engine.execute(f"SHOW {kind}")
    for condition, rows in (("TRUE", whole.data.num_rows), ("1 > 2 OR NULL", 0)):
        (found,) = engine.execute(f"SHOW {kind} WHERE {condition}")
        assert (found.data.num_rows, found.types) == (rows, whole.types)


@pytest.mark.parametrize(
    ("condition", "code"),
    [("nothing = 1", "DS201"), ("accepted", "DS209"), ("COUNT(*) > 1", "DS301"),
     ("EXISTS (SELECT * FROM s)", "DS320"), ("1 / late > 0", "DS701")],
)  # conditions  # fmt: skip
def test_conditions_that_are_none(engine, condition, code):
    with pytest.raises(DsmsError, match=code):
        engine.execute(f"SHOW STREAMS WHERE {condition}")


def plan(engine, name):
    return engine.execute(f"EXPLAIN ANALYZE {name}")[0].data.column(0).to_pylist()


def test_what_runs_is_told_by_the_name_of_a_query(engine):
    lines = plan(engine, "q")
    assert lines == plan(engine, "QUERY q")
    shared = next(line for line in lines if "GroupBy" in line)
    assert "in 99 (+" in shared and "state 10 rows" in shared and shared.endswith(" ms")
    assert lines[-1].endswith("shared with r")
    assert shared in plan(engine, "r")


def test_a_query_over_synopses_tells_its_answers(engine):
    lines = plan(engine, "p")
    (status,) = engine.execute("SHOW QUERIES FULL LIKE 'p'")[0].data.to_pylist()
    assert f"out {status['result_rows']} state 1 rows" in lines[0]
    assert lines[-1] == f"evaluations: {status['evaluations']}"
