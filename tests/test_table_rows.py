"""Rows of which some have keys that are there already: INSERT ... ON CONFLICT, and frames of rows
for a table, held against a dict; over restarts, and as streams see them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms import Engine
from dsms.errors import DsmsError, UsageError
from tests.effort import examples
from tests.recovery_world import World

TABLE = "CREATE TABLE r (k INT, v INT, s STRING NOT NULL, PRIMARY KEY (k)){}"
COLUMNS = ("k", "v", "s")
Row = tuple[int, Any, str]


@dataclass
class Model:
    """A table with key k, row by row."""

    retroactive: bool
    rows: dict[int, Row] = field(default_factory=dict)
    dead: set[int] = field(default_factory=set)

    def insert(self, rows: list[Row], conflict: str) -> str:
        """What the statement does: its reply, or the code of what it raises."""
        after, met, counts = dict(self.rows), set[int](), {"inserted": 0, "updated": 0}
        keys = [row[0] for row in rows]
        if conflict != "DO NOTHING" and len(set(keys)) < len(keys):
            return "DS521"
        if any(k in self.dead for k in keys):
            return "DS522"
        for k, v, s in rows:
            if k not in after:
                after[k], what = (k, v, s), "inserted"
            elif conflict == "":
                return "DS521"
            elif conflict == "DO NOTHING" or k in met:
                continue
            else:
                _, old, text = after[k]
                if "WHERE" in conflict and (old is None or old <= 1):
                    continue
                new = None if old is None or v is None else old * 10 + v
                after[k], what = (k, new, text + s), "updated"
            counts[what] += 1
            met.add(k)
        self.rows = after
        return told(counts["inserted"], counts["updated"], len(rows) - sum(counts.values()))

    def send(self, rows: list[Row], upsert: bool) -> tuple[int, int]:
        """Rows accepted and refused."""
        refused = 0
        for row in rows:
            if row[0] in self.dead or (row[0] in self.rows and not upsert):
                refused += 1
            else:
                self.rows[row[0]] = row
        return len(rows) - refused, refused

    def delete(self, key: int) -> None:
        if self.rows.pop(key, None) is not None and not self.retroactive:
            self.dead.add(key)


def told(inserted: int, updated: int, left: int) -> str:
    parts = [f"{inserted} {'row' if inserted == 1 else 'rows'} inserted"]
    parts += [f"{updated} updated"] if updated else []
    parts += [f"{left} left out"] if left else []
    return ", ".join(parts)


KEYS = st.integers(0, 5)
ROWS = st.lists(
    st.tuples(KEYS, st.none() | st.integers(0, 3), st.sampled_from("ab")), min_size=1, max_size=6
)
UPDATE = "DO UPDATE SET v = r.v * 10 + excluded.v, s = s || excluded.s"
CONFLICTS = st.sampled_from(["", "DO NOTHING", f"(k) {UPDATE}", f"(k) {UPDATE} WHERE v > 1"])
STEPS = st.lists(
    st.tuples(st.just("insert"), ROWS, CONFLICTS)
    | st.tuples(st.just("send"), ROWS, st.booleans())
    | st.tuples(st.just("delete"), KEYS)
    | st.tuples(st.just("crash")),
    max_size=8,
)


def literal(value: Any) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def inserted(engine: Engine, rows: list[Row], conflict: str) -> str:
    values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
    behind = f" ON CONFLICT {conflict}" if conflict else ""
    try:
        (done,) = engine.execute(f"INSERT INTO r VALUES {values}{behind}")
    except DsmsError as problem:
        return problem.code
    return done.message.split(" as of ")[0]


def rows_of(engine: Engine) -> list[tuple]:
    (found,) = engine.execute("SELECT * FROM r ORDER BY k")
    return [tuple(row.values()) for row in found.data.to_pylist()]


@given(st.booleans(), STEPS)
@settings(max_examples=examples(150), deadline=None)
def test_any_changes_leave_what_a_dict_would_hold(
    tmp_path_factory: pytest.TempPathFactory, retroactive: bool, steps: list[tuple]
) -> None:
    model = Model(retroactive)
    world = World(tmp_path_factory.mktemp("data"))
    world.open()
    world.engine.execute(TABLE.format("" if retroactive else " NON RETROACTIVE"))
    if retroactive:
        world.engine.execute("CREATE QUERY q AS SELECT k, v, s FROM r")
    for number, step in enumerate(steps):
        match step:
            case ("insert", rows, conflict):
                assert inserted(world.engine, rows, conflict) == model.insert(rows, conflict)
            case ("send", rows, upsert):
                frame = {"client": "w", "seq": number, "upsert": upsert}
                report = world.engine.ingest("r", rows, **frame)
                assert (report.accepted, report.refused) == model.send(rows, upsert)
            case ("delete", key):
                world.engine.execute(f"DELETE FROM r WHERE k = {key}")
                model.delete(key)
            case _:
                world.crash()
                world.open()
                assert not world.engine.recovered.notes
                if number and steps[number - 1][0] == "send":
                    again = world.engine.ingest(
                        "r", steps[number - 1][1], client="w", seq=number - 1
                    )
                    assert again.repeated
        assert rows_of(world.engine) == sorted(model.rows.values(), key=lambda row: row[0])
    if retroactive:
        (snapshot,) = world.engine.subscribe("q").take()
        answer = zip(*(c.to_pylist() for c in snapshot.data.columns), strict=True)
        assert sorted(answer, key=str) == sorted(model.rows.values(), key=str)
    world.crash()


def test_a_row_that_takes_the_place_of_another_does_so_at_one_instant() -> None:
    engine = Engine()
    engine.execute("CREATE STREAM x (k INT, t TIMESTAMP) TIMESTAMP BY t")
    engine.execute(TABLE.format(" NON RETROACTIVE"))
    engine.execute("CREATE QUERY q AS SELECT x.k, v FROM x, r WHERE x.k = r.k")
    reader = engine.subscribe("q")
    engine.ingest("r", [(1, 1, "a"), (2, 1, "a")])
    for t in range(3):
        engine.ingest("x", [(1, t), (2, t)])
        engine.ingest("r", [(1, 10 + t, "a"), (3, t, "a"), (1, 20 + t, "b")], upsert=True)
    engine.end("x")
    got = [row for push in reader.take() if push.data for row in push.data.to_pylist()]
    assert [(row["k"], row["v"]) for row in got] == [
        (1, 20),
        (2, 1),
        (1, 21),
        (2, 1),
        (1, 22),
        (2, 1),
    ]


def test_a_frame_in_parts_goes_on_behind_a_crash(tmp_path: Any) -> None:
    world = World(tmp_path)
    world.open()
    world.engine.execute(TABLE.format(""))
    rows = [(k % 7, k, "a") for k in range(10)]
    frame = {"client": "w", "seq": 4, "upsert": True}
    world.engine.ingest("r", rows[:6], last=False, **frame)
    world.crash()
    world.open()
    assert world.engine.ingest("r", rows, **frame).accepted == 4
    assert world.engine.ingest("r", rows, **frame).repeated == 1
    assert [v for _, v, _ in rows_of(world.engine)] == [7, 8, 9, 3, 4, 5, 6]
    world.crash()


def test_a_state_that_does_not_say_which_row_has_a_key_is_made_good() -> None:
    engine = Engine()
    engine.execute(TABLE.format(""))
    engine.ingest("r", [(1, 1, "a"), (2, 2, "a")])
    keys = engine.runtime.tables["r"].keys
    keys.version.view[:] = -1
    engine.ingest("r", [(2, 3, "b")], upsert=True)
    assert rows_of(engine) == [(1, 1, "a"), (2, 3, "b")]
    assert sorted(keys.version.view[keys.state.view == 1].tolist()) == [0, 2]


def test_rows_of_a_table_without_keys_are_inserted() -> None:
    engine = Engine()
    engine.execute("CREATE TABLE u (a INT, b INT)")
    assert engine.ingest("u", {"a": [1, 1]}).accepted == 2
    assert engine.ingest("U", {"b": np.arange(3)}).accepted == 3
    for name in ("u", "x"):
        engine.execute("CREATE STREAM IF NOT EXISTS x (a INT)")
        with pytest.raises(UsageError, match="DS440"):
            engine.ingest(name, {"a": [1]}, upsert=True)
    with pytest.raises(UsageError, match=r"DS501: table u has no column"):
        engine.ingest("u", {"c": [1]})


def test_what_is_refused_is_told_by_reason() -> None:
    engine = Engine()
    engine.execute(TABLE.format(" NON RETROACTIVE"))
    engine.ingest("r", [(1, 1, "a"), (2, 1, "a")])
    engine.execute("DELETE FROM r WHERE k = 1")
    report = engine.ingest("r", [(3, 1, None), (1, 1, "a"), (2, 1, "a"), (4, 1, "a"), (4, 2, "a")])
    assert (report.accepted, report.refused) == (1, 4)
    assert report.reasons == (
        "1 row refused (NULL in a NOT NULL column): row 0: column s: NULL",
        "1 row refused (the key may not come again): row 1: table r: key k = 1",
        "1 row refused (the key is there already): row 2: table r: key k = 2",
        "1 row refused (the key comes twice): row 4: table r: key k = 4",
    )
    assert [(why, at.tolist()) for why, at in report.positions][1:] == [
        ("the key may not come again", [1]),
        ("the key is there already", [2]),
        ("the key comes twice", [4]),
    ]


def test_rights_of_rows_and_of_conflicts() -> None:
    engine = Engine()
    engine.execute(TABLE.format(""))
    engine.execute("CREATE USER ann PASSWORD 'a long one'; GRANT INSERT ON r TO ann")
    engine.check_request("ann", "ingest", "r")
    engine.execute("INSERT INTO r VALUES (1, 1, 'a') ON CONFLICT DO NOTHING", user="ann")
    update = "INSERT INTO r VALUES (1, 1, 'a') ON CONFLICT (k) DO UPDATE SET v = excluded.v"
    with pytest.raises(UsageError, match="DS670"):
        engine.execute(update, user="ann")
    engine.execute("GRANT SELECT ON r TO ann")
    engine.execute(update, user="ann")
    engine.execute("CREATE USER bob PASSWORD 'a long one'")
    with pytest.raises(UsageError, match="DS401"):
        engine.check_request("bob", "ingest", "r")
    engine.execute("GRANT SELECT ON r TO bob")
    with pytest.raises(UsageError, match="DS670"):
        engine.check_request("bob", "ingest", "r")
