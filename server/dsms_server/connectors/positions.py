"""Where sinks stand: by each the number of the next result row, and what it wants to know again.  A
small file for each in the data folder, replaced as a whole; without a data folder they are kept as
long as the server runs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

FOLDER = "connectors"


class Positions:
    """`folder`: the data folder."""

    def __init__(self, folder: str | None) -> None:
        self._folder = None if folder is None else Path(folder) / FOLDER
        self._known: dict[str, tuple[int, Any]] = {}

    def load(self, name: str) -> tuple[int | None, Any]:
        """The number and the note; (None, None): it has told nothing."""
        if name in self._known:
            return self._known[name]
        if self._folder is None:
            return None, None
        try:
            found = json.loads(self._path(name).read_bytes())
            return int(found["next"]), found["note"]
        except FileNotFoundError:
            return None, None

    def save(self, name: str, number: int, note: Any) -> None:
        """It stands there: on the disk when this returns, if anything is."""
        self._known[name] = number, note
        if self._folder is None:
            return
        self._folder.mkdir(mode=0o700, exist_ok=True)
        path = self._path(name)
        beside = path.with_suffix(".new")
        with open(beside, "wb", opener=_private) as file:
            file.write(json.dumps({"name": name, "next": number, "note": note}).encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        _sync(self._folder)

    def forget(self, name: str) -> None:
        """The sink is no more."""
        self._known.pop(name, None)
        if self._folder is not None:
            with contextlib.suppress(FileNotFoundError):
                self._path(name).unlink()

    def keep(self, names: set[str]) -> None:
        """Forget all but these, of which a crash may have left something."""
        if self._folder is None or not self._folder.is_dir():
            return
        known = {self._path(name) for name in names}
        for path in self._folder.iterdir():
            if path not in known:
                path.unlink()

    def _path(self, name: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _sync(folder: Path) -> None:
    place = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)
