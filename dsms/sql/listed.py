"""What is declared, as catalogs of other systems list it."""

from __future__ import annotations

from dataclasses import dataclass

from dsms.sql.types import Schema, Type


@dataclass(frozen=True, slots=True)
class Declared:
    """An object, or a function of one's own.

    kind      stream, table, query; function, aggregate
    columns   of a function its parameters
    key       names of the columns of the PRIMARY KEY
    result    the type that a function gives;  text: its body, or the statement that made it
    """

    kind: str
    name: str
    columns: Schema
    key: tuple[str, ...] = ()
    comment: str | None = None
    result: Type | None = None
    text: str = ""
