"""Work of a PostgreSQL session that the engine's thread does, as something to wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from dsms.api import Cancel
from dsms.errors import DsmsError
from dsms_server.postgres.peer import Peer
from dsms_server.worker import Steps, Urgency


async def asked(
    session: Peer,
    kind: str,
    steps: Callable[[Cancel], Steps],
    urgency: Urgency = Urgency.STATEMENT,
) -> Any:
    """What the steps return, once the session's turn has come; `kind` as for its other requests.
    Raises what ended them."""
    over: asyncio.Future[Any] = session.server.loop.create_future()

    def answer(result: Any) -> None:
        if not over.done():
            over.set_result(result)

    def failed(problem: DsmsError) -> None:
        if not over.done():
            over.set_exception(problem)

    session.hold(1)
    session.requests.queue(object(), 1, kind, urgency, steps, answer, failed)
    return await over
