"""Checkpoints: the whole state of an engine at a record of its journal, and the manifest that says
which there are.

The two newest are kept, with what the journal holds since the older one: should the newest turn out
damaged, the other one leads to the same state, only more slowly.  The manifest is replaced in one
step, so a crash at any moment finds either the old set of files or the new one; files that no
manifest names are swept.  The manifest holds the digest of each state, so that a sound file of
another time or folder, copied into a state's place, is not taken for it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import xxhash

from dsms.errors import DsmsError, UsageError
from dsms.storage.chains import Damage
from dsms.storage.files import Files

MANIFEST = "manifest.json"
VERSION = 2
KEPT = 2


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """path      of the state, below the folder
    lsn       the last record of the journal that is part of it
    segments  sealed sub-windows that it refers to: paths below the folder
    tails     of each stream the last record that is part of it
    damaged   streams that have lost something
    catalog   the last change of the catalog that is part of it
    digest    of the state's bytes; empty in manifests that were written without
    """

    path: str
    lsn: int
    segments: tuple[str, ...] = ()
    tails: Mapping[str, int] = field(default_factory=dict)
    damaged: Mapping[str, Damage] = field(default_factory=dict)
    catalog: int = 0
    digest: str = ""


@dataclass(slots=True)
class Checkpoints:
    """The checkpoints of a folder, oldest first."""

    files: Files
    folder: str
    kept: tuple[Checkpoint, ...] = ()

    @property
    def oldest(self) -> int:
        """The journal is needed from the record after this one on: all of it while there is but
        one, which may turn out damaged."""
        return self.kept[0].lsn if len(self.kept) >= KEPT else 0

    def load(self) -> None:
        """Read the manifest, if there is one.  Raises DS545 (damaged) or DS546 (another
        version's)."""
        path = f"{self.folder}/{MANIFEST}"
        if not self.files.exists(path):
            return
        try:
            record = json.loads(self._read(path))
            body = record["checkpoints"]
            if record["crc"] != _crc(body):
                raise ValueError("its checksum is not that of its contents")
            if record["version"] != VERSION:
                age = "a newer" if record["version"] > VERSION else "an older"
                raise UsageError(
                    "DS546", f"{path} was written by {age} version of dsms", hint="run that one"
                )
            self.kept = tuple(map(_checkpoint, body))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(
                "DS545",
                f"{path} is damaged: {error}",
                hint="restore the data directory from a backup",
            ) from None

    def _read(self, path: str) -> bytes:
        try:
            return bytes(self.files.read(path))
        except DsmsError as error:
            raise ValueError(error.message) from None

    def save(self, made: Checkpoint, state: Iterable[Any]) -> int:
        """Write a checkpoint down and make it the newest; the bytes of its state."""
        lsn, seen = made.lsn, _Seen()
        self.files.write_atomic(f"{self.folder}/{made.path}", seen.of(state))
        made = replace(made, digest=seen.digest.hexdigest())
        kept = (*[c for c in self.kept if c.lsn != lsn], made)[-KEPT:]
        body = [asdict(c) | {"segments": list(c.segments)} for c in kept]
        text = json.dumps({"version": VERSION, "checkpoints": body, "crc": _crc(body)})
        self.files.write_atomic(f"{self.folder}/{MANIFEST}", [text.encode()])
        self.kept = kept
        return seen.bytes

    def states(self) -> list[tuple[Checkpoint, Any | DsmsError]]:
        """What can be read of the checkpoints, newest first: their bytes, or what is wrong."""
        out: list[tuple[Checkpoint, Any]] = []
        for checkpoint in reversed(self.kept):
            try:
                out.append((checkpoint, self._state(checkpoint)))
            except DsmsError as error:
                out.append((checkpoint, error))
        return out

    def _state(self, checkpoint: Checkpoint) -> Any:
        path = f"{self.folder}/{checkpoint.path}"
        state = self.files.map(path)
        if checkpoint.digest and xxhash.xxh3_128(state).hexdigest() != checkpoint.digest:
            why = (
                f"the state in {path} is damaged or another's: it is not what the manifest says "
                "was written"
            )
            raise UsageError("DS545", why, hint="restore it from a backup")
        return state

    def sweep(self) -> None:
        """Remove states that the manifest does not name."""
        named = {c.path for c in self.kept}
        for name in self.files.list(self.folder):
            if name.startswith("checkpoint-") and name not in named:
                self.files.remove(f"{self.folder}/{name}")

    def segments(self) -> set[str]:
        """All sealed sub-windows that some checkpoint refers to."""
        return {s for c in self.kept for s in c.segments}

    def damaged(self) -> set[str]:
        """All streams that are damaged in some checkpoint."""
        return {s for c in self.kept for s in c.damaged}


def _checkpoint(record: dict[str, Any]) -> Checkpoint:
    damaged = {stream: Damage(**damage) for stream, damage in record["damaged"].items()}
    segments, digest = tuple(record["segments"]), record.get("digest", "")
    return Checkpoint(
        record["path"], record["lsn"], segments, record["tails"], damaged, record["catalog"], digest
    )


def path_of(lsn: int) -> str:
    """Where the state of a checkpoint lies, below the folder."""
    return f"checkpoint-{lsn:020d}.state"


@dataclass(slots=True)
class _Seen:
    """What has been written of a state."""

    bytes: int = 0
    digest: Any = field(default_factory=xxhash.xxh3_128)

    def of(self, buffers: Iterable[Any]) -> Iterator[Any]:
        """The buffers, as they are asked for."""
        for buffer in buffers:
            self.digest.update(buffer)
            self.bytes += memoryview(buffer).nbytes
            yield buffer


def _crc(body: Any) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True).encode())
