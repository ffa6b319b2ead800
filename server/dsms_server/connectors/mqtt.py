"""MQTT, 3.1.1 and 5, by paho.

Source.  The broker keeps what is not acknowledged (quality of service 1, a session under the name
`client_id`), and messages are acknowledged when their rows are the stream's: at least once, and
with `qos = 0` at most once, as far as the network is.

Sink.  A message a row, acknowledged by the broker: at least once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from dsms_server.connectors.inbox import Inbox
from dsms_server.connectors.protocol import (
    Apart,
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

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessage

SECONDS = 10.0  # that a connection may take to come about
REFUSED = {4, 5, 134, 135}  # wrong user or password, no right
CONNECTION = (
    Option("url", "mqtt://host:1883, or mqtts://host:8883", needed=True),
    Option("user", "who connects"),
    Option("password", "of that user", "secret"),
    Option("client_id", "the name of the session, dsms- and that of the source unless said"),
    Option("keepalive", "between two signs of life", "length", default=30.0),
    Option("ca", "a file with the certificates of those who signed the broker's"),
)
QOS = Option("qos", "quality of service", "whole", default=1)


class Connection(Apart):
    """A client of paho's with its thread."""

    def __init__(self, said: Mapping[str, Any], name: str, clean: bool) -> None:
        import paho.mqtt.client as paho

        self._said = said
        self.client: Client = paho.Client(
            paho.CallbackAPIVersion.VERSION2,
            client_id=said["client_id"] or name,
            clean_session=clean,
            manual_ack=True,
            reconnect_on_failure=False,
        )
        self.client.suppress_exceptions = False
        self._loop = asyncio.get_running_loop()
        self._connected: asyncio.Future[None] = self._loop.create_future()

    async def connect(self, lost: Any) -> None:
        """Until the broker has let us in; `lost` is called with what ends the connection then.
        Raises Unreachable, Failed."""
        url, client = urlsplit(self._said["url"]), self.client
        tls = url.scheme in ("mqtts", "ssl")
        if url.scheme not in ("mqtt", "tcp", "mqtts", "ssl") or not url.hostname:
            raise Failed("DS665", "the url of MQTT is mqtt://host:port or mqtts://host:port")
        if tls:
            client.tls_set(ca_certs=self._said["ca"])
        user, password = self._said["user"], self._said["password"]
        if user or url.username:
            client.username_pw_set(user or unquote(url.username), password or url.password)
        client.on_connect = self._on_connect
        client.on_disconnect = lambda c, u, flags, reason, props: lost(
            Unreachable("DS664", f"the broker has ended the connection: {reason}")
        )
        port = url.port or (8883 if tls else 1883)
        keepalive = max(1, int(self._said["keepalive"]))
        try:
            async with asyncio.timeout(SECONDS):
                await self.apart(client.connect, url.hostname, port, keepalive)
                client.loop_start()
                await self._connected
        except (OSError, TimeoutError) as problem:
            raise Unreachable("DS664", f"{url.hostname}:{port}: {problem or 'no answer'}") from None

    def _on_connect(self, client: Any, data: Any, flags: Any, reason: Any, props: Any) -> None:
        if not reason.is_failure:
            self._tell(None)
        elif reason.value in REFUSED:
            self._tell(Failed("DS665", f"the broker refuses: {reason}"))
        else:
            self._tell(Unreachable("DS664", f"the broker refuses: {reason}"))

    def _tell(self, problem: Exception | None) -> None:
        def tell() -> None:
            if self._connected.done():
                return
            if problem is None:
                self._connected.set_result(None)
            else:
                self._connected.set_exception(problem)

        self._loop.call_soon_threadsafe(tell)

    async def close(self) -> None:
        self.client.on_disconnect = None
        self.client.disconnect()
        await self.apart(self.client.loop_stop)
        self.end_thread()


