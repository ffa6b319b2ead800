"""COMMENT ON: what somebody says of a stream, table or query, for all who may know of it."""

from __future__ import annotations

from dsms.api import Done
from dsms.commands.dropping import kind_of, unknown
from dsms.commands.store import Store
from dsms.errors import UsageError
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql.catalog import Catalog
from dsms.sql.printer import to_sql

LONGEST = 4096  # characters


def comment(runtime: Runtime, store: Store, statement: ast.Comment, catalog: Catalog) -> Done:
    """Keep it in the place of an earlier one; NULL or an empty text: there is none any more.

    Raises DS401, and DS437 for one that is too long."""
    name, kind = statement.name, statement.kind.value.lower()
    found = catalog.find(name.text, name.quoted)
    if found is None or kind_of(found) != kind:
        raise unknown(catalog, name, found, kind)
    text = statement.text or ""
    if len(text) > LONGEST:
        message = f"a comment has at most {LONGEST} characters, and this has {len(text)}"
        raise UsageError("DS437", message, statement.pos.line, statement.pos.column)
    store(lambda s: None, "statement", to_sql(statement).encode())
    key = found.home
    if not text:
        runtime.comments.pop(key, None)
        return Done(f"{kind} {found.name} has no comment now")
    runtime.comments[key] = text
    return Done(f"comment on {kind} {found.name} kept")
