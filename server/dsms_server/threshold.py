"""What a connection may do before it has authenticated: next to nothing.

Where a token is asked for, that is a `hello` of at most 4 KB within `hello_seconds`, of which no
list, blob or extension is decoded.  Wrong tokens are answered later and later (`guesses`), and
nothing more is read meanwhile.  On an open server any request that can be read will do, within
`quiet_seconds`.  Bytes that trickle in lengthen neither time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgpack

from dsms.errors import DsmsError, UsageError
from dsms_client import protocol
from dsms_server import foreign
from dsms_server.parties import Host, Peer
from dsms_server.strangers import address_of

log = logging.getLogger("dsms.server")
HELLO_BYTES = 4 << 10  # of a frame before the token
TRIES = 16  # frames that are refused before the connection is closed
FIELDS = 16  # of a map


class Threshold:
    """Where a session stands until it is `proven`; `waiting`: a token of it is not looked at, or
    answered, yet."""

    session: Peer  # from `come` on, which a handshake that fails never sees

    def __init__(self, server: Host) -> None:
        self.server = server
        self.guarded = self.server.config.token is not None or self.server.config.auth
        self.proven = self.waiting = False
        self.address = ""
        self._deadline: asyncio.TimerHandle | None = None
        self._held: asyncio.TimerHandle | None = None
        self._refused = 0
        self.came = 0  # bytes
        self._late = False
        self._noted = False  # the audit log has what is wrong, which is answered later

    def come(self, session: Peer) -> None:
        """The connection is there."""
        self.session = session
        self.address = address_of(self.session.transport.get_extra_info("peername"))
        self._deadline = self.server.later(self.seconds, self._out_of_time)

    def lost(self) -> None:
        """The connection is gone."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if self._held is not None:
            self._held.cancel()
            self._held = None

    def count(self, size: int) -> None:
        """Bytes have come."""
        self.came += size

    # -- the time ----------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """In which the peer must prove itself."""
        config = self.server.config
        return config.hello_seconds if self.guarded else config.quiet_seconds

    def _out_of_time(self) -> None:
        # what has come by now is read first: a loop that was held up fires timers before it looks
        # at sockets
        self._deadline = self.server.later(0, self._too_quiet)

    def _too_quiet(self) -> None:
        self._deadline = None
        # a whole frame, in another thread
        being_read = not self.guarded and self.session.unprocessed
        if self.waiting or being_read:
            self._late = True
        else:
            self._let_go()

    def _let_go(self) -> None:
        self.server.metrics.let_go.labels("quiet").inc()
        if not self.came:
            self.session.write(foreign.silence(self.seconds))
            self.session.transport.close()
        elif self.guarded:
            what = "token or password" if self.server.config.auth else "token"
            self.session.dismiss(
                UsageError("DS605", f"no {what} was shown within {self.seconds:g} s")
            )
        else:
            self.session.dismiss(
                UsageError("DS607", f"no request that can be read came within {self.seconds:g} s")
            )

    # -- what is said ------------------------------------------------------------------------------

    def hello(self, body: bytes | memoryview) -> dict[str, Any] | DsmsError:
        """The hello in a frame, or the error that answers it."""
        message = _shallow(body)
        if message.get("op") == "hello":
            try:
                protocol.check_request(message)
                return message
            except DsmsError as refusal:
                return _of_request(message, refusal)
        hint = "begin with hello{version, token}"
        if self.server.config.auth:
            hint = "begin with hello{version, token} or hello{version, user, password}"
        problem = UsageError("DS605", "this server asks for a token", hint=hint)
        return _of_request(message, problem)

    def refused(self) -> None:
        """A frame was refused: so many of them are one too many."""
        self._refused += 1
        if self.proven:
            return
        if self.guarded and self._refused >= TRIES:
            self.session.linger()
        elif self._late and not self.guarded:
            self._let_go()

    def told(self, problem: DsmsError) -> None:
        """The peer is told of an error: if that means that it is not let in, it is written down."""
        if self.proven or not (self.guarded or problem.code == "DS621"):
            return
        if not self._noted:
            self.server.audit.refused(self.session.account, problem.code)
        self._noted = False

    def prove(self) -> bool:
        """The peer has authenticated; answers whether there is a place for it."""
        if self.proven:
            return True
        problem = self.server.prove(self.session)
        if problem is not None:
            self.session.refuse(None, problem)
            self.session.linger()
            return False
        self.proven = True
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        return True

    def wait(self) -> float:
        """Seconds until a token of this peer is looked at."""
        return self.server.guesses.wait(self.address)

    def wrong(self) -> float:
        """Note a wrong token or password; returns the seconds until it may be answered."""
        self.server.metrics.wrong_tokens.inc()
        self.server.audit.refused(self.session.account, "DS605")
        self._noted = True
        log.warning("a wrong token was given by %s", self.address or "a peer without an address")
        return self.server.guesses.wrong(self.address)

    def hold(self, seconds: float, size: int, then: Callable[[], None]) -> None:
        """Go on after a while, with a request of `size` bytes; nothing more is read until then, and
        the stop of the server does not wait for it."""
        go_on = self.suspend(size)

        def over() -> None:
            self._held = None
            go_on(then)

        self._held = self.server.later(seconds, over)

    def suspend(self, size: int) -> Callable[[Callable[[], None]], None]:
        """Read nothing more until what this gives is called, with what is to be done then."""

        def go_on(then: Callable[[], None]) -> None:
            self.waiting = False
            if session.closed:
                return
            session.hold(size)
            then()
            if self._late and not (self.proven or self.waiting or session.closed):
                self._let_go()
            elif not session.closed:
                session.buffer_updated(0)

        session = self.session  # which is not known here any more once it has closed
        self.waiting = True
        session.release(size)
        return go_on


def _shallow(body: bytes | memoryview) -> dict[str, Any]:
    """A map of texts and numbers; empty if it is anything else."""
    if len(body) > HELLO_BYTES:
        return {}
    try:
        message = msgpack.unpackb(
            body, use_list=False, max_map_len=FIELDS, max_array_len=0, max_bin_len=0, max_ext_len=0
        )
    except Exception:
        return {}
    return message if isinstance(message, dict) else {}


def _of_request(message: dict[str, Any], problem: DsmsError) -> DsmsError:
    ident = message.get("id")
    problem.request_id = ident if isinstance(ident, (int, str)) else None  # type: ignore[attr-defined]
    return problem
