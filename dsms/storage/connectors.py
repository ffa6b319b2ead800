"""Sources and sinks in the catalog's file."""

from __future__ import annotations

from dsms.sql.catalog import ConnectorDef
from dsms.storage.catalog import CatalogStore


def add_connector(
    store: CatalogStore, made: ConnectorDef, sql: str, old: ConnectorDef | None
) -> None:
    """Keep a declaration, in the place of what it replaces."""
    with store.transaction():
        if old is not None:
            drop_connector(store, old)
        store.add("connector", made.home, made.name, sql)


def drop_connector(store: CatalogStore, old: ConnectorDef) -> None:
    """Forget a declaration."""
    store.drop("connector", old.home)
