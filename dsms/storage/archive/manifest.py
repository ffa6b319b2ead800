"""An archive as files, and the manifest that says which of them it consists of.

    manifest-NNNNNNNNNNNN.json    the newest one counts; it is written whole under another name,
                                  then named
    index/NNNNNNNNNNNN-token/...  the files that the update of that number wrote
    landing/                      rows that no update has taken over yet (`landing`)
    lease.json                    which job is updating it now (`lease`)

An update writes new files beside those that readers use, and then one new manifest: a reader sees
all of it or nothing.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

import pyarrow.fs as pafs

from dsms.errors import UsageError
from dsms.sql.types import ALWAYS, Schema
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.schema import (
    Filled,
    merged,
    names_of,
    recalled,
    renamed,
    schema_of,
    schema_record,
    told_value,
    value_of,
)
from dsms.storage.archive.store import Store, file_system, operation

__all__ = [
    "INDEX",
    "LANDING",
    "Archive",
    "IndexFile",
    "Manifest",
    "create",
    "explained",
    "file_system",
]

explained = operation
VERSION = 2  # of this layout of files: the highest one
FILLED = 2  # since which there are columns with a default; without them it is 1
KEPT = 2  # states whose files stay, so that readers of the last one can finish
ATTEMPTS = 5  # to publish, while declarations change
INDEX, LANDING = "index", "landing"
_NAME = re.compile(r"manifest-(\d{12})\.json")
_PLAIN = ("name", "kind", "key", "lifetime", "number", "upto", "landed")
Kind = Literal["stream", "query"]


@dataclass(frozen=True, slots=True)
class IndexFile:
    """path   below the archive's folder
    sub    the sub-index that it is part of
    ts, exp, key  the smallest and largest of them (key None: unknown, or only NULLs; key as it is
                  in Parquet, but instants are µs)
    half   an instant at which half of the rows have expired, about; None: unknown
    """

    path: str
    sub: int
    rows: int
    bytes: int
    ts: tuple[int, int]
    exp: tuple[int, int]
    key: tuple[Any, Any] | None = None
    half: int | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """number  of this manifest
    key     the column that files are clustered by; None: by insertion time
    upto    rows that landed up to that instant are in the index, those that expired by then are not
    landed  the number of the last landed file that was taken over
    """

    name: str
    kind: Kind
    schema: Schema
    key: str | None
    layout: Layout
    lifetime: int | None
    number: int = 0
    upto: int = ALWAYS
    landed: int = 0
    files: tuple[IndexFile, ...] = ()
    version: int = 1

    @property
    def rows(self) -> int:
        """Rows of the files, expired ones that are still there among them."""
        return sum(f.rows for f in self.files)

    @property
    def bytes(self) -> int:
        return sum(f.bytes for f in self.files)

    def next(self, **changes: Any) -> Manifest:
        """The manifest after this one."""
        return replace(self, number=self.number + 1, **changes)

    def serialized(self) -> str:
        """As JSON, with a checksum."""
        filled = any(isinstance(f.default, Filled) for f in self.schema)
        version = FILLED if filled else self.version
        body: dict[str, Any] = {"version": version} | {f: getattr(self, f) for f in _PLAIN}
        body |= {
            "schema": schema_record(self.schema),
            "layout": self.layout.serialized(),
            "files": [_file_record(f) for f in self.files],
        }
        return json.dumps(body | {"check": _check(body)}, indent=1)


def read_manifest(text: str, where: str) -> Manifest:
    """A manifest again.  Raises DS951 (damaged), DS952 (of another layout of files)."""
    try:
        body = json.loads(text)
        _check_version(int(body["version"]), where)
        if body.pop("check") != _check(body):
            raise ValueError("its checksum is wrong")
        files = tuple(map(_file, body["files"]))
        plain = {f: body[f] for f in _PLAIN}
        return Manifest(
            schema=schema_of(body["schema"]), layout=Layout(**body["layout"]), files=files, **plain
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(
            "DS951", f"{where} is damaged: {error or repr(error)}", hint="restore it from a backup"
        ) from None


def _check_version(version: int, where: str) -> None:
    if 1 <= version <= VERSION:
        return
    newer = version > VERSION
    message = (
        f"{where} was written by {'a newer' if newer else 'an older'} dsms (layout "
        f"{version}, here {VERSION})"
    )
    hint = (
        "use the newer dsms"
        if newer
        else "export it with the older dsms (dsms archive export), and load that"
    )
    raise UsageError("DS952", message, hint=hint)


def _check(body: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True).encode())


def _file_record(file: IndexFile) -> dict[str, Any]:
    return asdict(file) | {"key": None if file.key is None else [told_value(v) for v in file.key]}


def _file(record: dict[str, Any]) -> IndexFile:
    known = {f.name: record[f.name] for f in fields(IndexFile)}
    key = None if record["key"] is None else tuple(map(value_of, record["key"]))
    return IndexFile(
        **{**known, "ts": tuple(record["ts"]), "exp": tuple(record["exp"]), "key": key}
    )


@dataclass(slots=True)
class Archive(Store):
    """An archive's folder on whatever file system it is; any process may open it to read."""

    def numbers(self) -> list[int]:
        """The numbers of the manifests that are there, ascending."""
        return sorted(int(m[1]) for n in self.names() if (m := _NAME.fullmatch(n)))

    def manifest(self, number: int | None = None) -> Manifest:
        """The newest manifest, or the one of that number.  If the newest is damaged the one before
        it counts, whose files are all there still.  Raises DS953 where there is none, DS951,
        DS952."""
        if number is not None:
            return self._manifest(number)
        found = self.numbers()
        if not found:
            raise UsageError(
                "DS953",
                f"there is no archive at {self.url}",
                hint="name the folder that holds its manifest, or DATA/archive/NAME",
            )
        try:
            return self._manifest(found[-1])
        except UsageError as error:
            if error.code != "DS951" or len(found) == 1:
                raise
            return self._manifest(found[-2])

    def _manifest(self, number: int) -> Manifest:
        name = _name(number)
        return read_manifest(self.read(name).decode("utf-8", "replace"), self.path(name))

    def states(self) -> list[Manifest]:
        """The manifests that can be read, newest first."""
        out = []
        for number in reversed(self.numbers()):
            try:
                out.append(self._manifest(number))
            except UsageError as error:
                if error.code not in ("DS951", "DS955"):
                    raise
        return out

    def publish(self, manifest: Manifest) -> None:
        """Make it the one that counts.  Raises DS954 if that number has been published by another
        job."""
        if not self._published(manifest):
            raise self._overtaken()

    def commit(self, base: Manifest, change: Callable[[Manifest], Manifest]) -> Manifest:
        """Publish what `change` makes of the newest manifest; only its declaration may differ from
        `base`.

        Raises DS954 if another job has changed the index meanwhile."""
        for _ in range(ATTEMPTS):
            newest = self.manifest()
            if (newest.files, newest.layout, newest.landed) != (
                base.files,
                base.layout,
                base.landed,
            ):
                break
            done = replace(change(newest), number=self.numbers()[-1] + 1)
            if self._published(done):
                return done
        raise self._overtaken()

    def _published(self, manifest: Manifest) -> bool:
        return self.write(manifest.serialized().encode(), _name(manifest.number), new=True)

    def _overtaken(self) -> UsageError:
        return UsageError(
            "DS954", f"{self.url} was updated by somebody else meanwhile", hint="do it again"
        )

    def sweep(self) -> list[str]:
        """Remove what the last `KEPT` states of the index don't name: files of older ones, and what
        killed jobs left.

        Only for the holder of the lease."""
        kept = _last(self.states())
        named = {f.path for m in kept for f in m.files}
        oldest = min((m.number for m in kept), default=0)
        gone = [_name(n) for n in self.numbers() if n < oldest]
        gone += [n for n in self.names() if n.startswith(".manifest-")]
        for info in self.infos(INDEX, recursive=True):
            path = info.path[len(self.root) + 1 :]
            if info.type == pafs.FileType.File and path not in named:
                gone.append(path)
        for path in gone:
            self.remove(path)
        self._sweep_folders(named)
        return gone

    def _sweep_folders(self, named: Iterable[str]) -> None:
        needed = {"/".join(p.split("/")[:2]) for p in named}
        for info in self.infos(INDEX):
            path = info.path[len(self.root) + 1 :]
            if info.type == pafs.FileType.Directory and path not in needed:
                self.remove(path)