class MqttSource(Source):
    """`topic` may have wildcards."""

    options = (*CONNECTION, Option("topic", "what is subscribed to", needed=True), QOS)
    beside = ("topic",)

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        super().__init__(options, place)
        self._inbox: Inbox[MQTTMessage] = Inbox()
        clean = not options["qos"]
        self._connection = Connection(options, f"dsms-{place.name}", clean)

    async def open(self, position: Any) -> Any:
        client, loop = self._connection.client, asyncio.get_running_loop()
        granted: asyncio.Future[list[Any]] = loop.create_future()

        def on_subscribe(c: Any, data: Any, mid: int, reasons: list[Any], props: Any) -> None:
            loop.call_soon_threadsafe(granted.set_result, reasons)

        client.on_message = lambda c, data, message: self._inbox.put(message)
        client.on_subscribe = on_subscribe
        await self._connection.connect(self._inbox.fail)
        client.subscribe(self.said["topic"], self.said["qos"])
        async with asyncio.timeout(SECONDS):
            reasons = await granted
        if any(reason.is_failure for reason in reasons):
            raise Failed("DS665", f"the broker refuses the topic {self.said['topic']}")
        return None

    async def read(self) -> AsyncIterator[Messages]:
        while True:
            found = await self._inbox.take()
            topics = [message.topic for message in found] if self.said["topic_column"] else []
            bodies = [message.payload for message in found]
            yield Messages(bodies, beside={"topic": topics}, receipt=found)

    async def commit(self, messages: Messages) -> None:
        if self.said["qos"]:
            for message in messages.receipt:
                self._connection.client.ack(message.mid, message.qos)

    async def close(self) -> None:
        self._inbox.close()
        await self._connection.close()


class MqttSink(Sink):
    """A message a row."""

    options = (
        *CONNECTION,
        Option("topic", "where it is published; {column} stands for a value", needed=True),
        QOS,
        Option("retain", "the broker keeps the last message", "flag", default=False),
    )

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        super().__init__(options, place)
        self._connection = Connection(options, f"dsms-sink-{place.name}", True)
        self._lost: Exception | None = None
        self._done = asyncio.Event()
        self._waiting: set[int] = set()

    async def open(self, note: Any) -> int | None:
        loop = asyncio.get_running_loop()

        def published(c: Any, data: Any, mid: int, reason: Any, props: Any) -> None:
            loop.call_soon_threadsafe(self._published, mid, reason)

        def lost(problem: Exception) -> None:
            loop.call_soon_threadsafe(self._end, problem)

        self._connection.client.on_publish = published
        await self._connection.connect(lost)
        return None

    def _published(self, mid: int, reason: Any) -> None:
        if getattr(reason, "is_failure", False):
            self._lost = Unreachable("DS664", f"the broker does not take a message: {reason}")
        self._waiting.discard(mid)
        self._done.set()

    def _end(self, problem: Exception) -> None:
        self._lost = problem
        self._done.set()

    async def write(self, told: Told) -> Any:
        lines, topics = await self.lines(told), topics_of(self.said["topic"], told)
        publish, qos, retain = (
            self._connection.client.publish,
            self.said["qos"],
            self.said["retain"],
        )
        sent = [publish(t, line, qos, retain).mid for t, line in zip(topics, lines, strict=False)]
        # what was acknowledged meanwhile is told behind this, as it comes by the loop
        self._waiting.update(sent)
        while self._waiting:
            if self._lost is not None:
                raise self._lost
            await self._done.wait()
            self._done.clear()

    async def close(self) -> None:
        await self._connection.close()


def topics_of(form: str, told: Told) -> list[str]:
    """The topic of each row: {column} stands for its value."""
    if "{" not in form:
        return [form] * len(told)
    names = [name for name in told.rows.column_names if f"{{{name}}}" in form]
    columns = [told.rows.column(name).to_pylist() for name in names]
    out = []
    for values in zip(*columns, strict=True) if columns else [()] * len(told):
        text = form
        for name, value in zip(names, values, strict=True):
            text = text.replace(f"{{{name}}}", str(value))
        out.append(text)
    return out


CONNECTOR = Connector("mqtt", MqttSource, MqttSink, "paho", "mqtt")
