"""Opening a catalog: what was declared comes back, in the order in which it was declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dsms.errors import DsmsError, UsageError
from dsms.sql.ast import Statement
from dsms.sql.catalog import Catalog
from dsms.sql.parser import parse_one
from dsms.storage.catalog import CatalogStore
from dsms.tables.versioned import VersionedTable

Declare = Callable[[Statement, str], object]


class Declared(Protocol):
    """Where declarations come back to (`dsms.running.runtime`)."""

    catalog: Catalog
    tables: dict[str, VersionedTable]


COMPACT_AFTER = 1000  # stored changes of a table that are replaced by one snapshot on opening


def restore(store: CatalogStore, runtime: Declared, declare: Declare) -> None:
    """Run every stored declaration again and fill the tables.

    `declare` runs one statement without storing it.  Raises DS544 naming the declaration that can't
    be read any more.
    """
    for stored in store.objects():
        try:
            declare(parse_one(stored.sql), stored.sql)
        except DsmsError as error:
            message = (
                f"{stored.kind} {stored.name} in {store.path} can't be restored: {error.message}"
            )
            hint = "open the file with the version that made it, or move it away"
            raise UsageError("DS544", message, hint=hint) from error
        if stored.kind == "table":
            _fill(store, runtime, runtime.catalog.key_of(stored.name))


def _fill(store: CatalogStore, runtime: Declared, key: str) -> None:
    snapshot, changes = store.table(key)
    table = VersionedTable.restored(runtime.catalog.tables[key], snapshot, changes)
    runtime.tables[key] = table
    if len(changes) > COMPACT_AFTER:
        store.compact(key, table.snapshot())
