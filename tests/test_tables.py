"""Tables with versions, against a reference that replays the list of changes for every question."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.engine import Engine
from dsms.errors import UsageError
from dsms.sql.catalog import TableDef
from dsms.sql.types import (
    ALWAYS,
    BEFORE_ROWS,
    FLOAT,
    FOREVER,
    INT,
    MAX_INSTANT,
    STRING,
    Field,
    decimal,
)
from dsms.tables.changes import Change
from dsms.tables.versioned import VersionedTable
from tests.effort import examples
from tests.table_changes import deleting, updating

SCHEMA = (Field("k", INT), Field("v", STRING))
PLAIN = TableDef("r", SCHEMA)
KEYED = TableDef("r", SCHEMA, key=(0,))
FROZEN = TableDef("r", SCHEMA, key=(0,), retroactive=False)
FREE_NRR = TableDef("r", SCHEMA, retroactive=False)


def cols(rows: list[tuple[Any, Any]]) -> list[pa.Array]:
    return [pa.array([k for k, _ in rows], pa.int64()), pa.array([v for _, v in rows], pa.string())]


def key_is(k: int) -> Any:
    return lambda c, n: pc.equal(c[0], k)


def const(value: Any, type_: pa.DataType) -> Any:
    return lambda c, n: pa.array([value] * n, type_)


def insert(table: VersionedTable, at: int, *rows: tuple[Any, Any]) -> Change:
    change = table.inserting(cols(list(rows)), at)
    table.apply(change)
    return change


def rows_of(batch: Any) -> list[tuple]:
    columns = [c.to_pylist() for c in batch.cols]
    return list(
        zip(batch.ts.tolist(), batch.signs().tolist(), batch.ids[0].tolist(), *columns, strict=True)
    )


def current(table: VersionedTable) -> list[tuple]:
    return [row[3:] for row in rows_of(table.state())]


# -- statements ------------------------------------------------------------------------------------


def test_insert_update_delete() -> None:
    t = VersionedTable(KEYED)
    insert(t, 10, (1, "a"), (2, "b"), (3, None))
    change = updating(t, {1: const("B", pa.string())}, key_is(2), 20)
    assert current(t) == [(1, "a"), (2, "b"), (3, None)]  # prepared only
    t.apply(change)
    assert change.rows == 1 and current(t) == [(1, "a"), (3, None), (2, "B")]
    change = deleting(t, lambda c, n: pc.equal(c[1], "a"), 30)  # NULL is not true
    t.apply(change)
    assert change.rows == 1 and current(t) == [(3, None), (2, "B")] and len(t) == 2
    assert rows_of(t.state(10)) == [
        (ALWAYS, 1, 0, 1, "a"),
        (ALWAYS, 1, 1, 2, "b"),
        (ALWAYS, 1, 2, 3, None),
    ]
    t.apply(deleting(t, None, 40))
    assert len(t) == 0 and t.last_change == 40
    t.apply(deleting(t, None, 50))  # changes nothing, not even the instant of the last change
    assert t.last_change == 40


@pytest.mark.parametrize(
    ("rows", "code", "part"),
    [
        ([(7, "x"), (1, "y")], "DS521", "table r: key k = 1 is there already; nothing was changed"),
        ([(7, "x"), (8, "y"), (7, "z")], "DS521", "key k = 7 would come twice"),
        ([(7, "x"), (None, "y")], "DS520", "column k is PRIMARY KEY and can't be NULL"),
    ],
)
def test_a_failing_insert_leaves_nothing(rows: Any, code: str, part: str) -> None:
    t = VersionedTable(KEYED)
    insert(t, 10, (1, "a"))
    with pytest.raises(UsageError) as err:
        t.inserting(cols(rows), 20)
    assert err.value.code == code and part in err.value.message
    assert current(t) == [(1, "a")]
    insert(t, 20, (7, "x"), (8, "y"))


def test_updates_of_keys_are_judged_as_a_whole() -> None:
    t = VersionedTable(KEYED)
    insert(t, 10, (1, "a"), (2, "b"), (3, "c"))
    t.apply(updating(t, {0: lambda c, n: pc.add(c[0], 1)}, None, 20))
    assert current(t) == [(2, "a"), (3, "b"), (4, "c")]
    with pytest.raises(UsageError, match="key k = 4 is there already"):
        updating(t, {0: const(4, pa.int64())}, key_is(2), 30)
    with pytest.raises(UsageError, match="key k = 9 would come twice"):
        updating(t, {0: const(9, pa.int64())}, None, 30)
    with pytest.raises(UsageError, match="DS520"):
        updating(t, {0: const(None, pa.int64())}, None, 30)


def test_a_deleted_key_of_a_non_retroactive_table_is_never_used_again() -> None:
    t = VersionedTable(FROZEN)
    insert(t, 10, (1, "a"), (2, "b"))
    t.apply(updating(t, {1: const("A", pa.string())}, key_is(1), 20))  # keeps its key
    t.apply(deleting(t, key_is(2), 30))
    with pytest.raises(UsageError) as err:
        t.inserting(cols([(2, "again")]), 40)
    assert err.value.code == "DS522" and "without NON RETROACTIVE" in str(err.value)
    t.apply(updating(t, {0: const(5, pa.int64())}, key_is(1), 40))  # key 1 goes, key 5 comes
    for key in (1, 2):
        with pytest.raises(UsageError, match="DS522"):
            t.inserting(cols([(key, "again")]), 50)
    with pytest.raises(UsageError, match="DS522"):
        updating(t, {0: const(2, pa.int64())}, None, 50)
    insert(t, 50, (6, "new"))
    with pytest.raises(UsageError, match="DS521"):  # not even exchanged
        updating(t, {0: lambda c, n: pc.subtract(11, c[0])}, None, 60)
    retro = VersionedTable(KEYED)
    insert(retro, 10, (1, "a"))
    retro.apply(deleting(retro, None, 20))
    insert(retro, 30, (1, "again"))


def test_not_null_columns_and_other_key_types() -> None:
    schema = (Field("a", FLOAT), Field("d", decimal(5, 2)), Field("s", STRING, nullable=False))
    t = VersionedTable(TableDef("r", schema, key=(0, 1)))

    def row(a: float, d: str, s: str | None) -> list[pa.Array]:
        return [pa.array([a]), pa.array([d]).cast(pa.decimal128(5, 2)), pa.array([s], pa.string())]

    t.apply(t.inserting(row(0.0, "1.50", "x"), 1))
    with pytest.raises(UsageError, match=r"key a, d = -0\.0, Decimal"):
        t.inserting(row(-0.0, "1.5", "y"), 2)
    t.apply(t.inserting(row(0.0, "1.51", "y"), 2))
    with pytest.raises(UsageError, match="column s is NOT NULL"):
        t.inserting(row(1.0, "1", None), 2)


def test_when_a_change_happens() -> None:
    t = VersionedTable(KEYED)
    assert t.instant(None, ALWAYS, None) == ALWAYS
    assert t.instant(None, 50, None) == ALWAYS  # the first rows hold from the beginning
    assert t.instant(None, 50, 40) == 41  # ... unless answers were given
    assert t.instant(None, 50, ALWAYS) == BEFORE_ROWS  # ... before all rows
    assert t.instant(None, 50, BEFORE_ROWS) == BEFORE_ROWS + 1 and t.instant(20, 50, None) == 20
    insert(t, 20, (0, "a"))
    assert t.instant(None, ALWAYS, None) == 20 and t.instant(None, 50, None) == 50
    assert t.instant(None, 50, 60) == 61  # a heartbeat went ahead of the rows
    insert(t, 100, (1, "a"))
    assert t.instant(None, 50, 60) == 100 and t.instant(100, 50, 99) == 100
    for at, completed, part in (
        (99, None, "it changed at"),
        (150, 150, "answers up to"),
        (2**62, 0, "0001-9999"),
    ):
        with pytest.raises(UsageError) as err:
            t.instant(at, 50, completed)
        assert err.value.code == "DS523" and part in err.value.message


# -- reading ---------------------------------------------------------------------------------------


def test_the_log_follows_and_a_brief_version_is_not_told() -> None:
    t = VersionedTable(KEYED)
    insert(t, ALWAYS, (1, "a"))
    cursor = t.cursor()
    insert(t, 10, (2, "b"))
    t.apply(deleting(t, key_is(2), 10))
    t.apply(updating(t, {1: const("A", pa.string())}, key_is(1), 10))
    insert(t, 20, (3, "c"))
    assert t.next_change(cursor) == 10
    batch, cursor = t.changes(cursor, 15)
    assert (
        rows_of(batch) == [(10, -1, 0, 1, "a"), (10, 1, 2, 1, "A")] and t.next_change(cursor) == 20
    )
    batch, cursor = t.changes(cursor, 100)
    assert rows_of(batch) == [(20, 1, 3, 3, "c")] and t.next_change(cursor) == FOREVER
    assert rows_of(t.changes(cursor, 100)[0]) == []


def test_a_reader_that_knew_a_row_is_told_of_its_end_in_the_same_instant() -> None:
    t = VersionedTable(KEYED)
    insert(t, ALWAYS, (1, "a"))
    cursor = t.cursor()
    t.apply(deleting(t, None, ALWAYS))
    assert rows_of(t.changes(cursor, 0)[0]) == [(ALWAYS, -1, 0, 1, "a")]


def test_probe_without_keys_and_with_nulls() -> None:
    t = VersionedTable(PLAIN)
    insert(t, 10, (1, "a"), (None, "n"), (1, "b"))
    rows, versions = t.probe([], (), np.array([9, 10]))
    assert (rows.tolist(), versions.tolist()) == ([1, 1, 1], [0, 1, 2])
    rows, versions = t.probe([pa.array([1, None, 2])], (0,), np.array([10, 10, 10]))
    assert (rows.tolist(), versions.tolist()) == ([0, 0], [0, 2])
    assert t.gather(np.array([2, 0, 2]), (1,))[0].to_pylist() == ["b", "a", "b"]
    rows, versions = t.probe([pa.array(["b"])], (1,), np.array([10]))
    assert versions.tolist() == [2]
    none = VersionedTable(PLAIN)
    assert none.probe([pa.array([1])], (0,), np.array([10]))[1].tolist() == []


def test_memory_is_bounded_by_what_clocks_still_need() -> None:
    t = VersionedTable(KEYED)
    insert(t, 0, (0, "zero"))
    kept = []
    for i in range(1, 2400):
        t.apply(updating(t, {0: const(i, pa.int64())}, None, i))  # an ever-new key
        if i % 10 == 0:
            t.probe([pa.array([i])], (0,), np.array([i]))
            t.forget(i - 5)
            index = t._indices[(0,)]
            kept.append(
                (
                    t._version.n,
                    t._keys.intern.size,
                    index.intern.size,
                    index.link.n,
                    len(t._log.entries),
                )
            )
    versions, keys, *indexed, log = (max(column) for column in zip(*kept, strict=True))
    assert versions < 600 and keys < 1100 and max(indexed) < 600 and log < 20
    assert current(t) == [(2399, "zero")]
    assert t.probe([pa.array([2390, 2389])], (0,), np.array([2390, 2389]))[1].tolist() == [
        2390,
        2389,
    ]


@dataclass
class Reference:
    """The rows as a list of (version, key, value, born, ended)."""

    rows: list[list] = field(default_factory=list)

    def insert(self, at: int, rows: list[tuple]) -> None:
        self.rows += [[len(self.rows) + i, *row, at, FOREVER] for i, row in enumerate(rows)]

    def end(self, at: int, key: int) -> list[tuple]:
        gone = [r for r in self.rows if r[1] == key and r[4] == FOREVER]
        for r in gone:
            r[4] = at
        return [(r[1], r[2]) for r in gone]

    def at(self, ts: int) -> list[list]:
        return [r for r in self.rows if r[3] <= ts < r[4]]


verbs = st.tuples(
    st.sampled_from(["insert", "insert", "update", "delete", "forget"]),
    st.integers(0, 3),  # time that passes
    st.lists(
        st.tuples(st.one_of(st.none(), st.integers(0, 3)), st.sampled_from("xyz")),
        min_size=1,
        max_size=3,
    ),
)


@given(
    st.lists(verbs, max_size=25), st.sampled_from([PLAIN, KEYED, FROZEN, FREE_NRR]), st.booleans()
)
@settings(max_examples=examples(120), deadline=None)
def test_versions_and_log_match_the_reference(
    script: list, definition: TableDef, restart: bool
) -> None:
    import dsms.tables.versioned as module

    module._COMPACT_FROM, kept = 1, module._COMPACT_FROM
    try:
        _compare(script, definition, restart)
    finally:
        module._COMPACT_FROM = kept


def _compare(script: list, definition: TableDef, restart: bool) -> None:
    table, ref, now, passed = VersionedTable(definition), Reference(), 0, -1
    mirror, dead = Mirror(), set()
    for verb, wait, rows in script:
        now += wait
        key = rows[0][0] or 0
        if verb == "forget":
            passed = now - 1
            mirror.follow(table, passed)
            table.forget(passed)
            if restart:
                table = VersionedTable.restored(definition, table.snapshot(), [])
                mirror = Mirror(cursor=table.cursor(passed), rows=mirror.rows)
        elif verb == "insert":
            keys = [k for k, _ in rows]
            live = {r[1] for r in ref.rows if r[4] == FOREVER}
            bad = definition.key and (
                None in keys or len(set(keys)) < len(keys) or set(keys) & (live | dead)
            )
            if bad:
                with pytest.raises(UsageError):
                    table.inserting(cols(rows), now)
            else:
                insert(table, now, *rows)
                ref.insert(now, rows)
        elif verb == "update":
            change = updating(table, {1: const("u", pa.string())}, key_is(key), now)
            table.apply(change)
            ref.insert(now, [(k, "u") for k, _ in ref.end(now, key)])
        else:
            table.apply(deleting(table, key_is(key), now))
            if ref.end(now, key) and definition is FROZEN:
                dead.add(key)
        _agree(table, ref, passed, now)
    mirror.follow(table, FOREVER - 2)
    assert sorted(mirror.rows.items()) == [(r[0], (r[1], r[2])) for r in ref.at(FOREVER - 2)]


def _agree(table: VersionedTable, ref: Reference, passed: int, now: int) -> None:
    ts = np.repeat(np.arange(passed + 1, now + 2), 5)
    keys = pa.array([0, 1, 2, 3, None] * (len(ts) // 5), pa.int64())
    found = table.probe([keys], (0,), ts)
    expected = [
        (i, r[0])
        for i, (t, k) in enumerate(zip(ts.tolist(), keys.to_pylist(), strict=True))
        for r in ref.at(t)
        if k is not None and r[1] == k
    ]
    assert list(zip(found[0].tolist(), found[1].tolist(), strict=True)) == expected
    assert [c.to_pylist() for c in table.gather(found[1])] == [
        [ref.rows[v][i] for _, v in expected] for i in (1, 2)
    ]
    for t in range(passed + 1, now + 2):
        assert [row[2:] for row in rows_of(table.state(t))] == [
            (r[0], r[1], r[2]) for r in ref.at(t)
        ]


@dataclass
class Mirror:
    """A retroactive reader: keeps the rows by following the log in steps."""

    cursor: int = 0
    rows: dict[int, tuple] = field(default_factory=dict)
    upto: int = ALWAYS

    def follow(self, table: VersionedTable, upto: int) -> None:
        batch, self.cursor = table.changes(self.cursor, upto)
        told = rows_of(batch)
        assert [(t, s) for t, s, *_ in told] == sorted((t, s) for t, s, *_ in told)
        assert all(self.upto < t <= upto for t, *_ in told)
        for _, sign, version, *values in told:
            if sign > 0:
                self.rows[version] = tuple(values)
            else:
                assert self.rows.pop(version) == tuple(values)
        self.upto = upto


def test_a_query_over_tables_alone_sees_every_change_at_once():
    """Also those that come while no stream's time goes on."""
    engine = Engine()
    engine.execute(
        "CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t; CREATE TABLE r (v INT PRIMARY KEY)"
    )
    engine.ingest("s", [[1, 5_000_000]])
    engine.execute("CREATE QUERY q AS SELECT v FROM r")
    reader = engine.subscribe("q")
    reader.take()
    for n, at in enumerate((None, 5_000_000, 5_000_001)):  # the first rows hold from the beginning
        engine.execute(f"INSERT INTO r VALUES ({n})")
        (push,) = reader.take()
        assert (push.kind, push.at) == ("insert", at)
        assert push.data is not None and push.data.column(0).to_pylist() == [n]
    with pytest.raises(UsageError, match="DS523"):
        engine.execute("INSERT INTO r VALUES (9) AT TIMESTAMP '1970-01-01 00:00:05'")


