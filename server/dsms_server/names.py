"""What the loop and the engine's thread know of streams and rights without asking the engine each
time.  What both sides read is replaced, never changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from dsms.errors import UsageError
from dsms_client.protocol import nearest
from dsms_server.decode import StreamShape
from dsms_server.face import EngineFace

ALLOWED = 4096  # requests of users that are known to be allowed


class Names:
    """shapes          the columns of each stream and table
    known           objects and their columns, for completion
    clock_matters   some stream is stamped on arrival or may go idle
    rights_changed  called in the event loop"""

    def __init__(self, engine: EngineFace, loop: asyncio.AbstractEventLoop) -> None:
        self._engine = engine
        self._loop = loop
        self._rights = engine.rights
        self._allowed: set[tuple[str, str, str]] = set()  # requests, under the rights as they are
        self.shapes: dict[str, StreamShape] = {}
        self.known: dict[str, Any] = {}
        self.clock_matters = False
        self.rights_changed: Callable[[], None] = lambda: None

    def shape_of(self, stream: str) -> StreamShape | None:
        """The columns of a stream or table by exact name, else in any case."""
        return self.shapes.get(stream) or self.shapes.get(stream.casefold())

    def check(self, user: str | None, op: str, name: str) -> None:
        """Raises what `check_request` raises; what was allowed is until a statement has changed
        something."""
        if user is None:
            return
        asked = (user, op, name)
        if asked not in self._allowed or self._engine.rights is not self._rights:
            self._engine.check_request(user, op, name)
            if len(self._allowed) < ALLOWED:
                self._allowed.add(asked)

    def learn(self) -> None:
        """A statement may have changed what there is, or who may do what with it."""
        self.known = self._engine.names()
        self._allowed.clear()
        if self._engine.rights is not self._rights:
            self._rights = self._engine.rights
            self._loop.call_soon_threadsafe(self.rights_changed)
        shapes: dict[str, StreamShape] = {}
        for definition in self._engine.streams():
            stamped = definition.stamped
            shape = StreamShape(
                definition.name,
                definition.brought,
                stamped,
                definition.idle_timeout is not None,
                computed=definition.made,
            )
            shapes.setdefault(definition.name.casefold(), shape)
            shapes[definition.name] = shape
        for table in self._engine.tables():
            shape = StreamShape(table.name, table.schema, table=True)
            shapes.setdefault(table.name.casefold(), shape)
            shapes[table.name] = shape
        self.shapes = shapes
        self.clock_matters = any(s.stamped or s.watched for s in shapes.values())

    def known_shape(self, stream: str) -> StreamShape:
        shape = self.shape_of(stream)
        if shape is not None:
            return shape
        known = list(self.known["streams"])
        hint = nearest(stream, known) or f"streams are {', '.join(known) or 'none yet'}"
        raise UsageError("DS401", f"there is no stream `{stream}`", hint=hint)
