"""From definitions back to the statements that make them again.

A definition keeps the text that it was declared with; what has changed since then, or has a
meaning only once, is put right here, in one place.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, cast

from dsms.sql import ast
from dsms.sql.catalog import QueryDef, StreamDef, TableDef
from dsms.sql.parser import parse_one

Declaration = ast.CreateStream | ast.CreateTable | ast.CreateQuery
# clauses that say what to do with an object that is there already
_ONCE = ("if_not_exists", "or_replace")


def declaration(found: StreamDef | TableDef | QueryDef) -> Declaration:
    """The statement that makes the object again where nothing has its name."""
    said = cast(Declaration, parse_one(found.sql))
    known = {f.name for f in fields(said)}
    changes: dict[str, Any] = dict.fromkeys(known.intersection(_ONCE), False)
    if said.name.text != found.name:
        changes["name"] = ast.Ident(found.name, quoted=True)
    return replace(said, **changes)


def read_by(said: Declaration) -> set[str]:
    """The names of what stands in FROM, at whatever depth, as they are spelled there."""
    return {part.name.text for part in ast.walk(said) if isinstance(part, ast.TableRef)}


def named_in(said: Declaration) -> set[str]:
    """The names of what must be there before: what is read, where late rows go, and what a query
    feeds."""
    found = read_by(said)
    match said:
        case ast.CreateStream(late=ast.Late(into=ast.Ident(text))):
            found.add(text)
        case ast.CreateQuery(into=ast.Into(stream=ast.Ident(text))):
            found.add(text)
    return found
