"""Rows of a stream on their way into a query of its own."""

from __future__ import annotations

from collections.abc import Sequence

from dsms.running.faults import stop
from dsms.running.registered import Registered
from dsms.state.batch import Batch


def push(query: Registered, stream: str, rows: Sequence[Batch]) -> None:
    """Hand the rows to its sources; a fault stops it."""
    try:
        query.take_rows(stream, rows)
    except Exception as fault:
        if not stop([query], fault):
            raise
