"""Changes of many rows are read, computed and looked up in pieces: others come in between, and they
are there as a whole or not at all."""

from __future__ import annotations

import numpy as np
import pytest

from dsms.api import Cancel
from dsms.commands import change
from dsms.engine import Engine
from dsms.errors import DsmsError, UsageError
from dsms.tables import keys, matching

ROWS = 100
INSERT = "INSERT INTO d SELECT v AS k, name FROM s [RANGE 1 h]"


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(keys, "CODED", 7)


def engine(folder: str | None = None) -> Engine:
    db = Engine(data=folder)
    db.execute(
        "CREATE STREAM s (v INT, name STRING, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h SUBWINDOW "
        "10 ms; CREATE TABLE d (k INT PRIMARY KEY, name STRING)"
    )
    at = np.arange(ROWS)
    db.ingest("s", {"v": at, "name": [f"name {i}" for i in at], "t": at * 1000})
    db.heartbeat("s", 1000 * ROWS)
    return db


def told(db: Engine, sql: str = "SELECT COUNT(*) AS n, MAX(k) AS m FROM d") -> dict:
    (row,) = db.execute(sql)[0].data.to_pylist()
    return row


def played(slices, between=lambda n: None) -> int:
    for n in range(10_000):
        try:
            next(slices)
        except StopIteration:
            return n
        between(n)
    raise AssertionError("no end")


def test_others_see_all_or_nothing():
    db, seen = engine(), []
    steps = played(db.slices(INSERT), lambda n: seen.append(told(db)["n"]))
    assert steps > ROWS // 7
    assert set(seen) <= {0, ROWS} and seen[-1] == ROWS
    assert told(db) == {"n": ROWS, "m": ROWS - 1}


def test_it_is_cancelled_at_any_piece_and_leaves_nothing(tmp_path):
    steps = played(engine().slices(INSERT))
    for stop in range(1, steps - 1, 3):
        folder, cancel = str(tmp_path / str(stop)), Cancel()
        db = engine(folder)

        def between(n, cancel=cancel, stop=stop):
            if n == stop:
                cancel.set()

        with pytest.raises(UsageError, match="DS610"):
            played(db.slices(INSERT, cancel), between)
        assert told(db)["n"] == 0
        db.close()
        db = Engine(data=folder)
        assert told(db)["n"] == 0
        db.execute(INSERT)
        assert told(db)["n"] == ROWS
        db.close()


def test_one_that_is_given_up_leaves_nothing():
    db = engine()
    slices = db.slices(INSERT)
    for _ in range(5):
        next(slices)
    slices.close()
    assert told(db)["n"] == 0
    assert not db.runtime.transactions.waiting()


def test_a_key_that_is_taken_meanwhile_is_refused():
    db = engine()

    def between(n):
        if n == 8:
            db.execute("INSERT INTO d VALUES (50, 'first')")

    with pytest.raises(UsageError, match=r"DS521.* k = 50 is there already"):
        played(db.slices(INSERT), between)
    assert told(db) == {"n": 1, "m": 50}


def test_codes_of_keys_that_are_purged_meanwhile_are_looked_up_again():
    db = engine()
    before = ", ".join(f"({i}, 'x')" for i in range(1000, 3100))
    db.execute(f"INSERT INTO d VALUES {before}")

    def between(n):
        if n == 12:
            db.execute("DELETE FROM d WHERE k >= 1010")
            assert db.runtime.tables["d"]._keys.purged

    played(db.slices(INSERT), between)
    assert told(db) == {"n": ROWS + 10, "m": 1009}
    with pytest.raises(UsageError, match="DS521"):
        db.execute("INSERT INTO d VALUES (99, 'again')")
    db.execute("INSERT INTO d VALUES (1010, 'again')")


def test_what_it_reads_of_tables_is_what_stands_there_when_it_is_done():
    """Two that count rows never find the same number."""
    db = engine()
    db.execute("CREATE TABLE c (n INT PRIMARY KEY)")
    count = "INSERT INTO c SELECT COUNT(*) AS n FROM c"
    first = db.slices(count)
    next(first)
    db.execute(count)
    played(first)
    assert told(db, "SELECT COUNT(*) AS n, MAX(n) AS m FROM c") == {"n": 2, "m": 1}


