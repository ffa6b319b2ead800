"""What rows of streams with KEY say that they do, in the one spelling in which it is kept."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.intake.convert import Converted, Refusal
from dsms.intake.values import shown
from dsms.sql.catalog import StreamDef
from dsms.sql.keyed import OPERATION, WORDS

REASON = "unknown operation"


def operations(said: pa.Array) -> pa.Array:
    """UPSERT or DELETE of each (text, none NULL); NULL where a word is unknown."""
    words, kept = _words()
    return kept.take(pc.index_in(pc.utf8_upper(said), words))


@cache
def _words() -> tuple[pa.Array, pa.Array]:
    # when they are needed: Arrow loads pandas to make them
    return pa.array(list(WORDS)), pa.array(list(WORDS.values()))


def with_operations(rows: Converted, stream: StreamDef) -> Converted:
    """The rows of a stream with KEY as they are kept; those with an unknown word are refused."""
    at = stream.operation
    said = rows.columns[at]
    found = operations(said)
    columns = (*rows.columns[:at], found, *rows.columns[at + 1 :])
    if not found.null_count:
        return Converted(columns, rows.sent, rows.kept, rows.refusals)
    bad = np.flatnonzero(found.is_null())
    good = np.flatnonzero(found.is_valid())
    kept = np.arange(len(found)) if rows.kept is None else rows.kept
    detail = f"column {OPERATION}: {shown(said[int(bad[0])].as_py())} is none of {', '.join(WORDS)}"
    refused = Refusal(REASON, len(bad), int(kept[bad[0]]), detail, kept[bad])
    taken = tuple(c.take(pa.array(good)) for c in columns)
    return Converted(taken, rows.sent, kept[good], (*rows.refusals, refused))
