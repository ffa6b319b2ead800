"""The catalog file: what went in comes back, also after a crash, and files that are no catalog are
refused."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsms.errors import InternalError, UsageError
from dsms.sql.catalog import QueryDef, StreamDef, TableDef
from dsms.sql.types import (
    ALWAYS,
    BOOL,
    BYTES,
    FLOAT,
    FOREVER,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    Field,
    decimal,
)
from dsms.storage.catalog import CatalogStore
from dsms.storage.encryption import FolderKey
from dsms.tables.versioned import VersionedTable
from tests.effort import examples
from tests.table_changes import deleting, updating

ALL = (
    Field("k", INT),
    Field("born", BOOL),  # a name the store might want for itself
    Field("f", FLOAT),
    Field("d", decimal(38, 10)),
    Field("s", STRING),
    Field("y", BYTES),
    Field("t", TIMESTAMP),
    Field("", INTERVAL),
)
EVERY = TableDef("Every", ALL, key=(0,))
NRR = TableDef("r", ALL[:1], key=(0,), retroactive=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


def columns(rows: list[tuple]) -> list[pa.Array]:
    return [pa.array([r[i] for r in rows], f.type.arrow) for i, f in enumerate(ALL)]


def row(key: int, f: float = 1.5) -> tuple:
    return (key, True, f, Decimal("1.5"), "é\x00", b"\x00\xff", -1, 2**62)


def do(store: CatalogStore, table: VersionedTable, change: Any) -> None:
    store.add_change(table.definition.name, change)
    table.apply(change)


def restored(store: CatalogStore, definition: TableDef) -> VersionedTable:
    return VersionedTable.restored(definition, *store.table(definition.name))


def same(a: VersionedTable, b: VersionedTable, until: int = 40) -> None:
    """Equal bit for bit: rows at every instant, versions, the log."""
    assert (a.next_version, a.last_change) == (b.next_version, b.last_change)
    for at in (*range(until), FOREVER):
        x, y = a.state(at), b.state(at)
        assert x.ids[0].tolist() == y.ids[0].tolist()
        for c, d in zip(x.cols, y.cols, strict=True):
            assert pa.types.is_floating(c.type) or c.equals(d)
            assert repr(c.to_pylist()) == repr(d.to_pylist())  # NaN, -0.0


def test_declarations_come_back_in_the_order_they_were_made(path: Path) -> None:
    with CatalogStore(path) as store:
        store.add_stream(StreamDef("Trades", ALL, sql="CREATE STREAM Trades (a INT)"))
        store.add_table(TableDef("gone", ALL, sql="CREATE TABLE gone (a INT)"))
        options = (("strategy", "upa"), ("n", 3), ("on", True))
        store.add_query(QueryDef("q", "CREATE QUERY q AS SELECT * FROM Trades", options=options))
        store.drop("query", "gone")
        store.drop("table", "gone")
        store.drop("stream", "never was")
        store.add_table(TableDef("gone", ALL, sql="CREATE TABLE gone (b INT)"))
        store.set("seq", {"client": [1, 2]})
        store.set("seq", {"client": [3]})
    with CatalogStore(path) as store:
        found = store.objects()
        assert [(o.kind, o.name) for o in found] == [
            ("stream", "Trades"),
            ("query", "q"),
            ("table", "gone"),
        ]
        assert (
            found[1].options == {"strategy": "upa", "n": 3, "on": True}
            and "(b INT)" in found[2].sql
        )
        assert store.setting("seq") == {"client": [3]} and store.setting("none", 7) == 7
        with pytest.raises(InternalError, match="UNIQUE"):
            store.add_stream(StreamDef("TRADES", ()))
        store.close()
        with pytest.raises(InternalError, match="closed"):
            store.objects()


def changes_kept(store: CatalogStore) -> int:
    """Changes of all tables behind their last snapshots."""
    return int(store._db.execute("SELECT count(*) FROM change").fetchone()[0])


def test_all_types_come_back_exactly(path: Path) -> None:
    table = VersionedTable(EVERY)
    with CatalogStore(path) as store:
        store.add_table(EVERY)
        do(
            store,
            table,
            table.inserting(columns([row(1), row(2, float("nan")), row(3, -0.0)]), ALWAYS),
        )
        do(store, table, table.inserting(columns([(4, *[None] * 7)]), 10))
        do(
            store,
            table,
            updating(table, {2: lambda c, n: pc.negate(c[2])}, lambda c, n: pc.equal(c[0], 3), 20),
        )
        do(store, table, deleting(table, lambda c, n: pc.equal(c[0], 1), 30))
    with CatalogStore(path) as store:
        same(restored(store, EVERY), table)
        assert changes_kept(store) == 4
        store.compact("every", table.snapshot())
        assert changes_kept(store) == 0
        do(store, table, table.inserting(columns([row(9)]), 35))
    with CatalogStore(path) as store:
        same(restored(store, EVERY), table)


def test_deleted_keys_are_remembered(path: Path) -> None:
    table = VersionedTable(NRR)
    with CatalogStore(path) as store:
        store.add_table(NRR)
        do(store, table, table.inserting([pa.array([1, 2])], 10))
        do(store, table, deleting(table, lambda c, n: pc.equal(c[0], 1), 20))
    for _ in range(2):
        with CatalogStore(path) as store:
            again = restored(store, NRR)
            with pytest.raises(UsageError, match="DS522"):
                again.inserting([pa.array([1])], 30)
            again.forget(25)
            store.compact("r", again.snapshot())  # second time round: from the snapshot


steps = st.lists(
    st.tuples(
        st.sampled_from(["insert", "delete", "update", "compact", "forget", "restart"]),
        st.integers(0, 4),
        st.floats(),
    ),
    max_size=12,
)


@given(steps)
@settings(max_examples=examples(25), deadline=None)
def test_any_history_with_restarts(
    tmp_path_factory: Any, script: list[tuple[str, int, float]]
) -> None:
    where = tmp_path_factory.mktemp("catalog") / "catalog.db"
    table, store, now = VersionedTable(EVERY), CatalogStore(where), 0
    store.add_table(EVERY)
    for verb, key, value in script:
        now += 1

        def hit(c: Any, n: int, key: int = key) -> Any:
            return pc.equal(c[0], key)

        if verb == "insert" and key not in table.state().cols[0].to_pylist():
            do(store, table, table.inserting(columns([row(key, value)]), now))
        elif verb == "delete":
            do(store, table, deleting(table, hit, now))
        elif verb == "update":
            do(
                store,
                table,
                updating(
                    table, {2: lambda c, n, v=value: pa.array([v] * n, pa.float64())}, hit, now
                ),
            )
        elif verb == "compact":
            store.compact("every", table.snapshot())
        elif verb == "forget":
            table.forget(now - 3)
            store.compact("every", table.snapshot())
        elif verb == "restart":
            store.close()
            store = CatalogStore(where)
            same(restored(store, EVERY), table, now + 1)
    same(restored(store, EVERY), table, now + 1)
    store.close()


CRASH = """
import os, sys
from dsms.sql.catalog import StreamDef
from dsms.storage.catalog import CatalogStore
from dsms.storage.encryption import FolderKey
from tests.effort import examples
store = CatalogStore(sys.argv[1])
store.add_stream(StreamDef("kept", ()))          # committed, in the write-ahead log only
try:
    with store.transaction():
        store.add_stream(StreamDef("half", ()))
        store.set("half", 1)
        if sys.argv[2] == "before":
            os._exit(9)
