"""SHOW ARCHIVES: how far each archive has got, what it holds, and what is wrong with it."""

from __future__ import annotations

from typing import Any

from dsms.api import Rows, shown_instant
from dsms.archiving.archiving import Archiving
from dsms.commands.rows import as_rows
from dsms.running.runtime import Runtime
from dsms.sql.catalog import Catalog
from dsms.sql.types import INT, STRING, TIMESTAMP


def show_archives(runtime: Runtime, catalog: Catalog) -> Rows:
    """One line per archive of a stream or query; what only its index can tell is NULL where that
    can't be read."""
    archivings = [
        a
        for a in runtime.archivings.values()
        if catalog.sees_all or catalog.find(a.name) is not None
    ]
    lines = [_told(catalog, a) for a in archivings]
    return as_rows(
        [
            ("archive", STRING, [a.name for a in archivings]),
            ("kind", STRING, [a.kind for a in archivings]),
            ("seam", TIMESTAMP, [shown_instant(a.seam) for a in archivings]),
            ("waiting", INT, [f["waiting_rows"] for f in lines]),
            ("landed_files", INT, [f["landed_files"] for f in lines]),
            ("index_upto", TIMESTAMP, [f["index_upto"] for f in lines]),
            ("index_rows", INT, [f["index_rows"] for f in lines]),
            ("index_bytes", INT, [f["index_bytes"] for f in lines]),
            ("layout", STRING, [f["layout"] for f in lines]),
            ("repeated", INT, [f["repeated_rows"] for f in lines]),
            ("folder", STRING, [a.url for a in archivings]),
            ("last_error", STRING, [f["error"] for f in lines]),
            ("update", STRING, [_update_of(runtime, a.name) for a in archivings]),
        ]
    )


def _told(catalog: Catalog, archiving: Archiving) -> dict[str, Any]:
    """Its figures, without those that count rows of a stream which the user sees late."""
    found = figures(archiving)
    if archiving.kind == "stream" and catalog.sees_late([archiving.home]):
        counts = ("waiting_rows", "repeated_rows", "landed_files", "index_rows", "index_bytes")
        found |= dict.fromkeys(counts)
    return found


def _update_of(runtime: Runtime, name: str) -> str | None:
    """The state of the updates of its index, where they are made (by a server's Spark process)."""
    state_of = getattr(runtime.settings.archive_runner, "update_state", None)
    return None if state_of is None else state_of(name)


def figures(archiving: Archiving) -> dict[str, Any]:
    """What is known of one archive."""
    found = archiving.index()
    return {
        "waiting_rows": archiving.waiting.queue.rows,
        "waiting_bytes": archiving.waiting.nbytes,
        "archived_rows": archiving.landed_rows,
        "repeated_rows": archiving.repeated,
        "landed_files": None if found is None else found.landed,
        "index_upto": None if found is None else shown_instant(found.upto),
        "index_rows": None if found is None else found.rows,
        "index_bytes": None if found is None else found.nbytes,
        "layout": None if found is None else found.layout,
        "error": archiving.error,
    }


def archive_stats(runtime: Runtime) -> dict[str, dict[str, Any]]:
    """Figures for metrics, by archive; what can't be read now is left out."""
    return {
        a.name: {
            "seam": shown_instant(a.seam),
            "waiting_rows": a.waiting.queue.rows,
            "waiting_bytes": a.waiting.nbytes,
            "archived_rows": a.landed_rows,
            "repeated_rows": a.repeated,
            "failures": a.failures,
        }
        for a in runtime.archivings.values()
    }
