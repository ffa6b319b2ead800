"""Opening the archive of a stream or query: made where there is none, taken over where one of the same rows is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dsms.errors import UsageError
from dsms.intake.values import duration_text
from dsms.running.archiving.archiving import Archiving
from dsms.running.archiving.place import Wanted, open_place
from dsms.running.archiving.queries import Tap
from dsms.running.archiving.results import results_of
from dsms.sql.catalog import Catalog, QueryDef, StreamDef
from dsms.state.ring import Need
from dsms.storage.folders import folder_name

if TYPE_CHECKING:
    from dsms.running.archiving.queries import Query
    from dsms.running.world import World

WHO = "ARCHIVE"  # among those who need rows of a ring
FOLDER = "archive"  # of a data folder


def archive_of(world: World, definition: StreamDef | QueryDef) -> Archiving | None:
    """The archive that a declaration asks for, opened; None: it asks for none.

    Raises DS572 where there is no place for archives, what opening it raises."""
    if not definition.archive:
        return None
    kind: Literal["stream", "query"] = "stream" if isinstance(definition, StreamDef) else "query"
    wanted = Wanted(definition.name, kind, definition.schema, definition.archive_for, definition.archive_cluster,
                    definition.archive_every)  # fmt: skip
    url = url_of(world, definition.name, wanted.kind)
    place = open_place(url, wanted)
    made = Archiving(wanted.name, wanted.kind, url, wanted.schema, wanted.lifetime, world.settings, place)
    if wanted.every not in (None, place.layout.every):
        made.note = f"updated every {duration_text(place.layout.every)}, as it was made"
    return made


def url_of(world: World, name: str, kind: str) -> str:
    """The folder of an archive."""
    root = world.settings.archive
    if root is None and world.durable is not None:
        root = str(Path(world.durable.folder).parent / FOLDER)
    if root is None:
        raise UsageError(
            "DS572",
            f"the archive of {kind} {name} has no place: there is neither a data folder nor one for archives",
            hint="start with a data folder, or with --archive URL (in Python: Settings(archive=...))",
        )
    return f"{root.rstrip('/')}/{folder_name(Catalog.key(name))}"


def reopen(world: World) -> None:
    """Archives of a world that has come out of a checkpoint: where they are now, and how far they have got."""
    for archiving in world.archivings.values():
        archiving.url = url_of(world, archiving.name, archiving.kind)
        archiving.opened()


def connect_stream(world: World, archiving: Archiving) -> None:
    """From now on what leaves the stream's ring goes to the archive."""
    key = Catalog.key(archiving.name)
    world.archivings[key] = archiving
    ring = world.keep(key, WHO, Need())
    if world.durable is None or not world.durable.journal.muted:  # else it is one of those whose rows come again
        ring.reach = max(ring.reach, archiving.seam)


def connect_query(world: World, archiving: Archiving | None, query: Query) -> None:
    """From now on the results of the query go to the archive, if there is one."""
    if archiving is not None:
        world.archivings[Catalog.key(archiving.name)] = archiving
        results = results_of(query.phys, archiving.lifetime, world.settings.eager_instants)
        query.archived = Tap(archiving, results)
