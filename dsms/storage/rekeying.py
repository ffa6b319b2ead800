"""A data folder gets a key, another one, or none: a copy of its state is made, and takes its place.

    FOLDER/rekey/      the copy, while it is made: removed by whoever opens the folder next
    FOLDER/rekeyed/    the copy is complete, and its parts are on their way to where they belong:
                       whoever opens the folder next brings them there

The one step between the two is a rename, so after a crash all of the state is under one key, the
old or the new.  What lies elsewhere in the folder (archives) stays as it is.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterator

from dsms.errors import UsageError
from dsms.storage.catalog import CatalogStore
from dsms.storage.encrypted_files import LOG, EncryptedFiles
from dsms.storage.encryption import FolderKey
from dsms.storage.files import Files, RealFiles, explained
from dsms.storage.folder_key import NAME as KEY
from dsms.storage.folder_key import make, unlock
from dsms.storage.journal import SPARE

CATALOG = "catalog.sqlite"
# all that a data folder's state is made of
STATE = (
    CATALOG,
    f"{CATALOG}-wal",
    f"{CATALOG}-shm",
    KEY,
    "journal",
    "set-aside",
    "at-work",
    "deaths.json",
)
COPIED = ("journal", "set-aside")
COPYING, COPIED_ALL, PLAN = "rekey", "rekeyed", "plan.json"
PIECE = 1 << 16  # bytes of a log in one frame: so much is lost where a bit is


@contextlib.contextmanager
def alone(folder: str) -> Iterator[None]:
    """No other process opens the folder or changes its key.  Raises DS542."""
    with explained(folder):
        fd = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                what = f"the data folder {folder} is being opened, or its key changed"
                raise UsageError("DS542", what, hint="wait until that is done") from None
        yield
    finally:
        os.close(fd)


def rekey(folder: str, old: bytes | None, new: bytes | None) -> None:
    """Encrypt the state of a data folder with the key `new` instead of `old`; None: not at all.

    Raises DS542 (in use), DS545, DS554 (a part is damaged: nothing has changed), DS547 to DS549
    (`old` is not its key), DS553 (there is none), DS55x, DS556."""
    with alone(folder):
        finish(folder)
        if not os.path.exists(f"{folder}/{CATALOG}"):
            raise UsageError("DS553", f"{folder} is no data folder: it has no {CATALOG}")
        key, copy = unlock(folder, old, used=True), f"{folder}/{COPYING}"
        try:
            with explained(copy):
                os.mkdir(copy, 0o700)
            with CatalogStore(f"{folder}/{CATALOG}", key) as catalog:
                _copy(catalog, key, copy, None if new is None else make(copy, new))
        except BaseException:
            shutil.rmtree(copy, ignore_errors=True)
            raise
        _take_place(folder)


def finish(folder: str) -> None:
    """Do what a change of the key that did not end has left to do; with the folder `alone`."""
    shutil.rmtree(f"{folder}/{COPYING}", ignore_errors=True)
    done = f"{folder}/{COPIED_ALL}"
    if not os.path.exists(done):
        return
    with explained(done):
        if os.path.exists(f"{done}/{PLAN}"):
            with open(f"{done}/{PLAN}", encoding="utf-8") as file:
                _move(folder, done, json.load(file))
        os.rmdir(done)


def _copy(catalog: CatalogStore, key: FolderKey | None, folder: str, new: FolderKey | None) -> None:
    """All of the state, below another folder."""
    with CatalogStore(f"{folder}/{CATALOG}", new) as other:
        catalog.copy_to(other)
    real, above = RealFiles(), os.path.dirname(folder)
    source, target = _under(above, key), _under(folder, new)
    for part in COPIED:
        for path in _files(above, part):
            real.make_folder(os.path.dirname(f"{folder}/{path}"))
            _copy_file(source, f"{above}/{path}", target, f"{folder}/{path}")
    real.sync(f"{folder}/{CATALOG}")
    plan = [name for name in os.listdir(folder) if name in STATE]
    real.write_atomic(f"{folder}/{PLAN}", [json.dumps(plan).encode()])


def _under(folder: str, key: FolderKey | None) -> Files:
    return RealFiles() if key is None else EncryptedFiles(RealFiles(), folder, key)


def _files(folder: str, part: str) -> Iterator[str]:
    """The paths of files that hold state, below the folder."""
    for place, folders, names in os.walk(f"{folder}/{part}"):
        if place == f"{folder}/{part}" and SPARE in folders:
            folders.remove(SPARE)
        whole = (name for name in sorted(names) if not name.endswith(".part"))
        yield from (os.path.relpath(f"{place}/{name}", folder) for name in whole)


def _copy_file(source: Files, path: str, target: Files, to: str) -> None:
    data = source.map(path)
    if not path.endswith(LOG):
        target.write_atomic(to, [data])
        return
    out = target.append(to)
    try:
        for at in range(0, data.size, PIECE):
            out.write([data.slice(at, min(PIECE, data.size - at))])
        out.sync()
    finally:
        out.close()
    target.sync_folder(os.path.dirname(to))


def _take_place(folder: str) -> None:
    done = f"{folder}/{COPIED_ALL}"
    with explained(done):
        for place, _, _ in os.walk(f"{folder}/{COPYING}", topdown=False):
            RealFiles().sync_folder(place)
        os.rename(f"{folder}/{COPYING}", done)
        RealFiles().sync_folder(folder)
    finish(folder)


def _move(folder: str, done: str, plan: list[str]) -> None:
    """Bring every part of the copy to its place; what has been brought there already stays."""
    for name in STATE:
        old, new = f"{folder}/{name}", f"{done}/{name}"
        if name not in plan or os.path.exists(new):
            _remove(old)
        if os.path.exists(new):
            os.rename(new, old)
    RealFiles().sync_folder(folder)
    RealFiles().sync_folder(done)
    os.remove(f"{done}/{PLAN}")


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.exists(path):
        os.remove(path)
