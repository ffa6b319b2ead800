"""Rows that are sent to a table: a frame for a stream's name may be one for a table's.

Of rows with a key that is there already, or comes twice, each is refused and counted, as a stream
does with a row that alone is wrong; with `upsert` it takes the place of the one that has its key.
The rest of the frame is inserted, at the instant at which INSERT without AT would be.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from dsms.api import Cancel, IngestReport
from dsms.commands.change import apply, open_table
from dsms.commands.store import Store
from dsms.errors import UsageError
from dsms.intake.convert import Converted, Refusal
from dsms.intake.outcome import Accepted
from dsms.intake.values import shown
from dsms.running.runtime import Runtime
from dsms.running.writers import FramePart, Writers
from dsms.storage.packed_changes import packed, packed_rows
from dsms.tables.changes import Change
from dsms.tables.conflicts import keeping, meeting, merged, replacing
from dsms.tables.keys import KeyCodes
from dsms.tables.versioned import VersionedTable


def check_upsert(name: str, table: VersionedTable | None) -> None:
    """Raise DS440 where rows can't take the place of others."""
    if table is not None and table.keys is not None:
        return
    message = f"{name} has no PRIMARY KEY by which rows could take the place of others"
    raise UsageError("DS440", message, hint="send them without upsert")


def take_rows(
    runtime: Runtime,
    store: Store,
    writers: Writers,
    key: str,
    rows: Converted,
    upsert: bool = False,
    part: FramePart | None = None,
    cancel: Cancel | None = None,
) -> IngestReport:
    """Converted rows for the table of that key: judged, written down with the number of their
    frame, applied.

    Raises DS440 upsert of a table without keys, DS523 no instant is left, DS54x."""
    if upsert:
        check_upsert(f"table {key}", runtime.tables[key])
    table, at = open_table(runtime, key, None)
    change, codes, refusals = _judged(table, rows, at, upsert)
    body = packed_rows(change.inserted)
    whole = packed(key, change, body)
    if part is not None:
        whole = of_frame(part, whole)
    if change.rows or part is not None:
        store(
            lambda s: s.add_change(key, change, body) if change.rows else None,
            "change" if part is None else "frame",
            whole,
        )
    if part is not None:
        writers.note(part, key)
    apply(runtime, key, change, cancel, codes)
    refused = sum(r.count for r in refusals)
    return Accepted(len(rows) - refused, refusals=refusals).report(rows)


def of_frame(part: FramePart, change: bytes) -> bytes:
    """A change of a table, and the number of the frame that made it."""
    head = json.dumps([part.client, part.seq, part.done, part.last]).encode()
    return len(head).to_bytes(4, "little") + head + change


def frame_of(body: bytes) -> tuple[FramePart, bytes]:
    """Both again."""
    size = 4 + int.from_bytes(body[:4], "little")
    return FramePart(*json.loads(body[4:size])), body[size:]


def _judged(
    table: VersionedTable, rows: Converted, at: int, upsert: bool
) -> tuple[Change, KeyCodes | None, tuple[Refusal, ...]]:
    columns = rows.columns
    if table.keys is None or not len(rows):
        return table.inserting(columns, at), None, ()
    met = meeting(table, columns, last=upsert)
    wrong: tuple[tuple[str, np.ndarray], ...]
    if upsert:
        made = merged(table, columns, met, ~(met.dead | met.repeated), at, replacing)
        wrong = (("the key may not come again", met.dead),)
    else:
        free = ~(met.dead | met.taken | met.repeated)
        made = merged(table, columns, met, free, at, keeping)
        wrong = (
            ("the key may not come again", met.dead),
            ("the key is there already", met.taken),
            ("the key comes twice", met.repeated & ~(met.dead | met.taken)),
        )
    found = (_refused(table, rows, reason, mask) for reason, mask in wrong)
    return made.change, made.codes, tuple(r for r in found if r is not None)


def _refused(
    table: VersionedTable, rows: Converted, reason: str, mask: np.ndarray
) -> Refusal | None:
    at = np.flatnonzero(mask)
    if not len(at):
        return None
    places = at if rows.kept is None else rows.kept[at]
    names = ", ".join(table.definition.schema[i].name for i in table.definition.key)
    values = ", ".join(_value(rows.columns[i], int(at[0])) for i in table.definition.key)
    detail = f"table {table.definition.name}: key {names} = {values}"
    return Refusal(reason, len(at), int(places[0]), detail, places)


def _value(column: pa.Array, row: int) -> str:
    return shown(column[row].as_py())
