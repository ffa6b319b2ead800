"""In which layout a data folder is, and a copy of it: for who brings it to that of today."""

from __future__ import annotations

import contextlib
import os
import pickletools
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dsms.errors import DsmsError, UsageError
from dsms.storage.checkpoints import Checkpoints
from dsms.storage.encrypted_catalog import EncryptedDatabase
from dsms.storage.encrypted_files import EncryptedFiles
from dsms.storage.files import Files, RealFiles, explained
from dsms.storage.folder_key import unlock
from dsms.storage.layout import by_tag
from dsms.storage.packed import LEGACY, unpacked
from dsms.storage.rekeying import alone, finish

CATALOG, ARCHIVE = "catalog.sqlite", "archive"


@dataclass(frozen=True, slots=True)
class Layout:
    """catalog  the number of its layout
    state    that of the newest checkpoint's encoding; None: there is none
    older    classes in it (by tag) of earlier versions, with these"""

    catalog: int
    state: int | None
    older: dict[str, int]

    @property
    def legacy(self) -> bool:
        """All objects stand under the names that their modules had."""
        return self.state == LEGACY


def layout_of(folder: str, state_key: bytes | None) -> Layout:
    """Of a data folder that nobody else has open.  It finishes what a change of its key has left.
    Raises DS545, DS547 to DS549, DS55x."""
    finish(folder)
    key = unlock(folder, state_key, used=True)
    files: Files = RealFiles() if key is None else EncryptedFiles(RealFiles(), folder, key)
    path = Path(folder) / CATALOG
    with contextlib.closing(
        sqlite3.connect(path) if key is None else EncryptedDatabase(path, key)
    ) as db:
        (catalog,) = db.execute("PRAGMA user_version").fetchone()
    checkpoints = Checkpoints(files, f"{folder}/journal")
    checkpoints.load()
    for checkpoint, state in checkpoints.states():
        if not isinstance(state, DsmsError):
            version, parts = unpacked(memoryview(state), checkpoint.path)
            return Layout(catalog, version, {} if version == LEGACY else _older(parts[0]))
    return Layout(catalog, None, {})


def _older(said: bytearray) -> dict[str, int]:
    """Classes of a state that stand there in versions before today's: a tag is followed by its
    version, whatever pickle remembers in between."""
    found: dict[str, int] = {}
    before = None
    for code, value, _ in pickletools.genops(bytes(said)):
        if code.name in ("MEMOIZE", "FRAME"):
            continue
        known = by_tag().get(before) if isinstance(before, str) else None
        if known is not None and code.name == "BININT1" and value < known.version:
            found[known.tag] = value
        before = value
    return found


@contextlib.contextmanager
def unused(folder: str) -> Iterator[None]:
    """While nobody opens it.  Raises DS553 for what is no data folder, DS542 where one has it."""
    path = f"{folder}/{CATALOG}"
    if not os.path.exists(path):
        raise UsageError("DS553", f"{folder} is no data folder: it has no {CATALOG}")
    shared = f"{path}-shm"  # which looking may make, and leave
    was_there = os.path.exists(shared)
    with alone(folder):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", 0, uri=True)) as db:
            try:
                db.execute("PRAGMA user_version").fetchone()
            except sqlite3.OperationalError as problem:
                if "locked" in str(problem):
                    what = f"the data folder {folder} is in use by another process"
                    raise UsageError("DS542", what, hint="stop the server first") from None
        if not was_there and os.path.exists(shared):
            os.remove(shared)
        yield


def copied(folder: str, to: str) -> None:
    """A copy of a data folder, whose files are the copy's own but for those of archives, which
    never change: these are shared, where the disk can.  Raises DS424 if something is there."""
    if os.path.exists(to):
        raise UsageError("DS424", f"{to} is there already", hint="name a new folder by --backup")
    with explained(to):
        try:
            shutil.copytree(folder, to, copy_function=_copy, symlinks=True)
            os.chmod(to, 0o700)
        except BaseException:
            shutil.rmtree(to, ignore_errors=True)
            raise


def _copy(source: str, target: str) -> None:
    if f"/{ARCHIVE}/" in source and source.endswith(".parquet"):
        with contextlib.suppress(OSError):
            os.link(source, target)
            return
    shutil.copy2(source, target)
