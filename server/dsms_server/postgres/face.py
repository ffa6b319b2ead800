"""What all sessions of the port share: the listener, the keys by which they are cancelled, the
catalogs."""

from __future__ import annotations

import hmac
import secrets
import socket
from typing import Protocol

from dsms_server.accepting import bind
from dsms_server.parties import Host
from dsms_server.postgres.catalog import Catalogs
from dsms_server.postgres.door import PostgresDoor
from dsms_server.postgres.session import PostgresSession
from dsms_server.tls import context_of


class Cancelled(Protocol):
    """A session, as far as it can be cancelled."""

    def cancel(self) -> None: ...


class Postgres:
    """The port.  Belongs to the event loop, but for `catalogs`."""

    def __init__(self, server: Host) -> None:
        self.server = server
        self.catalogs = Catalogs()
        self._keys: dict[int, tuple[int, Cancelled]] = {}
        self.port = 0

    def open(self, sockets: list[socket.socket]) -> None:
        """Listen on these, or where the configuration says if there are none.  Raises OSError."""
        config = self.server.config
        context = None if config.tls_cert is None else context_of(config)
        sockets = sockets or bind(config.host, config.postgres_port or 0)
        self._door = PostgresDoor(self._session, self.server, context, sockets)
        self.port = self._door.port

    def close(self) -> None:
        """Accept nothing more."""
        self._door.close()

    def end(self) -> None:
        """The last session is gone."""
        self.catalogs.close()

    def _session(self, first: bytes, secure: bool) -> PostgresSession:
        return PostgresSession(self.server, self, first, secure)

    def key_for(self, number: int, session: Cancelled) -> int:
        """A secret by which the session of that number is cancelled."""
        secret = secrets.randbits(32)
        self._keys[number] = secret, session
        return secret

    def lose(self, number: int) -> None:
        """The session is gone."""
        self._keys.pop(number, None)

    def cancel(self, number: int, secret: int) -> None:
        """Stop what a session runs, if that is its secret."""
        found = self._keys.get(number)
        if found is not None and hmac.compare_digest(found[0].to_bytes(4), secret.to_bytes(4)):
            found[1].cancel()
