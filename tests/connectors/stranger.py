"""A connector of somebody else's, found by an entry point: a list of messages in this process, with
all that may go wrong at the other side."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dsms_server.connectors.protocol import (
    Connector,
    Failed,
    Messages,
    Option,
    Place,
    Sink,
    Source,
    Told,
)


class Board:
    """A place with messages and what was told there, by name.

    down    connections fail;  dies_at: one ends when it would read behind so many messages
    keeps   the place keeps the number of the next result row, as some do
    holds   what is written does not return, though it is there
    """

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.written: list[tuple[int, dict[str, Any]]] = []
        self.opened: list[Any] = []
        self.committed = self.number = 0
        self.down: Exception | None = None
        self.dies_at: int | None = None
        self.keeps = self.fails_behind = False
        self.at_once = 1000


BOARDS: dict[str, Board] = {}


class BoardSource(Source):
    options = (Option("board", "which", needed=True), Option("password", "", "secret"))
    beside = ("place",)

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        super().__init__(options, place)
        self._board = BOARDS[options["board"]]

    async def open(self, position: Any) -> Any:
        self._board.opened.append(position)
        if self._board.down is not None:
            raise self._board.down
        self._at = position or 0
        return self._at

    async def read(self) -> AsyncIterator[Messages]:
        board = self._board
        while True:
            if board.down is not None:
                raise board.down
            found = board.messages[self._at : self._at + board.at_once]
            if board.dies_at is not None and self._at + len(found) > board.dies_at:
                raise ConnectionError("the board has fallen down")
            if not found:
                await asyncio.sleep(0.001)
                continue
            places = [f"{self.said['board']}/{self._at + k}" for k in range(len(found))]
            self._at += len(found)
            self.lag = len(board.messages) - self._at
            yield Messages(found, self._at, {"place": places})

    async def commit(self, messages: Messages) -> None:
        self._board.committed = messages.position


class BoardSink(Sink):
    options = (Option("board", "which", needed=True), Option("password", "", "secret"))

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        super().__init__(options, place)
        self._board = BOARDS[options["board"]]
        self.at_once = self._board.at_once

    async def open(self, note: Any) -> int | None:
        self._board.opened.append(note)
        if self._board.down is not None:
            raise self._board.down
        return self._board.number if self._board.keeps else None

    async def write(self, told: Told) -> Any:
        import json

        if self._board.down is not None:
            raise self._board.down
        for k, line in enumerate(await self.lines(told)):
            number = -1 if told.snapshot else told.first + k
            self._board.written.append((number, json.loads(line)))
        self._board.number = told.upto
        if self._board.fails_behind:
            raise ConnectionError("what was written was not acknowledged")
        return {"upto": told.upto}


class Nothing:
    """No connector."""


CONNECTOR = Connector("board", BoardSource, BoardSink)
NEEDY = Connector("needy", BoardSource, None, "no_such_library", "needy")
NO_CONNECTOR = Nothing()
FAILED = Failed("DS665", "somebody has to mend the board")


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """As if a wheel with these connectors were installed."""
    about = folder / "stranger-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[dsms.connectors]\n"
        "board = tests.connectors.stranger:CONNECTOR\n"
        "needy = tests.connectors.stranger:NEEDY\n"
        "nothing = tests.connectors.stranger:NO_CONNECTOR\n"
        "broken = tests.connectors.no_such_module:CONNECTOR\n"
    )
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
