"""A data folder is opened, or made."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from dsms.errors import UsageError
from dsms.recovering.durability import Durability
from dsms.recovering.face import Recovering
from dsms.recovering.replaying import recover
from dsms.storage.catalog import CatalogStore
from dsms.storage.checkpoints import MANIFEST
from dsms.storage.durable import Durable
from dsms.storage.encrypted_files import EncryptedFiles
from dsms.storage.files import Files, RealFiles
from dsms.storage.folder_key import unlock
from dsms.storage.journal import STREAMS
from dsms.storage.rekeying import alone, finish
from dsms.storage.working import AtWork


class Opening(Recovering, Protocol):
    """An engine that is to have a data folder."""

    saver: Durability | None


def open_data(
    engine: Opening, data: str, files: Files | None = None, state_key: bytes | None = None
) -> Durability:
    """Open a data folder, or make it, for an engine that has nothing yet, and bring back what is in
    it.  `state_key`: what it is encrypted with (see `dsms.state_key`).

    Raises DS54x (the catalog or the state can't be read, or is in use; the key is missing or
    another one), DS55x (files)."""
    Path(data).mkdir(mode=0o700, parents=True, exist_ok=True)
    path, files = Path(data) / "catalog.sqlite", files or RealFiles()
    at_work = AtWork(data) if isinstance(files, RealFiles) else None
    with alone(data):
        finish(data)
        used = _used(files, f"{data}/journal")
        key = unlock(data, state_key, used or path.exists())
        if not path.exists() and used:
            raise _missing(path)
        catalog = CatalogStore(path, key)
    try:
        if key is not None:
            files = EncryptedFiles(files, data, key)
        room = engine.runtime.settings.checkpoint_bytes
        durable = Durable(files, f"{data}/journal", room=room)
        engine.runtime.durable = durable
        saver = engine.saver = Durability(engine, durable, catalog)
        if at_work is not None:
            at_work.cover = None if key is None else key.secret("at-work")
            saver.at_work = engine.runtime.settings.at_work = at_work
            at_work.open()
        recover(saver)
    except BaseException:
        engine.saver = None
        catalog.close()
        raise
    return saver


def _missing(path: Path) -> UsageError:
    what = f"{path} is missing, and with it the declarations"
    hint = "restore the data directory from a backup, or start with an empty one"
    return UsageError("DS545", what, hint=hint)


def _used(files: Files, folder: str) -> bool:
    """Whether some engine has written there."""
    return any(files.exists(f"{folder}/{name}") for name in (MANIFEST, STREAMS))
