"""Where declarations and changes of tables are written down before they happen."""

from __future__ import annotations

from collections.abc import Callable

from dsms.storage.catalog import CatalogStore

Write = Callable[[CatalogStore], None]
# (what to write, kind, body of its record among the rows)
Store = Callable[[Write, str, bytes], None]
