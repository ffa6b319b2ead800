"""NATS JetStream.

Source.  Messages are read by their numbers in the stream, which are the position: exactly once, as
long as the stream keeps what follows.

Sink.  Each message bears the number of its result row (`Nats-Msg-Id`), by which the stream drops
what it has had already: exactly once within its duplicate window (two minutes unless the stream
says otherwise), at least once beyond it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
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
    Unreachable,
)

AT_ONCE = 5000  # messages that are asked for at once
WAIT = 1.0  # seconds for which the stream is asked to wait for them
CONNECTION = (
    Option("url", "nats://host:4222, or tls://", needed=True),
    Option("user", "who connects"),
    Option("password", "of that user", "secret"),
    Option("token", "in place of both", "secret"),
    Option("subject", "of the messages; of a source with wildcards", needed=True),
)


async def connection(said: Mapping[str, Any], name: str) -> Any:
    """Raises Unreachable, Failed."""
    import nats
    from nats import errors

    async def quiet(problem: Exception) -> None:
        """The one who waits is told."""

    given = {key: said[key] for key in ("user", "password", "token") if said[key]}
    try:
        return await nats.connect(
            said["url"],
            name=name,
            allow_reconnect=False,  # whoever made this one makes another
            max_reconnect_attempts=1,
            reconnect_time_wait=0.1,
            error_cb=quiet,
            connect_timeout=10,
            **given,
        )
    except errors.Error as problem:
        text = str(problem)
        if "authorization" in text.lower():
            raise Failed("DS665", text) from None
        raise Unreachable("DS664", text) from None


class NatsSource(Source):
    """Messages of a stream of JetStream."""

    options = (
        *CONNECTION,
        Option("stream", "that has the subject; found by it unless said"),
        Option("begin", "with which message, first", default="start", words=("start", "end")),
    )
    beside = ("subject",)

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        super().__init__(options, place)
        self._nats: Any = None

    async def open(self, position: Any) -> Any:
        from nats.js import api, errors

        self._nats = await connection(self.said, f"dsms-{self.place.name}")
        stream = self._nats.jetstream()
        try:
            name = self.said["stream"] or await stream.find_stream_name_by_subject(
                self.said["subject"]
            )
            if position is None:
                state = (await stream.stream_info(name)).state
                position = state.last_seq if self.said["begin"] == "end" else 0
            self._messages = await stream.pull_subscribe(
                self.said["subject"],
                stream=name,
                config=api.ConsumerConfig(
                    deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
                    opt_start_seq=position + 1,
                    ack_policy=api.AckPolicy.NONE,
                    inactive_threshold=60.0,
                ),
                pending_msgs_limit=1 << 20,
            )
        except errors.NotFoundError:
            what = self.said["stream"] or self.said["subject"]
            raise Failed("DS665", f"there is no stream of JetStream for {what}") from None
        except errors.APIError as problem:
            raise Failed("DS665", str(problem)) from None
        return position

    async def read(self) -> AsyncIterator[Messages]:
        from nats import errors

        while True:
            try:
                found = await self._messages.fetch(AT_ONCE, timeout=WAIT)
            except TimeoutError:
                if self._nats.is_closed:
                    raise Unreachable("DS664", "the server has ended the connection") from None
                continue
            except errors.Error as problem:
                raise Unreachable("DS664", str(problem)) from None
            last = found[-1].metadata
            self.lag = last.num_pending
            subjects = [m.subject for m in found] if self.said["subject_column"] else []
            yield Messages([m.data for m in found], last.sequence.stream, {"subject": subjects})

    async def close(self) -> None:
        if self._nats is not None:
            await self._nats.close()


class NatsSink(Sink):
    """A message a row."""

    options = CONNECTION

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        super().__init__(options, place)
        self._nats: Any = None
        self.at_once = 1000

    async def open(self, note: Any) -> int | None:
        self._nats = await connection(self.said, f"dsms-sink-{self.place.name}")
        self._stream = self._nats.jetstream()
        return None

    async def write(self, told: Told) -> Any:
        from nats import errors as core
        from nats.js import errors

        kind = "s" if told.snapshot else "r"
        lines, subject = await self.lines(told), self.said["subject"]
        sent = [
            self._stream.publish(
                subject, line, headers={"Nats-Msg-Id": f"{self.place.name}-{kind}{told.first + at}"}
            )
            for at, line in enumerate(lines)
        ]
        try:
            await asyncio.gather(*sent)
        except errors.NoStreamResponseError:
            raise Failed("DS665", f"no stream of JetStream has the subject {subject}") from None
        except core.Error as problem:
            raise Unreachable("DS664", str(problem)) from None

    async def close(self) -> None:
        if self._nats is not None:
            await self._nats.close()


CONNECTOR = Connector("nats", NatsSource, NatsSink, "nats", "nats")
