"""What a job on an archive has to do: which files it reads, writes anew, drops and leaves (Golab
2006, Algorithm 1).

A job reads the files of `parts`, keeps rows that have not expired at `upto`, and writes them as
files of sub-indices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from dsms.sql.types import ALWAYS
from dsms.storage.archive.landing import LandedFile
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.manifest import IndexFile, Manifest


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """Files whose rows go to one partition of insertion times; `generation` None: each row to that
    of its `__ts`."""

    generation: int | None
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """layout, key  of what is written
    upto     the index holds then what landed up to that instant, and not what expired by then
    touched  the sub-indices that may change
    targets  those that may get files
    landed   files to take over;  damaged: files to set aside
    read, drop, keep  index files that are replaced, that have wholly expired, that stay
    rekeyed  the archive is to be clustered by `key` from now on
    """

    layout: Layout
    key: str | None
    upto: int
    touched: tuple[int, ...]
    targets: tuple[int, ...]
    parts: tuple[PartitionFiles, ...]
    landed: tuple[LandedFile, ...] = ()
    damaged: tuple[LandedFile, ...] = ()
    read: tuple[IndexFile, ...] = ()
    drop: tuple[IndexFile, ...] = ()
    keep: tuple[IndexFile, ...] = ()
    rekeyed: bool = False

    @property
    def rows(self) -> int:
        """Rows of the files that are read."""
        return sum(f.rows for f in self.read) + sum(f.rows for f in self.landed)

    @property
    def bytes(self) -> int:
        """Bytes of the files that are read."""
        return sum(f.bytes for f in self.read) + sum(f.bytes for f in self.landed)

    def done(self, newest: Manifest, made: Iterable[IndexFile]) -> Manifest:
        """The manifest when the job is done."""
        last = max([newest.landed, *(f.number for f in self.landed)])
        files = tuple(sorted((*self.keep, *made), key=lambda f: (f.sub, f.path)))
        key = self.key if self.rekeyed else newest.key
        if key != self.key:  # declared anew meanwhile
            files = tuple(replace(f, key=None) for f in files)
        layout = self.layout.living(newest.lifetime)
        return replace(newest, files=files, upto=self.upto, landed=last, layout=layout, key=key)

    def changes(self, manifest: Manifest) -> bool:
        """Whether there will be another manifest."""
        declared = (self.layout, self.upto) != (manifest.layout, manifest.upto)
        rekeyed = self.rekeyed and self.key != manifest.key
        return declared or rekeyed or bool(self.landed or self.read or self.drop)


def update_work(
    manifest: Manifest, landed: Sequence[LandedFile], known: int, upto: int | None = None
) -> Work | None:
    """An update to the last step of Δ that is over.  None: there is nothing to do.

    landed  files that the index has not taken over;  known: everything up to that instant has
            landed
    upto    not beyond that instant"""
    layout, kind = manifest.layout, manifest.kind
    damaged = tuple(f for f in landed if f.damaged is not None)
    known = known if upto is None else min(upto, known)
    end = ALWAYS if known == ALWAYS else layout.start(known + 1) - 1
    # none is left behind
    ripe = takewhile(lambda f: f.damaged is not None or f.mark <= end, landed)
    taken = tuple(f for f in ripe if f.damaged is None)
    after = manifest.upto
    if after == ALWAYS:
        after = min([layout.start(f.inserted(kind)) - 1 for f in taken], default=end - layout.every)
    if end <= after:
        nothing = Work(
            layout, manifest.key, manifest.upto, (), (), (), damaged=damaged, keep=manifest.files
        )
        return nothing if damaged else None
    into = {f.number: layout.generation(f.inserted(kind)) for f in taken}
    inserting = {
        g * layout.expirations + e for g in into.values() for e in range(layout.expirations)
    }
    touched = set(layout.touched(after, end))
    drop = tuple(f for f in manifest.files if f.exp[1] <= end)
    alive = [f for f in manifest.files if f.exp[1] > end and f.sub in touched]
    read = tuple(f for f in alive if _rewritten(f, layout, end, f.sub in inserting))
    gone = {*drop, *read}
    keep = tuple(f for f in manifest.files if f not in gone)
    parts = _parts(
        [(into[f.number], f.path) for f in taken] + [(layout.place(f.sub)[0], f.path) for f in read]
    )
    targets = tuple(sorted(inserting | {f.sub for f in read}))
    changed = tuple(sorted(touched | {f.sub for f in drop}))
    return Work(
        layout, manifest.key, end, changed, targets, parts, taken, damaged, read, drop, keep
    )


def _rewritten(file: IndexFile, layout: Layout, upto: int, inserted: bool) -> bool:
    """Whether an update replaces a file of which some rows live."""
    dying = file.exp[0] <= upto
    if layout.strategy == "rebuild":
        return inserted or dying
    if not dying or layout.eager:
        return dying
    return (sum(file.exp) // 2 if file.half is None else file.half) <= upto


def rewrite_work(
    manifest: Manifest,
    layout: Layout | None = None,
    key: str | None = None,
    subs: Iterable[int] | None = None,
) -> Work:
    """All files of those sub-indices (None: of all) anew, one file each, without what has expired.

    layout, key  if another layout is wanted, or the same one with another key; then all files are
                 written"""
    if layout is not None:
        everything = tuple(range(layout.count))
        whole = (
            (PartitionFiles(None, tuple(f.path for f in manifest.files)),) if manifest.files else ()
        )
        return Work(
            layout,
            key,
            manifest.upto,
            everything,
            everything,
            whole,
            read=manifest.files,
            rekeyed=True,
        )
    chosen = set(range(manifest.layout.count) if subs is None else subs)
    read = tuple(f for f in manifest.files if f.sub in chosen)
    keep = tuple(f for f in manifest.files if f.sub not in chosen)
    parts = _parts([(manifest.layout.place(f.sub)[0], f.path) for f in read])
    targets = tuple(sorted({f.sub for f in read}))
    return Work(
        manifest.layout, manifest.key, manifest.upto, targets, targets, parts, read=read, keep=keep
    )


def _parts(files: Iterable[tuple[int, str]]) -> tuple[PartitionFiles, ...]:
    paths: dict[int, list[str]] = {}
    for generation, path in files:
        paths.setdefault(generation, []).append(path)
    return tuple(PartitionFiles(g, tuple(p)) for g, p in sorted(paths.items()))
