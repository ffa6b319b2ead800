"""CREATE and DROP where an archive belongs to the stream or query."""

from __future__ import annotations

from collections.abc import Callable

from dsms.archiving.archiving import Archiving
from dsms.archiving.queries import ended
from dsms.archiving.streams import everything
from dsms.errors import UsageError
from dsms.intake.values import instant_text
from dsms.running.runtime import Runtime
from dsms.sql.types import ALWAYS

Heartbeat = Callable[[str, int], None]  # by the key of a stream


def created(archiving: Archiving | None) -> str:
    """What CREATE says of the archive."""
    if archiving is None:
        return ""
    note = f", {archiving.note}" if archiving.note else ""
    if archiving.seam == ALWAYS:
        return f"; archive in {archiving.url}{note}"
    return (
        f"; archive in {archiving.url}, which was there, complete up to "
        f"{instant_text(archiving.seam)}{note}"
    )


def go_on(runtime: Runtime, archiving: Archiving, heartbeat: Heartbeat) -> None:
    """A new stream with an archive that was there: rows up to its end would not be archived, so
    they are late."""
    key = archiving.home
    if archiving.seam > ALWAYS and not runtime.replaying and runtime.inputs[key].event_time:
        heartbeat(key, archiving.seam)


def leave(runtime: Runtime, key: str, kind: str) -> str:
    """The object is about to be dropped: all its rows go to the archive, which stays; what DROP
    says of it.

    Raises DS573 where that can't be done: nothing is dropped."""
    archiving = runtime.archivings.get(key)
    if archiving is None:
        return ""
    if not archiving.flush() and not runtime.replaying:
        raise _stuck(archiving)
    if kind == "stream":
        everything(archiving, runtime.rings[key], runtime.inputs[key])
    else:
        ended(runtime, runtime.queries[key])
    if archiving.error is not None and not runtime.replaying:
        raise _stuck(archiving)
    upto = f", complete up to {instant_text(archiving.seam)}" if archiving.seam > ALWAYS else ""
    return f"; its archive stays in {archiving.url}{upto}"


def _stuck(archiving: Archiving) -> UsageError:
    rows = archiving.waiting.queue.rows
    what = "1 row" if rows == 1 else f"{rows} rows"
    message = f"{what} of {archiving.kind} {archiving.name} can't be archived: {archiving.error}"
    lost = f"if it is lost for good, `dsms serve --accept-loss {archiving.name}` begins another one"
    return UsageError(
        "DS573", message, hint=f"make {archiving.url} writable and drop it again; {lost}"
    )
