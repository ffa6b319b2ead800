"""What is missing of a data folder: which streams take no rows because of it, and which go on
without."""

from __future__ import annotations

from collections.abc import Iterator

from dsms.errors import UsageError
from dsms.recovering.durability import NEWEST, Durability
from dsms.storage.chains import Damage
from dsms.storage.checkpoints import Checkpoint
from dsms.storage.journal import ENGINE
from dsms.storage.synced import CATALOG


def check_catalog(saver: Durability, checkpoint: Checkpoint) -> None:
    """The catalog has all changes that are known of."""
    newest = saver.catalog.setting(NEWEST, 0)
    assert isinstance(newest, int)
    known = max(checkpoint.catalog, saver.durable.journal.synced.read(CATALOG).get(ENGINE, 0))
    if newest < known:
        what = f"{saver.catalog.path} lacks declarations or changes of tables, up to number {known}"
        why = (
            "it is an older copy, or the file beside it with -wal in its name is missing or cut "
            "short"
        )
        raise UsageError("DS545", f"{what}: {why}", hint="restore both from a backup")
    saver.checkpointer.changed = newest


def refuse_lost(saver: Durability) -> None:
    """Sealed sub-windows of the checkpoint could not be read: their streams take no rows."""
    for stream, error in saver.durable.lost:
        saver.durable.journal.damage(stream, Damage(error.code, error.message))


def accept(saver: Durability) -> bool:
    """Streams that are to go on without what they have lost do; whether any had."""
    journal, durable = saver.durable.journal, saver.durable
    catalog, settings = saver.engine.runtime.catalog, saver.engine.runtime.settings
    asked = [catalog.key_of(s) for s in settings.accept_loss]
    for stream in asked:
        if stream in journal.damaged:
            lost = journal.damaged[stream].message
            journal.notes.append(
                f"stream {stream} goes on, as was asked, without what it has lost: {lost}"
            )
        elif (
            stream not in saver.engine.runtime.inputs
            and stream not in saver.engine.runtime.archivings
        ):
            journal.notes.append(f"there is no stream {stream} whose loss could be accepted")
    durable.lost = [(s, e) for s, e in durable.lost if s not in asked]
    done = [s for s in asked if journal.accept(s)]
    runtime = saver.engine.runtime
    for stream in (s for s in done if s in runtime.inputs):
        runtime.recents.begin_anew(stream, runtime.inputs[stream])
    return bool(done)


def fallen_back(saver: Durability, older: str | None) -> Iterator[str]:
    """That an older state was the start, and what that means."""
    if older is None:
        return
    yield older
    lost = sorted(s for s, policy in saver.durable.journal.policies.items() if policy == "none")
    if lost:
        yield f"later rows of streams of durability none are lost: {', '.join(lost)}"


def gap(last: int, found: int) -> str:
    """That records are missing between two numbers."""
    count = found - last - 1
    what = "1 record is" if count == 1 else f"{count} records are"
    why = "not yet on the disk when the power failed, or in a file that is lost"
    return f"{what} missing before number {found}: {why}"
