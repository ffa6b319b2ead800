"""RabbitMQ, by aio-pika.

Source.  The broker keeps messages until they are acknowledged, which they are when their rows are
the stream's: at least once.

Sink.  A message a row, confirmed by the broker: at least once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from dsms_server.connectors.inbox import Inbox
from dsms_server.connectors.mqtt import topics_of
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

SECONDS = 10.0
CONNECTION = (
    Option("url", "amqp://host:5672/vhost, or amqps://", needed=True),
    Option("user", "who connects"),
    Option("password", "of that user", "secret"),
)


async def connection(said: Mapping[str, Any]) -> Any:
    """Raises Unreachable, Failed."""
    import aio_pika
    from aiormq import exceptions
    from yarl import URL

    url = URL(said["url"])
    url = url.with_user(said["user"]) if said["user"] else url
    url = url.with_password(said["password"]) if said["password"] else url
    try:
        return await aio_pika.connect(url, timeout=SECONDS)
    except (exceptions.ProbableAuthenticationError, exceptions.AuthenticationError) as problem:
        raise Failed("DS665", f"the broker refuses: {problem}") from None
    except (OSError, TimeoutError, exceptions.AMQPError) as problem:
        raise Unreachable("DS664", f"{url.host}: {problem or 'no answer'}") from None


class RabbitSource(Source):
    """Messages of a queue."""

    options = (
        *CONNECTION,
        Option("queue", "that is read", needed=True),
        Option("declare", "make the queue, durable, if it is not there", "flag", default=False),
        Option("prefetch", "messages that may be on their way", "whole", default=10_000),
    )
    beside = ("routing_key",)

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        super().__init__(options, place)
        self._inbox: Inbox[Any] = Inbox(1 << 30)  # `prefetch` is the bound
        self._connection: Any = None

    async def open(self, position: Any) -> Any:
        from aiormq import exceptions

        self._connection = await connection(self.said)
        try:
            channel = await self._connection.channel()
            await channel.set_qos(prefetch_count=self.said["prefetch"])
            name = self.said["queue"]
            if self.said["declare"]:
                queue = await channel.declare_queue(name, durable=True)
            else:
                queue = await channel.get_queue(name)
            channel.close_callbacks.add(self._closed)
            await queue.consume(self._came)
        except exceptions.ChannelClosed as problem:
            raise Failed("DS665", f"the broker refuses: {problem}") from None
        return None

    async def _came(self, message: Any) -> None:
        self._inbox.put(message)

    def _closed(self, channel: Any, problem: BaseException | None) -> None:
        self._inbox.fail(Unreachable("DS664", f"the broker has ended the connection: {problem}"))

    async def read(self) -> AsyncIterator[Messages]:
        while True:
            found = await self._inbox.take()
            keys = [m.routing_key for m in found] if self.said["routing_key_column"] else []
            yield Messages([m.body for m in found], None, {"routing_key": keys}, receipt=found[-1])

    async def commit(self, messages: Messages) -> None:
        await messages.receipt.ack(multiple=True)

    async def close(self) -> None:
        self._inbox.close()
        if self._connection is not None:
            await self._connection.close()


class RabbitSink(Sink):
    """A message a row, kept on the broker's disk where its queue is."""

    options = (
        *CONNECTION,
        Option("exchange", "the default one unless said", default=""),
        Option("routing_key", "of the messages; {column} stands for a value", needed=True),
    )

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        super().__init__(options, place)
        self._connection: Any = None
        self.at_once = 1000

    async def open(self, note: Any) -> int | None:
        from aiormq import exceptions

        self._connection = await connection(self.said)
        try:
            channel = await self._connection.channel(publisher_confirms=True)
            name = self.said["exchange"]
            self._exchange = await channel.get_exchange(name) if name else channel.default_exchange
        except exceptions.ChannelClosed as problem:
            raise Failed("DS665", f"the broker refuses: {problem}") from None
        return None

    async def write(self, told: Told) -> Any:
        import aio_pika
        from aiormq import exceptions

        lines, keys = await self.lines(told), topics_of(self.said["routing_key"], told)
        assert self.place.writing is not None
        media, kept = self.place.writing.media, aio_pika.DeliveryMode.PERSISTENT
        sent = [
            self._exchange.publish(
                aio_pika.Message(line, content_type=media, delivery_mode=kept), key, mandatory=False
            )
            for line, key in zip(lines, keys, strict=False)
        ]
        try:
            await asyncio.gather(*sent)
        except (exceptions.AMQPError, OSError) as problem:
            raise Unreachable("DS664", str(problem)) from None

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()


CONNECTOR = Connector("rabbitmq", RabbitSource, RabbitSink, "aio_pika", "rabbitmq")