LAST = "9999-12-31 23:59:59.999999"


@pytest.mark.parametrize(
    "change", ["INSERT INTO r VALUES (9)", "UPDATE r SET v = 9", "DELETE FROM r"]
)
@pytest.mark.parametrize("at", ["", f" AT '{LAST}'"])
@pytest.mark.parametrize("kind", ["", " NON RETROACTIVE"])
def test_no_change_comes_after_the_last_instant(change: str, at: str, kind: str):
    """Where answers up to it were given: by a change of a table that is read alone, or by a
    heartbeat."""
    engine = Engine()
    engine.execute(
        f"CREATE STREAM s (v INT, t TIMESTAMP) TIMESTAMP BY t; CREATE TABLE r (v INT){kind}"
    )
    engine.execute("INSERT INTO r VALUES (1)")
    if kind:
        engine.execute("CREATE QUERY q AS SELECT s.v FROM s [RANGE 1 h], r WHERE s.v = r.v")
        engine.heartbeat("s", MAX_INSTANT)
    else:
        engine.execute(
            f"CREATE QUERY q AS SELECT SUM(v) FROM r; INSERT INTO r VALUES (2) AT '{LAST}'"
        )
    before = engine.execute("SELECT * FROM r; SHOW QUERIES FULL")
    with pytest.raises(
        UsageError, match=r"DS523: .* can't change any more: answers up to 9999-12-31T23:59:59"
    ):
        engine.execute(change + at)
    assert engine.execute("SELECT * FROM r; SHOW QUERIES FULL") == before
    engine.execute("DROP QUERY q")
    engine.execute(change + at)


