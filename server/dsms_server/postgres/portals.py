"""Prepared statements, and portals: statements with their values, and what is left of their
answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from dsms_server.postgres import codec
from dsms_server.postgres.codec import Shown
from dsms_server.postgres.statements import Statement

_LOCAL = ("begin", "commit", "rollback", "deallocate", "discard")


@dataclass(slots=True)
class Prepared:
    """A statement (None: an empty text), as it was sent.

    oids   the types of parameters that its client has said, 0 where it has not
    count  of its parameters
    found  the types that its text tells, once somebody has asked"""

    statement: Statement | None
    text: str = ""
    oids: Sequence[int] = ()
    marks: int = 0
    found: tuple[int, ...] | None = None

    @property
    def count(self) -> int:
        return max(self.marks, len(self.oids))

    def oids_for(self) -> list[int]:
        """Of all parameters, 0 where nothing tells."""
        said = [*self.oids, *[0] * (self.count - len(self.oids))]
        found = self.found or (0,) * self.count
        return [oid or told for oid, told in zip(said, found, strict=True)]


@dataclass(slots=True)
class Portal:
    """`raw`: its values as they were sent; `formats`: of columns, as the client wants them.

    columns  of the answer, None: it has none, or has not been run
    table    what is left of it;  stream: where the rest comes from
    tag      what CommandComplete says;  given: rows so far
    holds    it outlives the transaction"""

    prepared: Prepared
    values: list[Any] = field(default_factory=list)
    raw: list[bytes | None] = field(default_factory=list)
    formats: Sequence[int] = ()
    ran: bool = False
    columns: tuple[Shown, ...] | None = None
    table: pa.Table | None = None
    stream: Any = None
    verb: str = ""
    given: int = 0
    holds: bool = False

    @property
    def local(self) -> bool:
        """Whether the conversation does it by itself."""
        statement = self.prepared.statement
        return statement is None or statement.verb in _LOCAL

    @property
    def tag(self) -> str:
        """``SELECT 5``."""
        counted = self.verb in ("SELECT", "FETCH", "MOVE", "SUBSCRIBE")
        return f"{self.verb} {self.given}" if counted else self.verb

    def take(self, most: int) -> pa.Table | None:
        """The next rows of the answer, `most` of them (0: all)."""
        if self.table is None:
            return None
        taken = self.table if not most else self.table.slice(0, most)
        self.table = self.table.slice(taken.num_rows)
        return taken


def formats_for(formats: Sequence[int], count: int) -> list[int]:
    """One for each: none said is text, one is for all.  Raises DS626."""
    if len(formats) == count:
        return list(formats)
    if len(formats) > 1:
        raise codec.broken(f"{len(formats)} formats for {count} values")
    return [*formats, 0][:1] * count
