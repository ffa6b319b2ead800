"""All archives of an engine: what they do between two inputs, and what they have to say before
one."""

from __future__ import annotations

from dsms.archiving.archiving import Archiving
from dsms.archiving.around import Around
from dsms.archiving.queries import edge
from dsms.archiving.streams import gather
from dsms.errors import UsageError
from dsms.intake.values import instant_text
from dsms.sql.catalog import Catalog
from dsms.sql.types import ALWAYS


def tidy(runtime: Around) -> None:
    """Rows that have left their windows or answers are handed on, and what has landed may go."""
    for key, archiving in runtime.archivings.items():
        if archiving.kind == "stream":
            gather(archiving, runtime.rings[key], runtime.inputs[key], runtime.replaying)
        else:
            archiving.settle(edge(runtime, runtime.queries[key]))


def check(runtime: Around, stream: str, now: int | None) -> None:
    """Raise why rows that come to the stream now can't be taken: too many wait for its archive, or
    for that of a query that reads it (DS570), or they would be stamped before what is archived
    (DS571)."""
    if not runtime.archivings or runtime.replaying:
        return
    late = runtime.inputs[stream].definition.late_into
    streams = {stream} if late is None else {stream, Catalog.key(late)}
    for key, archiving in runtime.archivings.items():
        if key in streams or (
            archiving.kind == "query" and not streams.isdisjoint(runtime.queries[key].reads)
        ):
            archiving.check()
    own = runtime.archivings.get(stream)
    if own is not None and runtime.inputs[stream].definition.stamped:
        _check_clock(own, runtime.inputs[stream].now, now)


def _check_clock(archiving: Archiving, last: int | None, now: int | None) -> None:
    stamp = max(ALWAYS if last is None else last, ALWAYS if now is None else now)
    if ALWAYS < stamp <= archiving.seam:
        raise UsageError(
            "DS571",
            f"rows of {archiving.name} would be stamped {instant_text(stamp)}, and its archive is "
            f"complete up to {instant_text(archiving.seam)}: the clock was set back",
            hint="set the clock right, or wait until it has passed that instant",
        )
