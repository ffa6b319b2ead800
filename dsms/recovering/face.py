"""The engine, as far as it is written down and brought back, and how it came back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dsms.intake.convert import Converted
from dsms.intake.shedding import Shed
from dsms.running.runtime import Runtime
from dsms.running.writers import FramePart, Writers
from dsms.sql import ast


@dataclass(slots=True)
class Recovered:
    """How an engine came back.

    checkpoint  the record that it started from (0: none)
    records     applied again behind it, of which `rows` rows of streams
    notes       what is missing or was mended, in sentences
    """

    checkpoint: int = 0
    records: int = 0
    rows: int = 0
    notes: list[str] = field(default_factory=list)


class Recovering(Protocol):
    """The engine, as far as it is written down and brought back (`dsms.engine.Engine`)."""

    runtime: Runtime
    now: int | None
    writers: Writers

    def take(
        self,
        key: str,
        rows: Converted,
        now: int | None = None,
        part: FramePart | None = None,
        *,
        shed: Shed | None = None,
    ) -> object: ...

    def take_group(
        self, key: str, rows: Converted, now: int | None, parts: Sequence[FramePart]
    ) -> object: ...

    def take_late(self, key: str, columns: Any, now: int | None) -> None: ...

    def heartbeat_of(self, key: str, ts: int) -> None: ...

    def punctuate_of(
        self, key: str, columns: tuple[int, ...], values: tuple[Any, ...], upto: int
    ) -> None: ...

    def end_of(self, key: str) -> None: ...

    def advance(self, now: int) -> None: ...

    def declare(self, statement: ast.Statement, sql: str, user: str | None = None) -> object:
        """One statement, and its text."""
        ...
