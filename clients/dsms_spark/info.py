"""What an archive holds, from its manifest and its landing folder; no Spark, and no row is read
unless files are to be verified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dsms.sql.types import ALWAYS, FOREVER
from dsms.storage.archive.landing import LandedFile, Landing, unreadable
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.manifest import Archive, IndexFile, Manifest


@dataclass(frozen=True, slots=True)
class SubIndex:
    """One sub-index.  generation, expiration: its place in the layout;  expired: about how many of
    its rows, 0..1."""

    generation: int
    expiration: int
    files: int
    rows: int
    bytes: int
    expired: float


@dataclass(frozen=True, slots=True)
class Info:
    """An archive at a moment.

    subs     one for each of the layout's, in order
    upto     what landed up to that instant is in the index (None: nothing yet);  landed: up to
             which it has landed
    expired  about how many of the index's rows have expired at `landed`, 0..1
    waiting  landed files that no update has taken over;  damaged: those that can't be read, and why
    """

    url: str
    manifest: Manifest
    subs: tuple[SubIndex, ...]
    upto: int | None
    landed: int | None
    expired: float
    waiting: tuple[LandedFile, ...]
    damaged: tuple[str, ...]

    @property
    def layout(self) -> Layout:
        return self.manifest.layout

    def fields(self) -> dict[str, Any]:
        """As a map of plain values; instants and lengths of time in µs."""
        m, layout = self.manifest, self.layout
        return {
            "name": m.name, "kind": m.kind, "folder": self.url, "number": m.number,
            "columns": [[f.name, str(f.type)] for f in m.schema], "cluster_by": m.key,
            "lifetime": m.lifetime,
            "layout": {"generations": layout.generations, "expirations": layout.expirations,
                       "every": layout.every,
                       "span": layout.span, "order": layout.order, "strategy": layout.strategy},
            "upto": self.upto, "landed": self.landed, "rows": m.rows, "bytes": m.bytes,
            "files": len(m.files),
            "expired": round(self.expired, 3),
            "subs": [
                {"generation": s.generation, "expiration": s.expiration, "files": s.files,
                 "rows": s.rows,
                 "bytes": s.bytes, "expired": round(s.expired, 3)} for s in self.subs
            ],
            "waiting": {"files": len(self.waiting), "rows": sum(f.rows for f in self.waiting),
                        "bytes": sum(f.bytes for f in self.waiting)},
            "damaged": list(self.damaged),
        }  # a table  # fmt: skip


def info(archive: Archive, verify: bool = False) -> Info:
    """Look at an archive; `verify`: read every file, and check it.  Raises DS951..DS955."""
    landing, manifest = Landing(archive), archive.manifest()
    upto, files = landing.upto(), landing.files(manifest.landed)
    now = max(upto, manifest.upto)
    damaged = [f"{archive.path(f.path)}: {f.damaged}" for f in files if f.damaged is not None]
    aside = [f"{archive.path(path)}: set aside by an update" for _, path in landing.damaged()]
    return Info(
        archive.url,
        manifest,
        _subs(manifest, now),
        _known(manifest.upto),
        _known(upto),
        _expired(manifest.files, now),
        tuple(f for f in files if f.damaged is None),
        (
            *damaged,
            *aside,
            *amiss(archive, manifest, verify),
            *(_unread(archive, files) if verify else ()),
        ),
    )


def amiss(archive: Archive, manifest: Manifest, verify: bool = False) -> Iterator[str]:
    """Files of the index that are not as they were written: missing, of another size, or (`verify`)
    unreadable."""
    there = {i.path: i.size for i in archive.infos("index", recursive=True)}
    for file in manifest.files:
        path = archive.path(file.path)
        if path not in there:
            yield f"{path}: it is missing"
        elif there[path] != file.bytes:
            yield f"{path}: it has {there[path]} bytes instead of {file.bytes}"
        elif verify and (why := unreadable(archive, file.path)) is not None:
            yield f"{path}: {why}"


def _unread(archive: Archive, landed: Sequence[LandedFile]) -> Iterator[str]:
    """Landed files that look whole and are not."""
    for file in landed:
        if file.damaged is None and (why := unreadable(archive, file.path)) is not None:
            yield f"{archive.path(file.path)}: {why}"


def _known(instant: int) -> int | None:
    return None if instant == ALWAYS else instant


def _subs(manifest: Manifest, now: int) -> tuple[SubIndex, ...]:
    out = []
    for sub in range(manifest.layout.count):
        files = [f for f in manifest.files if f.sub == sub]
        rows, size = sum(f.rows for f in files), sum(f.bytes for f in files)
        out.append(
            SubIndex(*manifest.layout.place(sub), len(files), rows, size, _expired(files, now))
        )
    return tuple(out)


def _expired(files: tuple[IndexFile, ...] | list[IndexFile], now: int) -> float:
    rows = sum(f.rows for f in files)
    return sum(f.rows * share(f, now) for f in files) / rows if rows else 0.0


def share(file: IndexFile, now: int) -> float:
    """How many of a file's rows have expired, about: their expiration times are taken to lie evenly
    on both sides of the instant at which half have."""
    (low, high), half = file.exp, file.half
    if now < low:
        return 0.0
    if now >= high:
        return 1.0
    if half is None or not low <= half <= high:
        return 0.0 if high == FOREVER else (now - low) / (high - low)
    if now < half:
        return 0.5 * (now - low) / (half - low)
    return 0.5 if high == FOREVER else 0.5 + 0.5 * (now - half) / (high - half)
