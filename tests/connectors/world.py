"""A server with sources and sinks in this process, and questions to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dsms.engine import Engine
from dsms_client.sync import Client
from dsms_server.config import Config
from dsms_server.serve import make_engine
from tests.server.harness import Running
from tests.waiting import wait_until


class World:
    """`ask` answers with rows of a statement, as dicts."""

    def __init__(self, running: Running, client: Client) -> None:
        self.running, self.client = running, client

    @property
    def engine(self) -> Engine:
        return self.running.engine

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.client.execute(statement)

    def ask(self, statement: str) -> list[dict[str, Any]]:
        found = self.client.query(statement)
        return [dict(zip(found.columns, row, strict=True)) for row in found.rows]

    def values(self, statement: str) -> list[Any]:
        """Of the first column."""
        return [row[0] for row in self.client.query(statement).rows]

    def line(self, name: str, kind: str = "source") -> dict[str, Any]:
        (found,) = self.ask(f"SHOW {kind.upper()}S LIKE '{name}'")
        return found

    def until(self, name: str, kind: str = "source", **wanted: Any) -> dict[str, Any]:
        """Wait until it does as is wanted."""

        def holds() -> bool:
            line = self.line(name, kind)
            if line["state"] == "failed" and wanted.get("state") != "failed":
                raise AssertionError(f"{kind} {name} has failed: {line['last_error']}")
            return all(line[key] == value for key, value in wanted.items())

        wait_until(holds, f"{kind} {name} with {wanted}, it has {self.line(name, kind)}")
        return self.line(name, kind)


@contextmanager
def world(data: Any = None, **options: Any) -> Iterator[World]:
    """Started over a data folder (None: nothing is kept), and stopped."""
    given = {"data": None if data is None else str(data), **options}
    running = Running(make_engine(Config(port=0, **given)), **given)
    try:
        with Client(port=running.port) as client:
            yield World(running, client)
    finally:
        running.stop()
