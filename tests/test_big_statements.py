"""A big statement is read, bound and computed in pieces: others come in between, and it can be
cancelled."""

from __future__ import annotations

import pytest

from dsms.api import Cancel
from dsms.engine import Engine
from dsms.errors import QueryError, UsageError
from dsms.sql.parser import TOKENS, parse_one, parse_piece, parsing_piece
from dsms.sql.script import pieces

ROWS = 1000
INSERT = "INSERT INTO d VALUES " + ", ".join(f"({i}, 'name {i}')" for i in range(ROWS))


def engine_with_table() -> Engine:
    engine = Engine()
    engine.execute("CREATE TABLE d (k INT PRIMARY KEY, name STRING)")
    return engine


def steps_of(generator) -> int:
    steps = 0
    while True:
        try:
            next(generator)
        except StopIteration:
            return steps
        steps += 1


def test_a_statement_is_parsed_in_pieces():
    (piece,) = pieces(INSERT)
    tokens = ROWS * 6
    assert steps_of(parsing_piece(piece)) >= tokens // TOKENS
    assert parse_piece(piece) == parse_one(INSERT)


def test_rows_come_in_between_and_all_are_there():
    engine = engine_with_table()
    slices = engine.slices(INSERT)
    for _ in range(20):
        next(slices)
        assert engine.execute("SELECT COUNT(*) AS n FROM d")[0].data.to_pylist() == [{"n": 0}]
    assert steps_of(slices) > ROWS // 64
    found = engine.execute("SELECT COUNT(*) AS n, MAX(k) AS m FROM d")[0].data.to_pylist()
    assert found == [{"n": ROWS, "m": ROWS - 1}]


def test_it_is_cancelled_at_any_piece():
    steps = steps_of(engine_with_table().slices(INSERT))
    for stop in range(1, steps, 7):
        engine, cancel = engine_with_table(), Cancel()
        slices = engine.slices(INSERT, cancel)
        for _ in range(stop):
            next(slices)
        cancel.set()
        with pytest.raises(UsageError, match="DS610"):
            steps_of(slices)
        assert engine.execute("SELECT COUNT(*) AS n FROM d")[0].data.to_pylist() == [{"n": 0}]


def test_a_table_that_is_made_anew_meanwhile_is_bound_anew():
    engine = engine_with_table()
    slices = engine.slices(INSERT)
    for _ in range(25):
        next(slices)
    engine.execute("DROP TABLE d; CREATE TABLE d (k FLOAT PRIMARY KEY, name STRING)")
    steps_of(slices)
    assert engine.execute("SELECT MAX(k) AS m FROM d")[0].data.to_pylist() == [{"m": ROWS - 1.0}]


@pytest.mark.parametrize(
    "wrong", ["(1, 2, 3)", "('x', 'y')", "(1 'y')", "(99999999999999999999, 'y')", "(k, 'y')"]
)
@pytest.mark.parametrize("place", [0, 70, ROWS - 1])
def test_a_mistake_is_said_at_its_place(wrong, place):
    rows = [f"\n({i}, 'name {i}')" for i in range(ROWS)]
    rows[place] = f"\n{wrong}"
    with pytest.raises(QueryError) as caught:
        engine_with_table().execute("INSERT INTO d VALUES " + ", ".join(rows))
    assert caught.value.line in (place + 2, place + 3)
