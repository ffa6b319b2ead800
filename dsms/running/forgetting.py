"""Versions of table rows that nobody can ask for any more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dsms.intake.stream import StreamInput
from dsms.running.dispatch import Dispatch
from dsms.sql.types import ALWAYS, MIN_INSTANT
from dsms.state.ring import Ring
from dsms.tables.versioned import VersionedTable


def forget(
    tables: Mapping[str, VersionedTable],
    inputs: Iterable[StreamInput],
    rings: Iterable[Ring],
    dispatch: Dispatch,
) -> None:
    """Let tables drop versions that no clock can ask for again, not even that of a query still to
    come."""
    streams = [s.completed for s in inputs if not s.ended]
    # whose rows one-time queries read
    streams += [r.oldest for r in rings if r.count]
    for key, table in tables.items():
        readers = [name for name, q in dispatch.queries.items() if key in q.tables]
        queries = [q for name in readers if (q := dispatch.told(name)) is not None]
        limit = min([*streams, *(q.read_tables for q in queries if q.streams)], default=ALWAYS)
        if limit < MIN_INSTANT:
            # no row has come: what ended before all rows is known to who reads the table, or
            # is asked for by nobody; changes at the instant of the last one may still come
            known = (q.read_tables for q in queries)
            limit = min([table.last_change - 1, MIN_INSTANT - 2, *known])
        if limit > ALWAYS:
            table.forget(limit)
        if not readers:
            table.drop_brief()


def before_rows(names: Iterable[str], tables: Mapping[str, VersionedTable]) -> int:
    """The last change of these tables before every row: no stream can hold that back."""
    changes = (tables[name].last_change for name in names)
    return max((at for at in changes if at < MIN_INSTANT), default=ALWAYS)
