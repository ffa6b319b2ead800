"""The first request of a session: who is there, judged at once, or in another thread where that
takes long."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Protocol

from dsms.errors import UsageError
from dsms_client.protocol import VERSION
from dsms_server.identities import Identity, name_of
from dsms_server.parties import Peer

Message = dict[str, Any]
FORMS = ("rows", "arrow", "auto")


class Greeted(Protocol):
    """The requests of a session, as `dsms_server.requests.Requests` says."""

    session: Peer

    def handle(self, message: Message, size: int) -> None: ...

    def greeted(self, ident: Any, form: str, client: str | None) -> None: ...


def begin(requests: Greeted, message: Message, ident: Any, size: int) -> None:
    """Judge a hello of `size` bytes, which are released when it is answered.  Raises
    DS603-DS606."""
    session = requests.session
    if message["version"] != VERSION:
        raise UsageError("DS606", f"this server speaks version {VERSION}, not {message['version']}")
    if session.user is not None:
        raise UsageError(
            "DS603", "this session has said hello already", hint="open another connection"
        )
    form = message.get("data", "rows")
    if form not in FORMS:
        raise UsageError("DS604", f"`data` is rows, arrow or auto, not {form!r}")
    server, threshold, account = session.server, session.threshold, session.account
    account.claimed, account.client = message.get("user"), message.get("client")
    account.certificate = name_of(session.transport.get_extra_info("peercert"))
    certificate = account.certificate if server.config.auth else None
    server.identities.check(message, certificate)
    judge = partial(_judge, requests, message, ident, size)
    if threshold.guarded and (seconds := threshold.wait()):
        threshold.hold(seconds, size, partial(requests.handle, message, size))
    elif "password" in message and not message.get("token"):
        _verify(session, message, size, judge)
    elif message.get("token") or certificate is None:
        judge(server.identities.by_token(message.get("token"), message.get("user")))
    else:
        judge(server.identities.by_certificate(certificate))


def _verify(session: Peer, message: Message, size: int, judge: Any) -> None:
    """Passwords are looked at in other threads, a few at a time; nothing more is read meanwhile."""
    go_on, server = session.threshold.suspend(size), session.server
    ask = partial(server.identities.by_password, message["user"], message["password"])

    def done(found: asyncio.Future[Identity | None]) -> None:
        if not found.cancelled():
            go_on(lambda: judge(found.result()))

    server.loop.run_in_executor(server.hashing, ask).add_done_callback(done)


def _judge(
    requests: Greeted, message: Message, ident: Any, size: int, found: Identity | None
) -> None:
    """Let in who has shown who it is; a wrong token or password is answered later."""
    session = requests.session
    if found is None:
        _refuse_later(session, ident, size)
        return
    session.account.claimed = found.user
    problem = session.server.quotas.check_session(found.user, message.get("client"))
    if problem is not None:
        session.refuse(ident, problem)
        session.release(size)
        session.linger()
        return
    if session.trusted():
        session.identity = found
        session.account.user = found.user
        session.changes = message.get("changes", False)
        requests.greeted(ident, message.get("data", "rows"), message.get("client"))
    session.release(size)


def _refuse_later(session: Peer, ident: Any, size: int) -> None:
    problem = UsageError(
        "DS605", "the token is wrong", hint="give the token that `dsms serve` was given"
    )
    if session.server.config.auth:
        problem = UsageError("DS605", "the user, password or token is wrong")

    def answer() -> None:
        session.refuse(ident, problem)
        session.threshold.refused()
        session.release(size)

    session.threshold.hold(session.threshold.wrong(), size, answer)
