"""Functions of one's own in the catalog's file."""

from __future__ import annotations

from dsms.sql.catalog import FunctionDef
from dsms.storage.catalog import CatalogStore


def add_function(store: CatalogStore, made: FunctionDef, old: FunctionDef | None) -> None:
    """Keep a function's declaration, in the place of what it replaces."""
    with store.transaction():
        if old is not None:
            drop_function(store, old)
        store.add_function(made)


def drop_function(store: CatalogStore, old: FunctionDef) -> None:
    """Forget a function's declaration."""
    store.drop("function", old.home)
