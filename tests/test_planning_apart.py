"""A big statement is planned apart from the engine: others come in between, it can be cancelled
there, and a catalog that has changed meanwhile is planned for anew."""

from __future__ import annotations

import pytest

from dsms.api import Cancel
from dsms.commands.planning import TRIES
from dsms.engine import Engine
from dsms.errors import QueryError, UsageError

CASES = " ".join(f"WHEN v = {i} THEN v" for i in range(300))
BIG = f"SELECT CASE {CASES} END AS x FROM s [RANGE 1 h]"
JOIN = "SELECT " + "a0.v AS x FROM " + ", ".join(f"s [RANGE 1 h] AS a{i}" for i in range(5))


def engine(kind: str = "INT") -> Engine:
    made = Engine()
    made.execute(f"CREATE STREAM s (v {kind}, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h")
    made.ingest("s", {"v": [2], "t": [1]})
    made.heartbeat("s", 2)
    return made


def planning(slices):
    """The statement, once it is to be planned."""
    while not (statement := next(slices)).ready:
        pass
    return statement


def rest(slices):
    while True:
        try:
            next(slices)
        except StopIteration as end:
            return end.value


class Counted(Cancel):
    """Cancelled from the n-th look on."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after

    def check(self) -> None:
        self.after -= 1
        if self.after == 0:
            self.set()
        super().check()


@pytest.mark.parametrize("sql", [BIG, JOIN])
def test_others_come_in_before_and_while_it_is_planned(sql):
    db = engine()
    slices = db.slices(sql)
    statement = planning(slices)
    assert db.execute("SELECT COUNT(*) AS n FROM s [RANGE 1 h]")[0].data.to_pylist() == [{"n": 1}]
    statement.run()
    db.ingest("s", {"v": [3], "t": [3]})
    db.heartbeat("s", 4)
    found = rest(slices)[0].data.to_pylist()
    assert found == db.execute(sql)[0].data.to_pylist()


def test_a_small_one_is_planned_at_once():
    statement = next(engine().slices("SELECT v FROM s [RANGE 1 h]"))
    assert statement.bound.schema[0].name == "v"


def test_it_is_cancelled_while_it_is_bound_and_rewritten():
    looks = Counted(1 << 40)
    assert engine().execute(BIG, cancel=looks)
    assert (1 << 40) - looks.after > 600
    for part in (0.2, 0.5, 0.9):
        with pytest.raises(UsageError, match="DS610"):
            engine().execute(BIG, cancel=Counted(int(part * ((1 << 40) - looks.after))))


def test_what_is_declared_anew_meanwhile_is_planned_for_anew():
    db = engine()
    slices = db.slices(BIG)
    for kind in ("FLOAT", "INT", "FLOAT")[:TRIES]:
        planning(slices).run()
        db.execute(
            f"DROP STREAM s; CREATE STREAM s (v {kind}, t TIMESTAMP) TIMESTAMP BY t RETAIN 1 h"
        )
        db.ingest("s", {"v": [1], "t": [1]})
        db.heartbeat("s", 2)
    found = rest(slices)[0]
    assert found.types == ("FLOAT",)
    assert found.data.to_pylist() == [{"x": 1.0}]


def test_a_mistake_is_told_where_it_is_planned():
    slices = engine().slices(BIG.replace("WHEN v = 7 ", "WHEN w = 7 "))
    planning(slices).run()
    with pytest.raises(Exception, match="DS2"):
        rest(slices)


def test_what_is_dropped_meanwhile_is_missed():
    db = engine()
    slices = db.slices(BIG)
    planning(slices).run()
    db.execute("DROP STREAM s")
    planning(slices)
    with pytest.raises(Exception, match="DS203"):
        rest(slices)


def test_rights_that_are_taken_meanwhile_are_gone():
    db = engine()
    db.execute("CREATE USER u PASSWORD 'long enough 1'; GRANT SELECT ON s TO u")
    slices = db.slices(BIG, user="u")
    planning(slices).run()
    db.execute("REVOKE SELECT ON s FROM u")
    with pytest.raises(Exception, match="DS"):
        rest(slices)


def test_a_join_of_too_many_relations_is_refused():
    engine = Engine()
    engine.execute("CREATE TABLE small (k INT)")
    many = ", ".join(f"small s{k}" for k in range(300))
    where = " AND ".join(f"s{k}.k = s{k + 1}.k" for k in range(299))
    with pytest.raises(QueryError) as problem:
        engine.execute(f"SELECT COUNT(*) AS n FROM {many} WHERE {where}")
    assert problem.value.code == "DS105"
