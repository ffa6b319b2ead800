"""Recovery: the newest state, and the records of the journal behind it, applied again."""

from __future__ import annotations

import heapq
import json
import logging
from pathlib import Path

from dsms.commands import change, replanning, rights, stops, succeeding, table_rows
from dsms.errors import DsmsError
from dsms.intake.convert import Converted
from dsms.recovering.durability import Durability
from dsms.recovering.face import Recovering
from dsms.recovering.losses import accept, check_catalog, fallen_back, gap, refuse_lost
from dsms.recovering.starting import start
from dsms.running.writers import FramePart
from dsms.sql.parser import parse_one
from dsms.storage import blobs, records
from dsms.storage.checkpoints import Checkpoint
from dsms.storage.journal import ENGINE, Entry
from dsms.storage.packed_changes import unpacked

LOG = logging.getLogger(__name__)


def recover(saver: Durability) -> None:
    """Read the newest checkpoint that can be read, and apply what came after it."""
    journal = saver.durable.journal
    journal.muted = True
    checkpoint, older = start(saver)
    check_catalog(saver, checkpoint)
    _check_blobs(saver, checkpoint)
    clocks = saver.engine.runtime.clocks  # of the state that was read
    clocks.still = True
    gaps = _replay(saver, checkpoint)
    if saver.at_work is not None:
        saver.at_work.done()
        saver.recovered.notes += [
            f"set aside: the server died twice over {w}" for w in saver.at_work.twice
        ]
    journal.settle()
    journal.muted = False
    saver.recovered.checkpoint = checkpoint.lsn
    left = succeeding.give_up(saver.engine.runtime, saver.store)
    saver.recovered.notes += [f"query {name} is as it was before it was changed" for name in left]
    accepted = accept(saver)
    refusing = [f"stream {s} takes no rows: {e.message}" for s, e in journal.failures.items()]
    told = [*fallen_back(saver, older), *journal.notes, *refusing]
    saver.recovered.notes += told or ([] if journal.gone else gaps)
    clocks.moved, clocks.still = saver.moved, False
    saver.durable.clean()
    saver.checkpointer.sweep_blobs()
    if accepted or (not saver.durable.checkpoints.kept and saver.engine.runtime.catalog.names()):
        saver.checkpoint()
    elif saver.durable.checkpoints.kept:
        saver.checkpointer.sweep()


def _check_blobs(saver: Durability, checkpoint: Checkpoint) -> None:
    """All changes of tables that are in files of their own can be read.  Raises DS577."""
    noted = saver.catalog.noted(checkpoint.lsn)
    saver.durable.blobs.check(blobs.blob_of(body) for _, kind, body in noted if kind == blobs.KIND)


def _replay(saver: Durability, checkpoint: Checkpoint) -> list[str]:
    """Apply the records behind the checkpoint; which numbers are missing among them."""
    journal, gaps = saver.durable.journal, list[str]()
    after = journal.lsn = checkpoint.lsn
    noted = [Entry(lsn, ENGINE, -1, (kind, body)) for lsn, kind, body in saver.catalog.noted(after)]
    written = journal.entries(after, checkpoint.tails, checkpoint.damaged)
    refuse_lost(saver)
    for entry in heapq.merge(written, noted, key=lambda e: e.lsn):
        if entry.lsn > journal.lsn + 1:
            gaps.append(gap(journal.lsn, entry.lsn))
        journal.lsn = max(journal.lsn, entry.lsn)
        journal.written += len(entry.payload) if entry.kind >= 0 else _beside(*entry.payload)
        saver.checkpointer.statements += entry.kind < 0
        if (entry.kind < 0 or journal.follows(entry)) and not _is_set_aside(saver, entry):
            saver.begun(entry.lsn)
            _again(saver, entry)
    return gaps


def _beside(kind: str, body: bytes) -> int:
    """Bytes that a record of the catalog has in a file of its own."""
    return blobs.blob_of(body).bytes if kind == blobs.KIND else 0


