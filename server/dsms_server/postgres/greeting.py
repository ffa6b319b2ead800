"""The first messages of a connection: what it is for, and who is there.

A server without users and without a token lets everybody in who reaches it, as by its own protocol.
Else the peer sends a password (or a token in its place) in the clear, so it does that under TLS, or
from this machine: the passwords are kept as argon2 hashes, which SCRAM can't be made of."""

from __future__ import annotations

import asyncio
import ipaddress
from functools import partial
from typing import TYPE_CHECKING

from dsms.errors import UsageError
from dsms_server.identities import Identity, name_of
from dsms_server.postgres import codec, errors
from dsms_server.postgres.codec import CANCEL_REQUEST, GSS_REQUEST, SSL_REQUEST, VERSION, Body
from dsms_server.postgres.conversation import Conversation
from dsms_server.postgres.settings import Settings, seconds

if TYPE_CHECKING:
    from dsms_server.postgres.peer import Peer

PASSWORD = ord("p")
_OWN = ("user", "database", "options", "replication")


class Greeting:
    """Of one session."""

    def __init__(self, session: Peer) -> None:
        self.session = session
        self._settings: Settings | None = None

    async def hear(self, kind: int, body: bytes) -> None:
        """A message before it is known who is there.  Raises DS626, DS605."""
        session = self.session
        if self._settings is None:
            await self._start(body)
        elif kind == PASSWORD:
            fields = Body(body)
            password = fields.text()
            fields.over()
            await self._judge(password)
        else:
            session.fatal(codec.broken("a password is to come first"))

    async def _start(self, body: bytes) -> None:
        fields = Body(body)
        code = fields.unsigned()
        if code == CANCEL_REQUEST:
            self.session.face.cancel(fields.unsigned(), fields.unsigned())
            self.session.transport.close()
            return
        if code in (SSL_REQUEST, GSS_REQUEST):
            raise codec.broken("encryption was asked for already")
        if code >> 16 != VERSION:
            raise codec.broken(f"its version is {code >> 16}.{code & 0xFFFF}, and 3.0 is spoken")
        given = _pairs(fields)
        if not given.get("user"):
            raise errors.with_state(UsageError("DS605", "no user is named"), "28000")
        if given.get("replication", "false").lower() not in ("false", "off", "no", "0"):
            raise errors.with_state(UsageError("DS627", "this port has no replication"), "0A000")
        unknown = [name for name in given if name.startswith("_pq_.")]
        if code & 0xFFFF or unknown:
            self.session.write(codec.negotiate(VERSION << 16, unknown))
        self._settings = Settings(given["user"], given.get("database"))
        self._set(given)
        await self._ask()

    def _set(self, given: dict[str, str]) -> None:
        assert self._settings is not None
        for name, value in [*_options(given.get("options", "")), *given.items()]:
            if name in _OWN or name.startswith("_pq_."):
                continue
            self._settings.set(name, value)
            if name.casefold() == "statement_timeout":
                self.session.account.statement_timeout = seconds(value)

    async def _ask(self) -> None:
        """Let in who need not show anything more, or ask for a password."""
        session = self.session
        server, settings = session.server, self._settings
        assert settings is not None
        session.account.claimed = settings.user
        if not session.threshold.guarded:
            self._let_in(Identity())
            return
        certificate = name_of(session.transport.get_extra_info("peercert"))
        session.account.certificate = certificate
        if server.config.auth and certificate is not None:
            found = server.identities.by_certificate(certificate)
            if found is not None and (found.user or "").casefold() == settings.user.casefold():
                self._let_in(found)
                return
        if not (session.secure or _is_near(session.account.peer)):
            raise errors.with_state(
                UsageError(
                    "DS605",
                    "a password is not taken in the clear from another machine",
                    hint="connect with TLS (sslmode=require); the server needs --tls-cert",
                ),
                "28000",
            )
        session.write(codec.authentication(3))

    async def _judge(self, password: str) -> None:
        """Whether that is the password, or a token, of who it is said to be."""
        session, settings = self.session, self._settings
        server = session.server
        assert settings is not None
        if wait := session.threshold.wait():
            await self._pause(wait)
        user = settings.user if server.config.auth else None
        found = server.identities.by_token(password, user) if password else None
        if found is None and server.config.auth:
            ask = partial(server.identities.by_password, settings.user, password)
            found = await server.loop.run_in_executor(server.hashing, ask)
        if found is None:
            await self._pause(session.threshold.wrong())
            problem = UsageError("DS605", "the user, password or token is wrong")
            session.threshold.refused()
            session.fatal(problem)
            return
        refused = server.quotas.check_session(found.user, None)
        if refused is not None:
            session.fatal(refused)
            return
        self._let_in(found)

    async def _pause(self, wait: float) -> None:
        """Nothing more is read for so long."""
        over: asyncio.Future[None] = self.session.server.loop.create_future()
        self.session.threshold.hold(wait, 0, lambda: over.set_result(None))
        with self.session.at_leisure():
            await over

    def _let_in(self, found: Identity) -> None:
        session, settings = self.session, self._settings
        assert settings is not None
        if session.closed or not session.trusted():
            return
        session.identity = found
        session.account.user = session.account.claimed = found.user
        session.server.audit.login(session.account)
        said = [codec.authentication(0)]
        said += [codec.parameter_status(name, value) for name, value in settings.reported()]
        session.write(b"".join(said))
        session.begun(Conversation(session, settings))
        session.write(codec.ready("I"))


def _pairs(fields: Body) -> dict[str, str]:
    """Names and values up to an empty name."""
    found: dict[str, str] = {}
    while name := fields.text():
        found[name] = fields.text()
    fields.over()
    return found


def _options(text: str) -> list[tuple[str, str]]:
    """``-c name=value``, ``--name=value``."""
    words = text.replace("\\ ", "\0").replace("-c ", "--").split()
    found = []
    for word in words:
        name, _, value = word.replace("\0", " ").lstrip("-").partition("=")
        if word.startswith("-") and value:
            name = name[1:] if word.startswith("-c") else name
            found.append((name.replace("-", "_"), value))
    return found


def _is_near(peer: str) -> bool:
    """Whether an address with its port is of this machine."""
    host = peer.rpartition(":")[0].strip("[]").partition("%")[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
