"""Where recovery starts: the newest state that can be read, put in place of an engine that has
none."""

from __future__ import annotations

from typing import Any

from dsms.archiving.opening import reopen as reopen_archives
from dsms.errors import DsmsError, UsageError
from dsms.recovering.durability import Durability
from dsms.running.runtime import Runtime
from dsms.running.transactions import Transactions
from dsms.storage.checkpoints import KEPT, Checkpoint
from dsms.storage.frozen import thaw
from dsms.storage.restore import restore


def start(saver: Durability) -> tuple[Checkpoint, str | None]:
    """Put the newest state that can be read in place: the checkpoint that it is from and, if there
    is a newer one, why that is not it."""
    older: str | None = None
    checkpoints = saver.durable.checkpoints
    checkpoints.load()
    trouble: DsmsError | None = None
    for checkpoint, data in checkpoints.states():
        try:
            _restore(saver, checkpoint, data)
        except DsmsError as error:
            trouble = trouble or error
            continue
        if trouble is not None:
            older = (
                f"the newest checkpoint could not be read, the one before it was: {trouble.message}"
            )
        return checkpoint, older
    if trouble is not None:
        if (
            trouble.code == "DS546"
            or len(checkpoints.kept) >= KEPT
            or saver.catalog.setting("restored")
        ):
            raise _no_state(trouble)
        saver.durable.lost.clear()
        older = f"the only checkpoint could not be read, all is done again: {trouble.message}"
    elif saver.catalog.setting("checkpointed"):
        what = f"{saver.durable.folder}/manifest.json is missing, and with it the state"
        raise UsageError(
            "DS545",
            what,
            hint="restore the data directory from a backup, or start with an empty one",
        )
    if not saver.catalog.noted(0):
        declared = bool(saver.catalog.objects())
        restore(saver.catalog, saver.engine.runtime, saver.engine.declare)
        if declared:
            saver.catalog.set("restored", True)
    return Checkpoint("", 0), older


def _restore(saver: Durability, checkpoint: Checkpoint, data: Any) -> None:
    if isinstance(data, DsmsError):
        raise data
    engine, durable = saver.engine, saver.durable
    durable.lost.clear()
    path = f"{durable.folder}/{checkpoint.path}"
    state = thaw(data, saver.checkpointer.outside(), durable.resolve, path)
    runtime, runtime_before = state["world"], engine.runtime
    runtime.handle = runtime_before.handle
    runtime.handle.runtime = runtime
    engine.runtime, engine.now, engine.writers = runtime, state["now"], state["writers"]
    runtime.transactions = Transactions(runtime.rings, runtime.settings)
    runtime.dispatch_anew()
    runtime.kept_anew()
    runtime.recents.resume(state.get("recents", {}))
    reopen_archives(runtime)
    for key, definition in runtime.catalog.streams.items():
        durable.declare(key, definition.schema, definition.durability)
    saver.checkpointer.size = len(data)
    _without_lost(saver, runtime)


def _without_lost(saver: Durability, runtime: Runtime) -> None:
    """Rings whose sub-windows are lost have those behind them."""
    for stream, _ in saver.durable.lost:
        ring = runtime.rings[stream]
        while None in ring.closed:  # and what is older: a window has no holes
            gone = ring.closed.popleft()
            ring.count -= 0 if gone is None else len(gone.rows)
        first = ring.oldest
        ring.reach = max(ring.reach, min(first - 1, ring.newest))
        ring.count = sum(len(s.rows) for s in ring.closed) + sum(map(len, ring.buffer))


def _no_state(trouble: DsmsError) -> DsmsError:
    """Why no state can be read."""
    if trouble.code in ("DS545", "DS546"):
        return trouble
    what = f"no checkpoint can be read: {trouble.message}"
    return UsageError("DS545", what, hint="restore the data directory from a backup")
