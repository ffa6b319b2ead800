"""Where rows land: the landing folder of an archive (`dsms.storage.archive`), as the engine uses
it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from dsms.archiving.waiting import Leaving, table_of
from dsms.errors import UsageError
from dsms.sql.types import Schema
from dsms.storage.archive.choose import Load, choose
from dsms.storage.archive.landing import Landing
from dsms.storage.archive.layout import Layout
from dsms.storage.archive.manifest import Archive, call, create, widen
from dsms.storage.archive.schema import MARKS, Filled, names_of, recalled

MINUTE, HOUR = 60_000_000, 3_600_000_000
STEPS = 24  # of a short lifetime, where no UPDATE EVERY is said


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a declaration asks of an archive: FOR (None: for good), CLUSTER BY, UPDATE EVERY (None:
    as fits)."""

    name: str
    kind: Literal["stream", "query"]
    schema: Schema
    lifetime: int | None
    key: str | None
    every: int | None

    def layout(self) -> Layout:
        """That of an archive that is new."""
        every = self.every
        if every is None:
            every = (
                HOUR if self.lifetime is None else max(MINUTE, min(HOUR, self.lifetime // STEPS))
            )
        return choose(Load(0), every, self.lifetime)


@dataclass(frozen=True, slots=True)
class Index:
    """What the index of an archive holds, and how many landed files it has not taken over."""

    upto: int
    rows: int
    nbytes: int
    layout: str
    landed: int


@dataclass(slots=True)
class Place:
    """layout   of the archive: its steps
    columns  of its files, which may be more than the stream or query has now
    upto     everything up to that instant has landed;  applied: ... and is in the index, when it
             was opened
    """

    archive: Archive
    landing: Landing = field(init=False)
    layout: Layout = field(init=False)
    columns: Schema = field(init=False)
    upto: int = field(init=False)
    applied: int = field(init=False)

    def __post_init__(self) -> None:
        self.landing = Landing(self.archive)
        self.refresh()
        self.landing.sweep()
        self.upto = self.landing.upto()

    def refresh(self) -> None:
        """Look at the manifest: the layout may have been changed."""
        manifest = self.archive.manifest()
        self.layout, self.columns, self.applied = manifest.layout, manifest.schema, manifest.upto

    def land(self, rows: Sequence[Leaving], schema: Schema, upto: int) -> None:
        """Rows with those columns; with them everything up to `upto` has landed.  Raises DsmsError,
        with nothing changed."""
        self.landing.write(table_of(rows, schema, self.columns) if rows else None, upto)
        self.upto = upto

    def call(self, schema: Schema, old: str = "", new: str = "") -> None:
        """Columns are called as these are, and `old` is called `new`.  Raises DS439, DS95x."""
        if old or recalled(self.columns, schema) != self.columns:
            call(self.archive, schema, old, new)
            self.refresh()

    def widen(self, schema: Schema, upto: int) -> None:
        """The rows have a column more, the last of these; what has landed, up to that instant, has
        its default.  Raises DS574, DS95x."""
        check_columns(self.archive.manifest().name, schema, "stream")
        *others, column = schema
        for f in self.columns:
            if column.name in names_of(f)[1:]:
                what = f"files of the archive have a column {column.name}, which is {f.name} now"
                raise UsageError("DS574", what, hint="choose another name")
        value = None if column.default is None else column.default.value
        default = None if value is None else Filled(value, upto)
        widen(self.archive, (*others, replace(column, default=default)))
        self.refresh()

    def index(self) -> Index:
        """What the archive holds now."""
        manifest = self.archive.manifest()
        waiting = self.landing.waiting(manifest.landed)
        return Index(manifest.upto, manifest.rows, manifest.bytes, str(manifest.layout), waiting)


def open_place(url: str, wanted: Wanted) -> Place:
    """The archive there, made or taken over.

    Raises DS574 for columns that can't be archived, DS575 where the archive of something else is,
    DS95x."""
    check_columns(wanted.name, wanted.schema, wanted.kind)
    there = Archive(url)
    if there.numbers():
        found = there.manifest()
        if found.kind != wanted.kind:
            raise UsageError(
                "DS575",
                f"{url} is the archive of a {found.kind}, and {wanted.name} is a {wanted.kind}",
                hint="choose another name, or move that folder away",
            )
    return Place(
        create(
            url,
            wanted.name,
            wanted.kind,
            wanted.schema,
            wanted.key,
            wanted.layout(),
            wanted.lifetime,
        )
    )


def reopen_place(url: str) -> Place:
    """The archive there.  Raises DS953 where there is none."""
    return Place(Archive(url))


def check_columns(of: str, schema: Schema, kind: str) -> None:
    """Raise DS574 for columns that can't be archived."""
    seen: set[str] = set()
    for name in (f.name for f in schema):
        if name.casefold() in seen or name.casefold() in MARKS:
            what = (
                "is one that archives use themselves"
                if name.casefold() in MARKS
                else "is there twice"
            )
            raise UsageError(
                "DS574",
                f"the archive of {of} needs columns of different names: `{name}` {what}",
                hint="name it with AS" if kind == "query" else "rename it",
            )
        seen.add(name.casefold())