def _is_set_aside(saver: Durability, entry: Entry) -> bool:
    """A record over which the engine has died twice is left out; what it holds is kept in a
    file."""
    if saver.at_work is None or not saver.at_work.records or entry.lsn not in saver.at_work.records:
        return False
    folder = Path(saver.at_work.folder) / "set-aside"
    folder.mkdir(mode=0o700, exist_ok=True)
    kind, payload = entry.kind, entry.payload
    if kind < 0:
        kind, payload = payload
    path = folder / f"record-{entry.lsn}.bin"
    parts = [payload]
    if kind == blobs.KIND:
        name = blobs.blob_of(payload).name
        parts.append(saver.durable.files.map(f"{saver.durable.blobs.folder}/{name}"))
    saver.durable.files.write_atomic(str(path), parts)
    saver.recovered.notes.append(
        f"record {entry.lsn} (of {entry.stream}, kind {kind}) is kept in {path}"
    )
    LOG.error(
        "record %d is left out, the server died over it twice; it is kept in %s", entry.lsn, path
    )
    return True


def _again(saver: Durability, entry: Entry) -> None:
    """Apply a record.  What failed then fails now, and is not reported again."""
    engine = saver.engine
    saver.recovered.records += 1
    if engine.runtime.settings.recovering is not None:
        engine.runtime.settings.recovering(saver.recovered.records)
    try:
        if entry.kind < 0:
            _statement(saver, *entry.payload)
            return
        match records.decode(entry.kind, entry.payload):
            case records.StreamRows() as r:
                saver.recovered.rows += len(r.columns[0])
                part = (
                    None
                    if r.client is None or r.seq is None
                    else FramePart(r.client, r.seq, r.done, r.last, r.position)
                )
                engine.take(
                    entry.stream,
                    Converted(r.columns, len(r.columns[0]), r.kept, r.refusals),
                    r.now,
                    part,
                    shed=r.shed,
                )
            case records.StreamGroup() as r:
                saver.recovered.rows += len(r.columns[0])
                engine.take_group(
                    entry.stream,
                    Converted(r.columns, len(r.columns[0])),
                    r.now,
                    [FramePart(client, seq, done, True) for client, seq, done in r.parts],
                )
            case records.Late() as r:
                engine.take_late(entry.stream, r.columns, r.now)
            case records.Heartbeat(ts):
                engine.heartbeat_of(entry.stream, ts)
            case records.Punctuation(columns, values, upto):
                engine.punctuate_of(entry.stream, columns, values, upto)
            case records.Moved(upto):
                engine.runtime.inputs[entry.stream].move(upto)
                engine.runtime.pump_all()
            case records.Ended():
                engine.end_of(entry.stream)
            case records.Advance(now):
                engine.advance(now)
    except Exception as error:  # also a fault of ours: it must not keep all else from coming back
        what = error.message if isinstance(error, DsmsError) else repr(error)
        saver.recovered.notes.append(f"record {entry.lsn} of the journal failed again: {what}")


def _statement(saver: Durability, kind: str, body: bytes) -> None:
    engine = saver.engine
    match kind:
        case "statement":
            _declare(engine, body.decode())
        case "of_user":
            user, sql = json.loads(body)
            _declare(engine, sql, user)
        case "reached":
            reached, sql, *whose = json.loads(body)
            rings = engine.runtime.rings
            for key in reached.keys() & rings.keys():  # others the statement itself makes
                rings[key].let_go(reached[key])
            _declare(engine, sql, *whose)
        case succeeding.RECORD:
            succeeding.ended(engine.runtime, body)
        case replanning.RECORD:
            replanning.again(engine.runtime, body)
        case stops.RECORD:
            stops.again(engine.runtime, body)
        case "rights":
            rights.put(engine.runtime, json.loads(body))
        case blobs.KIND:
            key, made = blobs.change_of(body, saver.durable.blobs)
            change.apply(engine.runtime, key, made)
        case _:
            if kind == "frame":
                part, body = table_rows.frame_of(body)
            key, made = unpacked(body)
            if kind == "frame":
                engine.writers.note(part, key)
            change.apply(engine.runtime, key, made)


def _declare(engine: Recovering, sql: str, user: str | None = None) -> None:
    engine.declare(parse_one(sql), sql, user)
