"""Which files of an archive a query has to read: by insertion time, by expiration, by key (Golab
2006, §4.3.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dsms.sql.types import ALWAYS, FOREVER
from dsms.storage.archive.landing import LandedFile
from dsms.storage.archive.manifest import IndexFile, Manifest


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys that are asked for: between two bounds (None: open), or one of some values.  NULL keys
    are never meant."""

    low: Any = None
    high: Any = None
    values: tuple[Any, ...] | None = None

    def meets(self, least: Any, most: Any) -> bool:
        """Whether a file whose keys lie between those may hold one."""
        try:
            if self.values is not None:
                return any(least <= v <= most for v in self.values)
            return (self.low is None or most >= self.low) and (
                self.high is None or least <= self.high
            )
        except TypeError:  # bounds of another kind: no help
            return True


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What is read and what is not.  since, upto: rows with `__ts` in (since, upto]; as_of: with
    `__exp` > as_of.  damaged: landed files that can't be read."""

    files: tuple[IndexFile, ...]
    landed: tuple[LandedFile, ...]
    since: int
    upto: int
    as_of: int
    all_files: int
    all_bytes: int
    all_subs: int
    damaged: tuple[LandedFile, ...] = ()

    @property
    def paths(self) -> list[str]:
        return [f.path for f in self.files] + [f.path for f in self.landed]

    @property
    def read_bytes(self) -> int:
        return _bytes(self.files) + _bytes(self.landed)

    @property
    def skipped_files(self) -> int:
        return self.all_files - len(self.files) - len(self.landed)

    @property
    def skipped_bytes(self) -> int:
        return self.all_bytes - self.read_bytes

    @property
    def subs(self) -> tuple[int, ...]:
        """The sub-indices that are read."""
        return tuple(sorted({f.sub for f in self.files}))


def plan(
    manifest: Manifest,
    landed: Iterable[LandedFile] = (),
    since: int = ALWAYS,
    upto: int = FOREVER,
    as_of: int = ALWAYS,
    key: KeyRange | None = None,
) -> ReadPlan:
    """The files that may hold rows inserted in (since, upto], not expired at `as_of`, with such a
    key."""
    fresh = [f for f in landed if f.number > manifest.landed]
    waiting = tuple(f for f in fresh if f.damaged is None)
    damaged = tuple(f for f in fresh if f.damaged is not None)
    wanted = _meeting(since, upto, as_of)
    files = tuple(
        f
        for f in manifest.files
        if wanted(f) and (key is None or f.key is None or key.meets(*f.key))
    )
    count, size = len(manifest.files) + len(waiting), _bytes(manifest.files) + _bytes(waiting)
    subs = len({f.sub for f in manifest.files})
    return ReadPlan(
        files,
        tuple(f for f in waiting if wanted(f)),
        since,
        upto,
        as_of,
        count,
        size,
        subs,
        damaged,
    )


def _bytes(files: Sequence[IndexFile] | Sequence[LandedFile]) -> int:
    return sum(f.bytes for f in files)


def _meeting(since: int, upto: int, as_of: int) -> Callable[[IndexFile | LandedFile], bool]:
    return lambda f: f.rows > 0 and f.ts[1] > since and f.ts[0] <= upto and f.exp[1] > as_of