def test_one_that_is_always_overtaken_is_done_in_one_go():
    db = engine()
    db.execute("CREATE TABLE c (n INT PRIMARY KEY); CREATE TABLE o (k INT)")

    def between(n):
        db.execute("INSERT INTO o VALUES (1)")

    played(db.slices("INSERT INTO c SELECT COUNT(*) AS n FROM o"), between)
    assert told(db, "SELECT COUNT(*) AS n FROM c")["n"] == 1


def test_a_table_that_is_made_anew_meanwhile_is_bound_anew():
    db = engine()

    def between(n):
        if n == 6:
            db.execute("DROP TABLE d; CREATE TABLE d (k FLOAT PRIMARY KEY, name STRING)")

    played(db.slices(INSERT), between)
    assert told(db) == {"n": ROWS, "m": ROWS - 1.0}


@pytest.mark.parametrize("where", ["v / 2", "0"])
def test_keys_that_come_twice_are_told(where):
    db = engine()
    with pytest.raises(UsageError, match=r"DS521.*would come twice"):
        db.execute(f"INSERT INTO d SELECT {where} AS k, name FROM s [RANGE 1 h]")
    assert told(db)["n"] == 0


@pytest.fixture
def filled(monkeypatch):
    monkeypatch.setattr(matching, "MATCHED", 9)
    monkeypatch.setattr(change, "MATCHED", 9)
    db = engine()
    db.execute(INSERT)
    return db


CHANGES = {
    "update": ("UPDATE d SET name = name || 'x' WHERE k % 2 = 0", 50),
    "keys": ("UPDATE d SET k = 99 - k", 100),
    "delete": ("DELETE FROM d WHERE k >= 30", 70),
    "all": ("DELETE FROM d", 100),
}


def rows(db: Engine) -> list:
    return db.execute("SELECT k, name FROM d ORDER BY k")[0].data.to_pylist()


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_many_rows_is_there_as_a_whole(name, filled, monkeypatch):
    sql, count = CHANGES[name]
    whole, seen, before = engine(), [], rows(filled)
    whole.execute(INSERT)
    monkeypatch.setattr(change, "MATCHED", 1 << 30)
    assert f"{count} rows" in whole.execute(sql)[0].message
    monkeypatch.setattr(change, "MATCHED", 9)
    steps = played(filled.slices(sql), lambda n: seen.append(rows(filled)))
    assert steps > 10 and all(found in (before, seen[-1]) for found in seen)
    assert seen[-1] == rows(whole) != before


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_many_rows_is_cancelled_at_any_piece(name, filled):
    before = rows(filled)
    for stop in range(1, 11, 3):
        cancel = Cancel()

        def between(n, cancel=cancel, stop=stop):
            if n == stop:
                cancel.set()

        with pytest.raises(UsageError, match="DS610"):
            played(filled.slices(CHANGES[name][0], cancel), between)
        assert rows(filled) == before


@pytest.mark.parametrize("often", [1, 100])
def test_a_table_that_changes_meanwhile_is_looked_at_again(often, filled):
    done = []

    def between(n):
        if n >= 5 and len(done) < often:
            done.append(n)
            filled.execute(f"INSERT INTO d VALUES ({1000 + 2 * len(done)}, 'new')")

    played(filled.slices(CHANGES["update"][0]), between)
    found = {row["k"]: row["name"] for row in rows(filled)}
    assert all(text.endswith("x") == (k % 2 == 0) for k, text in found.items() if k <= 1000 + 2)
    assert found[1002] == "newx"


def test_a_failing_row_of_a_big_change_leaves_all_as_it_was(filled):
    before = rows(filled)
    with pytest.raises(UsageError, match="DS521"):
        filled.execute("UPDATE d SET k = k / 2")
    with pytest.raises(DsmsError, match="DS70"):
        filled.execute("UPDATE d SET k = 10 / (k - 77)")
    assert rows(filled) == before
