"""A big change of a table dies at any of its operations on files, or meets a full disk: it is there
as a whole or not at all, and leaves no files."""

from __future__ import annotations

import errno
import itertools
from pathlib import Path
from random import Random

import pytest

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.settings import Settings
from tests.effort import effort
from tests.faults.simfiles import Crashed, Plan, SimFiles
from tests.keys import everywhere
from tests.staged_world import CHANGES, CONFLICTS, INSERT, few, opened, rows

STATEMENTS = [
    INSERT,
    CHANGES["update"],
    CONFLICTS["conflict"],
    "INSERT INTO d VALUES (9000, 'one')",
    CHANGES["delete"],
]
NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def few_are_many():
    with few() as patch:
        yield patch


class Life:
    """An engine over simulated files; `done`: statements that were acknowledged."""

    def __init__(self, folder: Path, files: SimFiles, checkpoint_bytes: int = 3000) -> None:
        self.folder, self.files, self.done = folder, files, 0
        self.settings = Settings(checkpoint_bytes=checkpoint_bytes)
        self.db: Engine | None = None

    def open(self) -> Engine:
        self.db = opened(str(self.folder), settings=self.settings, disk=self.files)
        return self.db

    def go_on(self) -> None:
        assert self.db is not None
        for sql in STATEMENTS[self.done :]:
            self.db.execute(sql)
            self.done += 1
            self.db.heartbeat("s", 100_000 + self.done)  # it may be time for a checkpoint

    def blobs(self) -> set[str]:
        return {n.rpartition("/")[2] for n in self.files.names if "/changes/" in n}

    def named(self) -> set[str]:
        assert self.db is not None and self.db.saver is not None
        return {b.name for b in self.db.saver.checkpointer.named_blobs()}


def there(db: Engine) -> tuple:
    """The rows, and how many versions there have been."""
    return rows(db), db.runtime.tables["d"].next_version


def answer(db: Engine) -> list[tuple]:
    """Of the query that joins the table with the stream, when all is done."""
    db.heartbeat("s", 200_000)
    return rows(db, "SELECT * FROM j")


def undisturbed() -> tuple[list[tuple], list[tuple]]:
    """What is there after so many statements, and the answer in the end."""
    db = opened()
    out = [there(db)]
    for k, sql in enumerate(STATEMENTS):
        db.execute(sql)
        db.heartbeat("s", 100_001 + k)
        out.append(there(db))
    return out, answer(db)


def life(tmp_path: Path, name: str) -> Life:
    folder = tmp_path / f"{name}-{next(NUMBERS)}"
    made = Life(folder, SimFiles())
    made.open().sync()
    return made


def operations(tmp_path: Path) -> tuple[int, int]:
    """The first and the last while statements are done."""
    one = life(tmp_path, "count")
    first = one.files.count
    one.go_on()
    return first, one.files.count


@pytest.mark.parametrize("way", ["plain", "encrypted"])
def test_it_is_there_as_a_whole_or_not_at_all(way, tmp_path):
    want, joined = undisturbed()
    with everywhere() if way == "encrypted" else pytest.MonkeyPatch.context():
        first, last = operations(tmp_path)
        assert last - first > 40
        points = [
            (at, after, kind)
            for at in range(first, last)
            for after in (False, True)
            for kind in ("kill", "power")
        ]
        for at, after, kind in points[:: 1 if effort() else 9]:
            one = life(tmp_path, "crash")
            one.files.plan = Plan(at, None, after)
            with pytest.raises(Crashed):
                one.go_on()
            assert one.db is not None and one.db.saver is not None
            one.db.saver.catalog.close()
            one.files = one.files.crash(kind, Random(at))
            db = one.open()
            found = there(db)
            where = f"{kind} {'after' if after else 'before'} {at}, {one.done} done"
            assert found in want[one.done : one.done + 2], where
            assert one.blobs() <= one.named(), where
            one.done += found != want[one.done]
            one.go_on()
            assert there(db) == want[-1], where
            assert answer(db) == joined, where


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_what_the_disk_refuses_has_changed_nothing(error, tmp_path):
    want, _ = undisturbed()
    for at in range(*operations(tmp_path))[:: 1 if effort() else 5]:
        one = life(tmp_path, "full")
        one.files.plan = Plan(at, error)
        try:
            one.go_on()
        except DsmsError as problem:
            assert problem.code in ("DS550", "DS552")
            assert there(one.db) == want[one.done]
            assert one.blobs() <= one.named()
        one.go_on()
        assert there(one.db) == want[-1]


@pytest.mark.parametrize("room", [0, 100, 700])
def test_a_disk_without_room_is_told_and_leaves_no_file(room, tmp_path):
    one = life(tmp_path, "room")
    one.files.plan = Plan(room=room)
    with pytest.raises(DsmsError, match="DS550"):
        one.go_on()
    assert one.blobs() == set() and len(one.db.runtime.tables["d"]) == 0
    one.files.plan = Plan()
    one.go_on()
    assert there(one.db) == undisturbed()[0][-1]
