"""An archive as files, and the manifest that says which of them it consists of.

    manifest-NNNNNNNNNNNN.json    the newest one counts; it is written whole under another name and renamed
    index/NNNNNNNNNNNN/...        the files that the update of that number wrote
    landing/                      rows that no update has taken over yet (`landing`)
    lease.json                    who is updating it now (`lease`)

An update writes new files beside those that readers use, and then one new manifest: a reader sees all of it or nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa
import pyarrow.fs as pafs

from dsms.errors import UsageError
from dsms.sql.types import ALWAYS, Schema
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.schema import schema_of, told_of

VERSION = 1  # of this layout of files
KEPT = 2  # manifests whose files stay, so that readers of the last one can finish
INDEX, LANDING = "index", "landing"
_NAME = re.compile(r"manifest-(\d{12})\.json")


@dataclass(frozen=True, slots=True)
class IndexFile:
    """path   below the archive's folder
    sub    the sub-index that it is part of
    ts, exp, key  the smallest and largest of them (None: unknown, or only NULLs)
    """

    path: str
    sub: int
    rows: int
    bytes: int
    ts: tuple[int, int]
    exp: tuple[int, int]
    key: tuple[Any, Any] | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """number  of this manifest
    upto    rows inserted up to that instant are in the index, those that expired by then are not
    landed  the number of the last landed file that was taken over
    """

    name: str
    kind: Literal["stream", "query"]
    schema: Schema
    key: str | None
    layout: Layout
    lifetime: int | None
    number: int = 0
    upto: int = ALWAYS
    landed: int = 0
    files: tuple[IndexFile, ...] = ()
    version: int = VERSION

    @property
    def rows(self) -> int:
        return sum(f.rows for f in self.files)

    @property
    def bytes(self) -> int:
        return sum(f.bytes for f in self.files)

    def next(self, **changes: Any) -> Manifest:
        """The manifest after this one."""
        return replace(self, number=self.number + 1, **changes)

    def told(self) -> str:
        """As JSON."""
        body = {f: getattr(self, f) for f in ("name", "kind", "key", "lifetime", "number", "upto", "landed", "version")}
        body |= {"schema": told_of(self.schema), "layout": self.layout.told(), "files": [asdict(f) for f in self.files]}
        return json.dumps(body, indent=1)


def read_manifest(text: str, where: str) -> Manifest:
    """A manifest again.  Raises DS951 (damaged), DS952 (of a newer layout)."""
    try:
        body = json.loads(text)
        version = int(body["version"])
        if version > VERSION:
            message = f"{where} was written by a newer dsms (layout {version}, this one knows {VERSION})"
            raise UsageError("DS952", message, hint="use the newer dsms")
        files = tuple(
            IndexFile(f["path"], f["sub"], f["rows"], f["bytes"], _pair(f["ts"]), _pair(f["exp"]), _key(f["key"]))
            for f in body["files"]
        )
        fields = {f: body[f] for f in ("name", "kind", "key", "lifetime", "number", "upto", "landed")}
        return Manifest(schema=schema_of(body["schema"]), layout=Layout(**body["layout"]), files=files, **fields)
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError("DS951", f"{where} is damaged: {error!r}", hint="restore it from a backup") from None


def _pair(value: Any) -> tuple[int, int]:
    first, last = value
    return int(first), int(last)


def _key(value: Any) -> tuple[Any, Any] | None:
    return None if value is None else (value[0], value[1])


@dataclass(slots=True)
class Archive:
    """An archive's folder on whatever file system it is; any process may open it to read.

    url  as it was given: a path, or a URL that pyarrow and Spark both understand
    """

    url: str
    fs: pafs.FileSystem = field(init=False)
    root: str = field(init=False)

    def __post_init__(self) -> None:
        self.fs, self.root = file_system(self.url)

    def path(self, *parts: str) -> str:
        """A path of the file system."""
        return "/".join((self.root, *parts))

    def location(self, path: str) -> str:
        """A file below the archive's folder as Spark is told of it."""
        return f"{self.url.rstrip('/')}/{path}" if "://" in self.url else f"file://{self.path(path)}"

    def names(self, folder: str = "") -> list[str]:
        """The names in a folder below the archive's, sorted; none if it is not there."""
        return [i.base_name for i in self.infos(folder)]

    def infos(self, folder: str = "", recursive: bool = False) -> list[pafs.FileInfo]:
        with explained(self.url):
            selector = pafs.FileSelector(self.path(folder) if folder else self.root, recursive, allow_not_found=True)
            return sorted(self.fs.get_file_info(selector), key=lambda i: i.path)

    def exists(self, *parts: str) -> bool:
        with explained(self.url):
            return self.fs.get_file_info(self.path(*parts)).type != pafs.FileType.NotFound

    def read(self, *parts: str) -> bytes:
        with explained(self.path(*parts)), self.fs.open_input_file(self.path(*parts)) as file:
            return file.read()

    def write(self, data: bytes, *parts: str) -> None:
        """A small file, whole or not at all."""
        target = self.path(*parts)
        hidden = self.path(*parts[:-1], f".{parts[-1]}.part")
        with explained(target):
            self.fs.create_dir(self.path(*parts[:-1]) if parts[:-1] else self.root, recursive=True)
            with self.fs.open_output_stream(hidden) as out:
                out.write(data)
            self.fs.move(hidden, target)

    def remove(self, *parts: str) -> None:
        """A file or folder, if it is there."""
        with explained(self.path(*parts)):
            info = self.fs.get_file_info(self.path(*parts))
            if info.type == pafs.FileType.Directory:
                self.fs.delete_dir(info.path)
            elif info.type == pafs.FileType.File:
                self.fs.delete_file(info.path)

    # -- manifests ----------------------------------------------------------------------------------------------------

    def numbers(self) -> list[int]:
        """The numbers of the manifests that are there, ascending."""
        return sorted(int(m[1]) for n in self.names() if (m := _NAME.fullmatch(n)))

    def manifest(self, number: int | None = None) -> Manifest:
        """The newest manifest, or the one of that number.  Raises DS953 where there is none, DS951, DS952."""
        found = self.numbers() if number is None else [number]
        if not found:
            raise UsageError("DS953", f"there is no archive at {self.url}",
                             hint="name the folder that holds its manifest, or DATA/archive/NAME")  # fmt: skip
        name = _name(found[-1])
        return read_manifest(self.read(name).decode(), self.path(name))

    def publish(self, manifest: Manifest) -> None:
        """Make it the one that counts.  Raises DS954 if somebody else has published that number."""
        name = _name(manifest.number)
        if self.exists(name):
            raise UsageError("DS954", f"{self.url} was updated by somebody else meanwhile", hint="update it again")
        self.write(manifest.told().encode(), name)

    def sweep(self) -> list[str]:
        """Remove what the newest manifests do not name: files of older ones, and what killed jobs left."""
        numbers = self.numbers()
        kept = [self.manifest(n) for n in numbers[-KEPT:]]
        named = {f.path for m in kept for f in m.files}
        gone: list[str] = []
        for number in numbers[:-KEPT]:
            gone.append(_name(number))
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


