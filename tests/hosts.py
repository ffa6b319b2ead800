"""An engine whose answers are compared with those of one that has a part of the product off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dsms.engine import Engine
from dsms.errors import DsmsError
from dsms.settings import Settings


class Host:
    """An engine in a folder, its readers, and what they were given.  `choices` are settings."""

    def __init__(self, folder: str, pauses: bool, setup: Sequence[str], **choices: Any) -> None:
        self.folder, self.pauses, self.choices = folder, pauses, choices
        self.readers: dict[str, Any] = {}
        self.engine = self.opened()
        for sql in setup:
            self.engine.execute(sql)

    def opened(self) -> Engine:
        pause = (lambda: True) if self.pauses else None
        return Engine(self.folder, Settings(pause=pause, **self.choices))

    def restart(self) -> None:
        self.engine.close()
        self.engine = self.opened()
        for name in self.readers:
            self.readers[name] = self.engine.subscribe(name, self.engine.next_seq(name))

    def run(self, sql: str) -> str:
        """What comes of a statement, or how it is refused."""
        try:
            return str(self.engine.execute(sql))
        except DsmsError as error:
            return f"{error.code} {error.message}"

    def drop(self, name: str) -> None:
        self.engine.execute(f"DROP QUERY {name}")
        del self.readers[name]

    def settled(self) -> None:
        """Whoever is to move has moved."""
        while self.engine.work():
            pass

    def taken(self) -> dict[str, Any]:
        self.settled()
        return {
            name: [
                (p.seq, p.kind, p.at, p.ats, p.code, p.message, None if p.data is None else
                 str(p.data.to_pylist()))
                for p in reader.take()
            ]
            for name, reader in self.readers.items()
        }  # a line a push  # fmt: skip

    def look(self) -> list[str]:
        """What SHOW QUERIES says."""
        self.settled()
        (shown,) = self.engine.execute("SHOW QUERIES FULL")
        unlike = {"state_bytes", "cost"}  # rows that wait, and what was planned of how many
        columns = [c for c in shown.data.column_names if c not in unlike]  # type: ignore[union-attr]
        return [str(row) for row in shown.data.select(columns).to_pylist()]  # type: ignore[union-attr]
