"""Big changes of tables: made ready in pieces, in a file of their own, seen at one instant."""

from __future__ import annotations

import os

import numpy as np
import pytest

from dsms.api import Cancel
from dsms.engine import Engine
from dsms.errors import DsmsError, UsageError
from dsms.settings import Settings
from tests.effort import thinned
from tests.keys import everywhere
from tests.staged_world import CHANGES, CONFLICTS, INSERT, few, opened, played, rows
from tests.staged_world import everything as all_of

ALL = [
    *((table, name) for table in ("keys", "no keys", "dead keys") for name in CHANGES),
    *(("keys", name) for name in CONFLICTS),
]


@pytest.fixture(autouse=True)
def few_are_many():
    with few() as patch:
        yield patch


def changes(folder) -> list[str]:
    place = f"{folder}/journal/changes"
    return sorted(os.listdir(place)) if os.path.exists(place) else []


@thinned(2)
@pytest.mark.parametrize(("table", "name"), ALL)
def test_in_pieces_it_is_what_it_is_in_one_go(table, name, tmp_path):
    sql = (CHANGES | CONFLICTS)[name]
    db, folder = opened(str(tmp_path), table), str(tmp_path)
    db.execute(INSERT)
    assert len(changes(folder)) == 1
    before, seen = rows(db), []
    made = db.runtime.tables["d"].changes_made
    played(db.slices(sql), lambda n: seen.append(rows(db)))
    assert db.runtime.tables["d"].changes_made == made + 1 and len(changes(folder)) == 2
    assert len(seen) > 10 and all(found in (before, rows(db)) for found in seen)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dsms.commands.staged.MANY", 1 << 30)
        whole = opened(table=table)
        whole.execute(INSERT)
        whole.execute(sql)
    assert all_of(db) == all_of(whole)
    db.saver.catalog.close()  # it dies
    again = opened(folder)
    assert all_of(again) == all_of(whole) and again.recovered.notes == []
    again.execute("INSERT INTO d VALUES (5000, 'last')")
    whole.execute("INSERT INTO d VALUES (5000, 'last')")
    assert all_of(again) == all_of(whole)
    again.close()
    assert changes(folder) == changes(folder)


def test_files_are_removed_when_checkpoints_have_what_is_in_them(tmp_path):
    db = opened(str(tmp_path))
    db.execute(INSERT)
    for name in CHANGES:
        db.execute(CHANGES[name])
    assert len(changes(tmp_path)) == 5
    want = all_of(db)
    for k in range(2):
        db.execute(f"INSERT INTO d VALUES ({9000 + k}, 'between')")
        want = all_of(db)
        assert db.saver.checkpoint()
    assert changes(tmp_path) == []
    db.close()
    assert all_of(opened(str(tmp_path))) == want


def test_a_file_that_no_record_names_is_removed(tmp_path):
    db = opened(str(tmp_path))
    db.execute(INSERT)
    stored = changes(tmp_path)
    db.saver.catalog.close()
    for name in ("00000000000000000099-0.rows", "00000000000000000099-1.rows.part"):
        (tmp_path / "journal" / "changes" / name).write_bytes(b"half")
    again = opened(str(tmp_path))
    assert changes(tmp_path) == stored and len(rows(again)) == 60