def _name(number: int) -> str:
    return f"manifest-{number:012d}.json"


def file_system(url: str) -> tuple[pafs.FileSystem, str]:
    """The file system of a path or URL, and the path in it.  Raises DS955."""
    try:
        if "://" in url:
            fs, path = pafs.FileSystem.from_uri(url.replace("s3a://", "s3://", 1))
        else:
            import os

            fs, path = pafs.LocalFileSystem(), os.path.abspath(url)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise UsageError("DS955", f"{url} names no file system that can be used: {error}",
                         hint="a path, or a URL such as s3://bucket/folder") from None  # fmt: skip
    return fs, path.rstrip("/")


class explained:
    """Errors of a file system as DS955 that names the place."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, (OSError, pa.ArrowException)):
            raise UsageError("DS955", f"{self.where} can't be used: {error}",
                             hint="check that it exists, has room, and may be written") from error  # fmt: skip


def create(url: str, name: str, kind: Literal["stream", "query"], schema: Schema, key: str | None, layout: Layout,
           lifetime: int | None) -> Archive:  # fmt: skip
    """The archive at that place: made, or taken over if one of the same kind and columns is there.

    A column more is taken over (older rows have NULL).  Raises DS956 where a column has another type."""
    from dsms.storage.archive.schema import merged

    archive = Archive(url)
    if not archive.numbers():
        archive.publish(Manifest(name, kind, schema, key, layout, lifetime, 1))
        return archive
    found = archive.manifest()
    columns = merged(found.schema, schema, url)
    if (columns, key, lifetime) != (found.schema, found.key, found.lifetime):
        archive.publish(found.next(schema=columns, key=key, lifetime=lifetime))
    return archive
