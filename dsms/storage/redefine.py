"""Declarations that become others."""

from __future__ import annotations

import json

from dsms.sql.catalog import QueryDef
from dsms.storage.catalog import CatalogStore


def redefine(store: CatalogStore, key: str, definition: QueryDef) -> None:
    """The query that had this key is declared so from now on, at its place among the others."""
    options = json.dumps(dict(definition.options))
    values = (definition.name.casefold(), definition.name, definition.sql, options, key)
    with store.transaction():
        store._db.execute(
            "UPDATE object SET key = ?, name = ?, sql = ?, options = ? "
            "WHERE key = ? AND kind = 'query'",
            values,
        )