finally:
    os._exit(9)
"""


@pytest.mark.parametrize(
    ("moment", "expected"), [("before", ["kept"]), ("after", ["kept", "half"])]
)
def test_a_crash_leaves_the_state_before_or_after(
    path: Path, moment: str, expected: list[str]
) -> None:
    assert (
        subprocess.run([sys.executable, "-c", CRASH, str(path), moment], check=False).returncode
        == 9
    )
    with CatalogStore(path) as store:  # no lock is left behind
        assert [o.name for o in store.objects()] == expected
        assert store.setting("half") == (1 if moment == "after" else None)


def test_an_exception_takes_the_whole_transaction_back(path: Path) -> None:
    with CatalogStore(path) as store:
        with pytest.raises(ZeroDivisionError), store.transaction():
            store.add_stream(StreamDef("a", ()))
            with store.transaction():
                store.set("x", 1)
            raise ZeroDivisionError
        assert store.objects() == [] and store.setting("x") is None
        store.add_stream(StreamDef("b", ()))
        assert [o.name for o in store.objects()] == ["b"]


def test_a_file_in_use(path: Path) -> None:
    with CatalogStore(path):
        with pytest.raises(UsageError) as err:
            CatalogStore(path)
        assert (
            err.value.code == "DS542"
            and str(path) in err.value.message
            and "own data directory" in str(err.value)
        )
    CatalogStore(path).close()


def test_a_newer_file(path: Path) -> None:
    CatalogStore(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(UsageError) as err:
        CatalogStore(path)
    assert err.value.code == "DS540" and "layout 99, this one knows 6" in err.value.message


def test_other_and_damaged_files(path: Path, tmp_path: Path) -> None:
    path.write_bytes(b"not a database, but long enough to look at " * 100)
    with pytest.raises(UsageError) as err:
        CatalogStore(path)
    assert (
        err.value.code == "DS541"
        and f"the catalog {path} is damaged: file is not a database" in err.value.message
    )
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as db:
        db.execute("CREATE TABLE x (a)")
    db.close()
    with pytest.raises(UsageError, match="not a dsms catalog"):
        CatalogStore(foreign)
    with pytest.raises(UsageError) as err:
        CatalogStore(tmp_path / "no" / "such" / "dir.db")
    assert err.value.code == "DS543"


def test_a_damaged_page_is_noticed_on_opening(path: Path) -> None:
    with CatalogStore(path) as store, store.transaction():
        for i in range(400):
            store.add_stream(StreamDef(f"s{i}", ALL, sql="x" * 100))
    data = bytearray(path.read_bytes())
    data[5 * 4096 : 6 * 4096] = bytes(4096)
    path.write_bytes(data)
    with pytest.raises(UsageError) as err:
        CatalogStore(path)
    assert err.value.code == "DS541" and "is damaged" in err.value.message


def test_rows_of_an_unknown_table(path: Path) -> None:
    with CatalogStore(path) as store, pytest.raises(UsageError, match="knows no table r"):
        store.table("r")


def test_a_dropped_table_takes_its_rows_along(path: Path) -> None:
    table = VersionedTable(NRR)
    with CatalogStore(path) as store:
        store.add_table(NRR)
        do(store, table, table.inserting([pa.array([1])], 10))
        store.compact("r", table.snapshot())
        do(store, table, table.inserting([pa.array([2])], 20))
        store.drop("table", "r")
        store.add_table(NRR)
        assert store.table("r") == (None, []) and len(restored(store, NRR)) == 0


@pytest.mark.parametrize("key", [None, FolderKey(bytes(32))], ids=["plain", "encrypted"])
def test_a_full_disk_has_the_code_of_a_full_disk(key: FolderKey | None, tmp_path: Path) -> None:
    """As for rows; nothing is kept, and all goes on when there is room."""
    store = CatalogStore(tmp_path / "catalog.sqlite", key)
    disk = store._db if isinstance(store._db, sqlite3.Connection) else store._db._disk
    store.set("small", 1)
    (most,) = disk.execute("PRAGMA page_count").fetchone()
    disk.execute(f"PRAGMA max_page_count = {most}")
    with pytest.raises(UsageError, match="the disk is full") as problem:
        store.set("large", "x" * 100_000)
    assert problem.value.code == "DS550" and str(store.path) in problem.value.message
    assert store.setting("small") == 1 and store.setting("large") is None
    disk.execute("PRAGMA max_page_count = 1000000")
    store.set("large", "x" * 100_000)
    store.close()
    with CatalogStore(tmp_path / "catalog.sqlite", key) as again:
        assert again.setting("large") == "x" * 100_000