def test_a_table_that_an_older_version_changed_in_the_year_10000_stays_as_it_is() -> None:
    t = VersionedTable(KEYED)
    insert(t, MAX_INSTANT + 2, (1, "a"))
    with pytest.raises(UsageError, match="DS523"):
        t.instant(None, ALWAYS, None)


def test_a_table_changes_in_the_first_instant_of_the_year_1() -> None:
    engine = Engine()
    engine.execute("CREATE TABLE r (v INT); CREATE QUERY q AS SELECT SUM(v) FROM r")
    engine.execute("INSERT INTO r VALUES (1) AT '0001-01-01'")
    with pytest.raises(UsageError, match="DS523"):
        engine.execute("INSERT INTO r VALUES (1) AT '0001-01-01'")
    (done,) = engine.execute("INSERT INTO r VALUES (1)")
    assert done.message.endswith("as of 0001-01-01T00:00:00.000001Z")


def test_changes_of_one_instant_that_nobody_follows_take_no_room():
    """And who follows them from now on is told of all that comes."""
    engine = Engine()
    engine.execute("CREATE TABLE u (k INT PRIMARY KEY, x STRING); INSERT INTO u VALUES (1, '')")
    table = engine.runtime.tables["u"]
    for text in [f"UPDATE u SET x = '{n}'" for n in range(100)]:
        engine.execute(text)
    assert len(table.versions()) <= 33
    engine.execute("CREATE QUERY q AS SELECT k, x FROM u")
    reader = engine.subscribe("q")
    assert reader.take()[0].data.to_pylist() == [{"k": 1, "x": "99"}]
    for n in range(50):
        engine.execute(f"INSERT INTO u VALUES ({n + 2}, 'a')")
    engine.execute("DELETE FROM u WHERE k > 1")
    told = [(p.kind, p.data.num_rows) for p in reader.take()]
    assert sum(n for kind, n in told if kind == "insert") == 50
    assert sum(n for kind, n in told if kind == "delete") == 50
    engine.execute("DROP QUERY q; UPDATE u SET x = 'b'")
    assert engine.execute("SELECT * FROM u")[0].data.to_pylist() == [{"k": 1, "x": "b"}]
