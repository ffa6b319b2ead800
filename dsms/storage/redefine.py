"""Declarations that become others."""

from __future__ import annotations

import json

from dsms.sql.catalog import QueryDef, StreamDef, TableDef
from dsms.storage.catalog import CatalogStore


def redefine(store: CatalogStore, key: str, definition: StreamDef | TableDef | QueryDef) -> None:
    """What had this key is declared so from now on, at its place among the others."""
    options = json.dumps({} if isinstance(definition, TableDef) else dict(definition.options))
    values = (definition.home, definition.name, definition.sql, options, key)
    with store.transaction():
        store._db.execute(
            "UPDATE object SET key = ?, name = ?, sql = ?, options = ? WHERE key = ?",
            values,
        )
