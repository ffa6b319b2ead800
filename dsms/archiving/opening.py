"""Opening the archive of a stream or query: made where there is none, taken over where one of the
same rows is."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Literal

from dsms.archiving.archiving import Archiving
from dsms.archiving.around import Around
from dsms.archiving.place import Wanted, open_place
from dsms.archiving.queries import Tap
from dsms.archiving.results import results_of
from dsms.errors import DsmsError, UsageError
from dsms.intake.values import duration_text
from dsms.running.registered import Registered
from dsms.sql.catalog import QueryDef, StreamDef
from dsms.state.ring import Need
from dsms.storage.folders import folder_name

WHO = "ARCHIVE"  # the name under which archives keep rows of a ring
FOLDER = "archive"  # of a data folder


def archive_of(runtime: Around, definition: StreamDef | QueryDef) -> Archiving | None:
    """The archive that a declaration asks for, opened; None: it asks for none.

    A declaration out of the journal finds the archive that was made with it, or goes on without
    until that is back.

    Raises DS572 where there is no place for archives, what opening it raises."""
    if not definition.archive:
        return None
    kind = _kind(definition)
    wanted, url = _wanted(definition), url_of(runtime, definition.home, kind)
    place = None if runtime.replaying else open_place(url, wanted)
    made = Archiving(
        wanted.name, wanted.kind, url, wanted.schema, wanted.lifetime, runtime.settings, place
    )
    if place is None:
        _begin_anew(runtime, made, definition)
    if made.place is not None and wanted.every not in (None, made.place.layout.every):
        made.note = f"updated every {duration_text(made.place.layout.every)}, as it was made"
    return made


def _kind(definition: StreamDef | QueryDef) -> Literal["stream", "query"]:
    return "stream" if isinstance(definition, StreamDef) else "query"


def _wanted(definition: StreamDef | QueryDef) -> Wanted:
    return Wanted(
        definition.name,
        _kind(definition),
        definition.schema,
        definition.archive_for,
        definition.archive_cluster,
        definition.archive_every,
    )


def url_of(runtime: Around, key: str, kind: str) -> str:
    """The folder of an archive."""
    root = runtime.settings.archive
    if root is None and runtime.durable is not None:
        root = str(Path(runtime.durable.folder).parent / FOLDER)
    if root is None:
        raise UsageError(
            "DS572",
            f"the archive of {kind} {key} has no place: there is neither a data folder nor one "
            "for archives",
            hint="start with a data folder, or with --archive URL (in Python: "
            "Settings(archive=...))",
        )
    return f"{root.rstrip('/')}/{folder_name(key)}"


def reopen(runtime: Around) -> None:
    """Archives of a runtime that has come out of a checkpoint: where they are now, and how far they
    have got."""
    for key, archiving in runtime.archivings.items():
        archiving.url = url_of(runtime, archiving.home, archiving.kind)
        archiving.opened()
        definitions = (
            runtime.catalog.streams if archiving.kind == "stream" else runtime.catalog.queries
        )
        _begin_anew(runtime, archiving, definitions[key])


def _begin_anew(runtime: Around, archiving: Archiving, definition: StreamDef | QueryDef) -> None:
    """If the archive is not there, and that loss was accepted, another one takes its place."""
    accepted = [runtime.catalog.key_of(name) for name in runtime.settings.accept_loss]
    if archiving.place is None and archiving.home in accepted:
        with suppress(DsmsError):  # it says so itself when it is tried again
            archiving.begin(open_place(archiving.url, _wanted(definition)))
            assert runtime.durable is not None
            runtime.durable.journal.notes.append(
                f"the archive of {archiving.kind} {archiving.name} is begun anew, as was asked"
            )


def connect_stream(runtime: Around, archiving: Archiving) -> None:
    """From now on what leaves the stream's ring goes to the archive."""
    key = archiving.home
    runtime.archivings[key] = archiving
    ring = runtime.keep(key, WHO, Need())
    if not runtime.replaying:  # else it is one of those whose rows come again
        ring.reach = max(ring.reach, archiving.seam)


def connect_query(runtime: Around, archiving: Archiving | None, query: Registered) -> None:
    """From now on the results of the query go to the archive, if there is one."""
    if archiving is not None:
        runtime.archivings[archiving.home] = archiving
        results = results_of(query.phys, archiving.lifetime, runtime.settings.eager_instants)
        query.archived = Tap(archiving, results)
