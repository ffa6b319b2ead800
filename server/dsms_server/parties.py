"""What the parts of a server know of each other: of the server that holds them, and of the session
of a peer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from dsms.api import Cancel, Chunk, Push
from dsms.errors import DsmsError, UsageError
from dsms_server.account import Account
from dsms_server.audit.trail import Trail
from dsms_server.config import Config
from dsms_server.core import Core
from dsms_server.descriptors import Room
from dsms_server.feeds import SubscriptionFeed
from dsms_server.guesses import Guesses
from dsms_server.identities import Identities, Identity
from dsms_server.metrics import Metrics
from dsms_server.quotas import Quotas
from dsms_server.watchdog import Watchdog
from dsms_server.worker import EngineJob, Lane, Steps, Urgency


class Host(Protocol):
    """As `dsms_server.server.Server` says."""

    version: str
    run: str
    audit: Trail
    quotas: Quotas
    config: Config
    core: Core
    metrics: Metrics
    loop: asyncio.AbstractEventLoop
    pool: ThreadPoolExecutor
    room: Room
    guesses: Guesses
    later: Callable[..., asyncio.TimerHandle]
    watchdog: Watchdog
    held: set[Peer]
    identities: Identities
    hashing: ThreadPoolExecutor
    unprocessed: int
    unread: int
    stopping: bool
    http_port: int | None
    postgres_port: int | None

    def account_of(self, session: Peer) -> Account: ...

    def admit(self, session: Peer) -> UsageError | None: ...

    def prove(self, session: Peer) -> UsageError | None: ...

    def gone(self, session: Peer) -> None: ...

    @property
    def memory(self) -> Ledger: ...

    def lane_of(self, client: str, session: Peer) -> Lane: ...

    def relax(self) -> None: ...

    def update_gauges(self) -> None: ...


class Ledger(Protocol):
    """As `dsms_server.memory.Memory` says."""

    def check(self, what: str) -> None: ...

    def take_rows(self, size: int) -> None: ...

    def bound(self, size: int) -> int: ...


class Standing(Protocol):
    """As `dsms_server.threshold.Threshold` says."""

    came: int
    guarded: bool
    address: str

    def refused(self) -> None: ...

    def told(self, problem: DsmsError) -> None: ...

    def wait(self) -> float: ...

    def wrong(self) -> float: ...

    def hold(self, seconds: float, size: int, then: Callable[[], None]) -> None: ...

    def suspend(self, size: int) -> Callable[[Callable[[], None]], None]: ...

    def lost(self) -> None: ...


class Asking(Protocol):
    """As `dsms_server.requests.Requests` says."""

    client: str | None
    lane: Lane
    feeds: dict[str, SubscriptionFeed]

    def cancel_all(self) -> None: ...

    def queue(
        self,
        ident: Any,
        size: int,
        kind: str,
        urgency: Urgency,
        steps: Callable[[Cancel], Steps],
        answer: Callable[[Any], None],
        failed: Callable[[DsmsError], None] | None = None,
    ) -> EngineJob: ...

    def stop_statements(self, why: DsmsError) -> None: ...

    def give_up(self, feed: SubscriptionFeed) -> None: ...

    def detach(self, feed: SubscriptionFeed) -> None: ...

    def abandon(self) -> None: ...

    @property
    def has_statements(self) -> bool: ...

    def recheck(self) -> None: ...


class Peer(Protocol):
    """As `dsms_server.session.Session` says."""

    transport: Any
    account: Account
    unprocessed: int
    half_closed: bool
    closed: bool
    form: str
    identity: Identity
    changes: bool
    read_paused: bool
    write_paused: bool

    @property
    def server(self) -> Host: ...

    @property
    def user(self) -> str | None: ...

    @property
    def threshold(self) -> Standing: ...

    @property
    def requests(self) -> Asking: ...

    @property
    def written(self) -> tuple[int, int]: ...

    @property
    def quiet(self) -> bool: ...

    @property
    def waiting_bytes(self) -> int: ...

    @property
    def unread(self) -> int: ...

    def __hash__(self) -> int: ...

    def buffer_updated(self, nbytes: int) -> None: ...

    def trusted(self) -> bool: ...

    def promised(self, every: float | None) -> None: ...

    def hold(self, size: int) -> None: ...

    def release(self, size: int) -> None: ...

    def expect(self, size: int) -> None: ...

    def regulate(self) -> None: ...

    def write(self, frame: bytes) -> None: ...

    def reply(self, ident: Any, **fields: Any) -> None: ...

    def refuse(self, ident: Any, problem: DsmsError) -> None: ...

    def deliver(self, feed: SubscriptionFeed, items: list[Push | Chunk]) -> None: ...

    def forget(self, feed: SubscriptionFeed) -> None: ...

    def linger(self) -> None: ...

    def take_back(
        self, feed: SubscriptionFeed, problem: DsmsError, seq: int | None = None
    ) -> None: ...

    def dismiss(self, problem: DsmsError) -> None: ...

    def farewell(self, problem: UsageError) -> None: ...