@pytest.mark.parametrize("harm", ["removed", "cut", "changed", "another's"])
def test_a_file_that_is_not_what_was_written_is_not_gone_on_without(harm, tmp_path):
    db = opened(str(tmp_path))
    db.execute(INSERT)
    db.execute(CHANGES["update"])
    db.saver.catalog.close()
    first, second = (tmp_path / "journal" / "changes" / name for name in changes(tmp_path))
    match harm:
        case "removed":
            second.unlink()
        case "cut":
            second.write_bytes(second.read_bytes()[:-1])
        case "changed":
            data = bytearray(second.read_bytes())
            data[len(data) // 2] ^= 1
            second.write_bytes(data)
        case _:
            second.write_bytes(first.read_bytes())
    with pytest.raises(UsageError, match=rf"DS577.*{second.name}"):
        opened(str(tmp_path))


def test_a_folder_with_a_key_hides_them(tmp_path):
    with everywhere():
        db = opened(str(tmp_path))
        db.execute(INSERT)
        want = all_of(db)
        (name,) = changes(tmp_path)
        assert b"name 1" not in (tmp_path / "journal" / "changes" / name).read_bytes()
        db.saver.catalog.close()
        assert all_of(opened(str(tmp_path))) == want


@pytest.mark.parametrize("name", ["update", "conflict", "insert"])
def test_it_is_cancelled_at_any_piece_and_leaves_nothing(name, tmp_path):
    sql = (CHANGES | CONFLICTS)[name]
    db = opened(str(tmp_path))
    db.execute(INSERT)
    want, steps = all_of(db), played(opened_with_rows().slices(sql))
    for stop in range(1, steps - 30, 7):  # room that was made once is there
        cancel = Cancel()

        def between(n, cancel=cancel, stop=stop):
            if n == stop:
                cancel.set()

        with pytest.raises(UsageError, match="DS610"):
            played(db.slices(sql, cancel), between)
        assert all_of(db) == want and not db.runtime.holds.held
        assert len(changes(tmp_path)) == 1
    for stop in range(1, steps - 30, 7):  # room that was made once is there
        slices = db.slices(sql)
        for _ in range(stop):
            next(slices)
        slices.close()
        assert all_of(db) == want and not db.runtime.holds.held
    db.execute(sql)
    whole = opened_with_rows()
    whole.execute(sql)
    assert all_of(db) == all_of(whole)


def opened_with_rows() -> Engine:
    db = opened()
    db.execute(INSERT)
    return db


def test_rows_of_streams_meet_the_table_as_it_was(few_are_many):
    """A stream goes on while the table changes; its rows find the versions of their instants."""
    db = opened(None, "dead keys")
    db.execute(INSERT)
    db.execute("CREATE QUERY n AS SELECT v, d.name FROM s, d WHERE v = d.k")
    clock = [1000 * 60 + 1]

    def between(n):
        clock[0] += 1000
        db.ingest("s", {"v": [n % 60], "name": ["late"], "t": [clock[0]]})
        db.heartbeat("s", clock[0])
        assert len({r[1].endswith("x") for r in rows(db)}) == 1

    reader = db.subscribe("n")
    steps = played(db.slices("UPDATE d SET name = name || 'x'"), between)
    between_rows = [r for push in reader.take() if push.data for r in push.data.to_pylist()]
    assert steps > 20 and len(between_rows) >= steps - 1
    assert all(not r["name"].endswith("x") for r in between_rows[:-1])
    db.ingest("s", {"v": [7], "name": ["after"], "t": [clock[0] + 10_000]})
    db.heartbeat("s", clock[0] + 20_000)
    (last,) = [r for push in reader.take() if push.data for r in push.data.to_pylist()]
    assert last == {"v": 7, "name": "name 7x"}


def test_those_who_can_wait_are_done_in_their_order():
    db = opened_with_rows()
    first = db.slices(CHANGES["update"])
    while not db.runtime.holds.held:
        next(first)
    others = [db.slices(f"UPDATE d SET name = name || '{c}' WHERE k < 2") for c in "ab"] + [
        db.slices("INSERT INTO d VALUES (700, 'new')")
    ]
    for other in others:
        for _ in range(5):
            assert next(other).waits is not None
    played(first)
    for other in others:
        played(other)
    assert rows(db)[:2] == [(0, "name 0xab"), (1, "name 1ab")] and rows(db)[-1] == (700, "new")


def test_rows_that_are_sent_meanwhile_make_it_begin_anew(tmp_path):
    db = opened(str(tmp_path))
    db.execute(INSERT)
    at = [12, 30]

    def between(n):
        if n in at:
            assert db.changing("d") is not None
            db.ingest("d", {"k": [n * 1000], "name": ["sent"]})

    played(db.slices("UPDATE d SET name = name || 'x'"), between)
    assert [r for r in rows(db) if r[0] >= 1000] == [(12000, "sentx"), (30000, "sentx")]
    assert all(name.endswith("x") for _, name in rows(db))
    assert len(changes(tmp_path)) == 2 and db.changing("d") is None


@pytest.mark.parametrize("stop", range(15, 70, 9))
def test_a_checkpoint_on_the_way_has_nothing_of_it(stop, tmp_path):
    db = opened(str(tmp_path))
    db.execute(INSERT)
    want = all_of(db)
    slices = db.slices("UPDATE d SET name = name || 'x'")
    for _ in range(stop):
        next(slices)
    assert db.saver.checkpoint()
    db.saver.catalog.close()
    assert all_of(opened(str(tmp_path))) == want


def test_a_checkpoint_on_the_way_does_not_end_it(tmp_path):
    db = opened(str(tmp_path), settings=Settings(checkpoint_bytes=1 << 30))
    db.execute(INSERT)
    played(db.slices(CHANGES["update"]), lambda n: db.saver.checkpoint() if n % 5 == 0 else None)
    whole = opened_with_rows()
    whole.execute(CHANGES["update"])
    assert all_of(db) == all_of(whole)
    db.close()
    assert all_of(opened(str(tmp_path))) == all_of(whole)


def test_a_table_that_is_set_back_meanwhile_is_as_it_became():
    db = opened()
    db.execute(INSERT)
    db.execute("UPDATE d SET name = 'old' WHERE k = 3 AT TIMESTAMP '1970-01-01 00:00:50'")
    done = []

    def between(n):
        table = db.runtime.tables["d"]
        if table.staged is not None and len(done) < 2:
            done.append(n)
            table.set_back(2_000_000)

    played(db.slices("UPDATE d SET name = name || 'x'"), between)
    assert rows(db)[3] == (3, "oldx")
    born = db.runtime.tables["d"].versions()
    assert set(born.exp.tolist()[:60]) == {2_000_000}


def test_a_big_change_of_few_rows_is_one(monkeypatch, tmp_path):
    monkeypatch.setattr("dsms.commands.staged.BYTES", 1 << 12)
    monkeypatch.setattr("dsms.commands.staged.MANY", 1 << 30)
    db = opened(str(tmp_path))
    db.execute("INSERT INTO d SELECT v AS k, repeat('x', 100) AS name FROM s [RANGE 1 h]")
    assert len(changes(tmp_path)) == 1
    assert {len(name) for _, name in rows(db)} == {100}


def test_nulls_and_types_come_back(tmp_path):
    db = opened(str(tmp_path))
    db.execute(
        "CREATE TABLE e (a INT, b FLOAT, c STRING, d BOOL, e TIMESTAMP); INSERT INTO e SELECT "
        "NULLIF(v % 3, 0) AS a, v * 0.5 AS b, NULLIF(name, 'name 7') AS c, v > 5 AS d, t AS e "
        "FROM s [RANGE 1 h]"
    )
    want = db.execute("SELECT * FROM e ORDER BY b")[0].data
    assert want.num_rows == 60 and want.column("a").null_count == 20
    db.saver.catalog.close()
    again = opened(str(tmp_path))
    assert again.execute("SELECT * FROM e ORDER BY b")[0].data.equals(want)


def test_a_table_that_is_dropped_or_renamed_meanwhile():
    for sql, there in (
        ("DROP QUERY j; DROP TABLE d; CREATE TABLE d (k INT, name STRING)", 60),
        ("ALTER TABLE d RENAME TO e; CREATE TABLE d (k INT, name STRING)", 60),
    ):
        db = opened()

        def between(n, db=db, sql=sql):
            if n == 30:
                db.execute(sql)

        played(db.slices(INSERT), between)
        assert len(rows(db)) == there


@thinned()
@pytest.mark.parametrize("name", ["update", "delete", "insert", "conflict"])
@pytest.mark.parametrize("made", ["", "CREATE TABLE d (k STRING, x FLOAT)"])
def test_a_table_is_dropped_at_any_piece(name, made, tmp_path):
    """What it was is changed, or the statement is told what there is now."""
    at, codes = 0, set()
    while True:
        db = opened(str(tmp_path / str(at)))
        db.execute("DROP QUERY j")
        db.execute(INSERT)
        statement = db.slices((CHANGES | CONFLICTS)[name])
        try:
            for _ in range(at + 1):
                next(statement)
        except StopIteration:
            break
        db.execute(f"DROP TABLE d; {made}")
        try:
            played(statement)
            codes.add("done")
        except DsmsError as problem:
            codes.add(problem.code)
        assert not db.runtime.holds.held and os.listdir(tmp_path / str(at) / "journal" / "changes")
        db.close()
        at += 3
    assert at > 12 and codes and not [c for c in codes if c.startswith("DS9")], codes


def test_repeats_are_found_across_pieces():
    db = opened()
    keys = db.runtime.tables["d"].keys
    codes = np.array([0, 1, 0, 2, 3, 4, 5, 1, 6, 6, 7, 0])
    keys.intern.fresh = 8
    assert np.flatnonzero(keys.repeats(codes)).tolist() == [2, 7, 9, 11]
    assert np.flatnonzero(keys.repeats(codes, last=True)).tolist() == [0, 1, 2, 8]
