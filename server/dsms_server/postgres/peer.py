"""What the parts of a PostgreSQL session know of it (`dsms_server.postgres.session`)."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

from dsms.errors import DsmsError
from dsms_server.parties import Peer as AnyPeer
from dsms_server.postgres.catalog import Catalogs


class Shared(Protocol):
    """As `dsms_server.postgres.face.Postgres` says."""

    @property
    def catalogs(self) -> Catalogs: ...

    def key_for(self, number: int, session: Any) -> int: ...

    def lose(self, number: int) -> None: ...

    def cancel(self, number: int, secret: int) -> None: ...


class Peer(AnyPeer, Protocol):
    """A session, as its greeting and its conversation see it."""

    secure: bool

    @property
    def face(self) -> Shared: ...

    def fatal(self, problem: DsmsError) -> None: ...

    def at_leisure(self) -> AbstractContextManager[None]: ...

    async def drained(self) -> None: ...

    def begun(self, conversation: Any) -> None: ...