def _last(states: list[Manifest]) -> list[Manifest]:
    """The newest states up to the `KEPT`th that has other files (declarations change without
    that)."""
    out: list[Manifest] = []
    for state in states:
        if len({m.files for m in [*out, state]}) > KEPT:
            break
        out.append(state)
    return out


def _name(number: int) -> str:
    return f"manifest-{number:012d}.json"


def create(
    url: str,
    name: str,
    kind: Kind,
    schema: Schema,
    key: str | None,
    layout: Layout,
    lifetime: int | None,
) -> Archive:
    """The archive at that place: made, or taken over if one of the same columns is there.

    Of one that is there the layout stays (`dsms archive` has the command that changes it); a column
    more is taken over (older rows have NULL), a column less stays (new rows have NULL), another key
    is that of files written from now on.  Raises DS956 where a column has another type."""
    archive = Archive(url)
    if not archive.numbers():
        first = Manifest(name, kind, schema, key, layout, lifetime, 1)
        if archive._published(first):
            return archive
    found = archive.manifest()
    if _redeclared(found, schema, key, lifetime, url) != found:
        archive.commit(found, lambda m: _redeclared(m, schema, key, lifetime, url))
    return archive


def _redeclared(
    found: Manifest, schema: Schema, key: str | None, lifetime: int | None, url: str
) -> Manifest:
    columns = merged(found.schema, schema, url)
    files = found.files if key == found.key else tuple(replace(f, key=None) for f in found.files)
    layout = found.layout.living(lifetime)
    return replace(found, schema=columns, key=key, lifetime=lifetime, files=files, layout=layout)


def call(archive: Archive, schema: Schema, old: str = "", new: str = "") -> None:
    """The archive's columns are called as these are, and `old` is `new`.  Raises DS954, DS439 where
    files have another column of that name."""
    found = archive.manifest()
    taken = [f.name for f in found.schema if new in names_of(f) and old not in names_of(f)]
    if taken:
        message = f"files of the archive {archive.url} have a column {new}, which is {taken[0]} now"
        raise UsageError("DS439", message, hint="choose another name")

    def called(manifest: Manifest) -> Manifest:
        before = manifest.schema
        columns = tuple(renamed(f, new) if f.name == old else f for f in before)
        after = columns if old else recalled(before, schema)
        key = next(
            (b.name for a, b in zip(before, after, strict=True) if a.name == manifest.key), None
        )
        return replace(manifest, schema=after, key=key)

    if called(found) != found:
        archive.commit(found, called)


def widen(archive: Archive, schema: Schema) -> None:
    """The archive has a column more, the last of these, which says from when on its files have it.
    Raises DS954, DS956."""
    archive.commit(
        archive.manifest(), lambda m: replace(m, schema=merged(m.schema, schema, archive.url))
    )
