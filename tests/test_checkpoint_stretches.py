"""The state is copied for a checkpoint in stretches: SELECTs go in between, and it is the state of
one moment."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import Future

import numpy as np
import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.running.stretches import Stretches
from dsms.settings import Settings
from dsms.storage import frozen
from tests.cancelling import told


class AtOnce:
    """An executor that does at once what it is given."""

    def submit(self, work):
        done = Future()
        try:
            done.set_result(work())
        except DsmsError as error:
            done.set_exception(error)
        return done

    def shutdown(self) -> None: ...


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(frozen, "STRETCH", 1000)
    monkeypatch.setattr(frozen, "MET", 8)


def engine(folder: str) -> Engine:
    db = Engine(data=folder, settings=Settings(checkpoint_bytes=0))
    db.seal_with(AtOnce())
    if not db.runtime.catalog.streams:
        db.execute(
            "CREATE STREAM s (k INT, v INT, name STRING, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h "
            "SUBWINDOW 100 ms; CREATE TABLE d (k INT PRIMARY KEY, name STRING);"
            "INSERT INTO d VALUES (0, 'a'), (1, 'b');"
            "CREATE QUERY q AS SELECT k, COUNT(*) AS n, MAX(v) AS m FROM s [RANGE 1 s] GROUP BY k;"
            "CREATE QUERY p AS SELECT k, SUM(v) AS n FROM s [RANGE 1 s SLIDE 100 ms] GROUP BY k;"
            "CREATE QUERY j AS SELECT s.v, d.name FROM s [RANGE 1 s], d WHERE s.k = d.k"
        )
        fed(db, 0, 1000)
    db.pause_with(lambda: True)
    return db


def fed(db: Engine, first: int, n: int) -> None:
    at = np.arange(first, first + n)
    db.ingest("s", {"k": at % 7, "v": at, "name": [f"n{i}" for i in at], "t": at * 1000})
    while db.turns.behind:
        db.catch_up()


def answers(db: Engine) -> list:
    found = [told(db.subscribe(q, 0)) for q in "qpj"]
    return [*found, db.execute("SELECT COUNT(*) AS n, SUM(v) AS v FROM s [RANGE 1 h]")[0].data]


def begun(db: Engine):
    checkpointer = db.saver.checkpointer
    assert checkpointer.make(wait=False)
    assert checkpointer.copying is not None
    return checkpointer


CHANGES = {
    "rows": lambda db: fed(db, 1000, 50),
    "heartbeat": lambda db: db.heartbeat("s", 10_000_000),
    "end": lambda db: db.end("s"),
    "time": lambda db: db.advance(10_000_000),
    "table": lambda db: db.execute("UPDATE d SET name = 'c' WHERE k = 1"),
    "declared": lambda db: db.execute("CREATE QUERY x AS SELECT v FROM s; DROP QUERY p"),
    "read": lambda db: db.subscribe("q"),
    "answer": lambda db: db.execute("SELECT * FROM q"),
    "tidied": lambda db: db.tidy(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_the_state_in_between_comes_behind_the_checkpoint(name, tmp_path):
    db = engine(str(tmp_path / "db"))
    checkpointer = begun(db)
    for _ in range(10):
        db.execute("SELECT COUNT(*) AS n, MAX(d.name) AS m FROM s [RANGE 1 h], d WHERE s.k = d.k")
    assert checkpointer.copying is not None
    lsn = db.saver.durable.journal.lsn
    CHANGES[name](db)
    while db.catch_up():
        pass
    assert checkpointer.copying is None
    assert db.saver.durable.checkpoints.kept[-1].lsn == lsn
    if name != "end":
        fed(db, 2000, 100)
    copy = shutil.copytree(tmp_path / "db", tmp_path / "copy")  # the engine has died there
    again = engine(str(copy))
    assert again.recovered.checkpoint == lsn
    if name != "declared":
        assert answers(again) == answers(db)
    else:
        assert list(again.runtime.queries) == list(db.runtime.queries)
    for one in (again, db):
        one.close()


def test_it_is_what_a_copy_in_one_go_gives(tmp_path):
    db = engine(str(tmp_path))
    whole = db.saver.checkpointer.copy()()
    checkpointer = begun(db)
    copying = checkpointer.copying
    while not copying.step():
        if copying.count % 20 == 1:
            db.execute("SELECT COUNT(*) AS n FROM s [RANGE 1 h]")
    assert copying.count > 50
    assert [bytes(part) for part in copying.result()()] == [bytes(part) for part in whole]
    assert not db.copy_on()
    db.close()


def test_readers_hear_of_all_that_comes_behind_it(tmp_path):
    db = engine(str(tmp_path))
    reader = db.subscribe("q", 0)
    before = told(reader)
    begun(db)
    fed(db, 1000, 50)
    db.heartbeat("s", 1_060_000)
    assert before + told(reader) == told(db.subscribe("q", 0))
    db.close()


def test_a_state_that_can_not_be_written_down_is_told_and_nothing_stands_still(tmp_path):
    db = engine(str(tmp_path))
    db.runtime.figures["x"] = threading.Lock()
    checkpointer = begun(db)
    while db.copy_on():
        pass
    assert checkpointer.trouble.code == "DS931" and checkpointer.failures == 1
    del db.runtime.figures["x"]
    fed(db, 1000, 50)
    begun(db)
    while db.copy_on():
        pass
    db.saver.checkpointer.settled()
    assert checkpointer.trouble is None and checkpointer.made == 1
    db.close()


def test_stretches_run_only_while_they_are_waited_for():
    seen = []

    def work(rest):
        for n in range(5):
            seen.append(n)
            rest()
        return "done"

    stretches = Stretches(work, lambda: True)
    assert not seen
    assert not stretches.step() and seen == [0]
    assert not stretches.step() and seen == [0, 1]
    assert stretches.result() == "done" and seen == list(range(5))
    assert stretches.step()


def test_an_error_of_a_stretch_comes_with_the_result():
    def work(rest):
        rest()
        raise ValueError("wrong")

    stretches = Stretches(work, lambda: True)
    assert not stretches.step()
    with pytest.raises(ValueError, match="wrong"):
        stretches.result()


class Later(AtOnce):
    """An executor that does nothing yet."""

    def submit(self, work):
        self.work, self.done = work, Future()
        return self.done


def test_what_waits_for_the_disk_is_shown_with_what_is_held(tmp_path):
    """The copies of what changes: rows are held, and counted, where they are."""
    db, later = engine(str(tmp_path)), Later()
    db.seal_with(later)

    def held():
        (rows,) = db.execute("SHOW MEMORY LIKE 'checkpoint'")
        return [line["bytes"] for line in rows.data.to_pylist()]

    assert held() == []
    checkpointer = begun(db)
    while checkpointer.copy_on():
        pass
    (size,) = held()
    assert size > 1000
    later.done.set_result(later.work())
    db.saver.settled()
    assert held() == [] and checkpointer.made == 1
    db.close()
    assert Engine(data=str(tmp_path)).execute("SELECT COUNT(*) FROM s [RANGE 1 h]")


class Budget:
    """All the memory that there is."""

    def bound(self, size):
        return min(size, 1000)

    def lines(self):
        return []


def test_copies_are_bounded_by_a_part_of_the_budget(tmp_path):
    sizes = []
    for memory in (None, Budget()):
        db, later = engine(str(tmp_path / str(memory is None))), Later()
        db.seal_with(later)
        db.runtime.settings.memory = memory
        checkpointer = begun(db)
        while checkpointer.copy_on():
            pass
        sizes.append(db.runtime.durable.packing.held)
        later.done.set_result(later.work())
        db.close()
    assert 2 * sizes[1] < sizes[0]
