"""Whether a data folder is encrypted, and whether a key is its own: told before anything is read or
written.

    FOLDER/key.json     the folder's random id, and a number by which it knows its key
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
from pathlib import Path

from dsms.errors import UsageError
from dsms.state_key import checked
from dsms.storage.encryption import FolderKey
from dsms.storage.files import RealFiles

NAME = "key.json"
VERSION = 1
ID = 16  # bytes
REKEY = "dsms rekey"


def unlock(folder: str, state_key: bytes | None, used: bool) -> FolderKey | None:
    """The key of the data folder, made for it if it is not `used` yet; None: it has none, and none
    is given.

    Raises DS545 (key.json is damaged), DS547 (encrypted, no key is given), DS548 (another one is),
    DS549 (one is given, and the folder is not encrypted), DS556 (no key)."""
    path = f"{folder}/{NAME}"
    there = os.path.exists(path)
    if state_key is None:
        if there:
            raise encrypted_error(folder)
        return None
    key = checked(state_key)
    if there:
        return _known(path, key)
    if used:
        what = f"the data folder {folder} is not encrypted, or its {NAME} is missing"
        hint = f"`{REKEY} {folder} --to FILE` encrypts it; or start without --state-key-file"
        raise UsageError("DS549", what, hint=hint)
    return make(folder, key)


def encrypted_error(folder: str | Path) -> UsageError:
    """That no key is given."""
    return UsageError(
        "DS547",
        f"the data folder {folder} is encrypted, and no key is given",
        hint="give --state-key-file FILE or DSMS_STATE_KEY_FILE; in Python, Engine(state_key=...)",
    )


def make(folder: str, state_key: bytes) -> FolderKey:
    """A new key for a folder, and its key.json."""
    name = secrets.token_bytes(ID)
    found = FolderKey.of(checked(state_key), name)
    record = {"version": VERSION, "folder": name.hex(), "check": found.check().hex()}
    files = RealFiles()
    files.write_atomic(f"{folder}/{NAME}", [json.dumps(record).encode()])
    return found


def _known(path: str, key: bytes) -> FolderKey:
    try:
        record = json.loads(RealFiles().read(path))
        version, name = record["version"], bytes.fromhex(record["folder"])
        check = bytes.fromhex(record["check"])
    except (ValueError, KeyError, TypeError) as error:
        what = f"{path} is damaged: {error}"
        raise UsageError("DS545", what, hint="restore it from a backup") from None
    if version != VERSION:
        what = f"{path} was written by another version of dsms"
        raise UsageError("DS546", what, hint="run that one")
    found = FolderKey.of(key, name)
    if not hmac.compare_digest(found.check(), check):
        what = f"the key is not that of the data folder {os.path.dirname(path)}"
        hint = "give the one that the folder was made with, or last given by `dsms rekey`"
        raise UsageError("DS548", what, hint=hint)
    return found
