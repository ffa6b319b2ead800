"""Kafka, by librdkafka.

Source.  All partitions of a topic are read by their offsets, which are the position: exactly once,
as long as the topic keeps what follows.

Sink.  A message a row, acknowledged by all replicas, and none twice by a fault of the network: at
least once, as what was told last may be told again after a restart."""

from __future__ import annotations

import contextlib
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

AT_ONCE = 10_000  # messages
WAIT = 0.2  # seconds for which it is waited for them
SECONDS = 10.0  # for an answer of the brokers
CONNECTION = (
    Option("brokers", "host:9092, and others behind commas", needed=True),
    Option("topic", "of the messages", needed=True),
    Option("user", "who connects (SASL)"),
    Option("password", "of that user", "secret"),
    Option(
        "mechanism", "of SASL", default="PLAIN", words=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    ),
    Option("tls", "connections are encrypted", "flag", default=False),
    Option("config", "more for librdkafka: name=value, and others behind commas"),
)


def configuration(said: Mapping[str, Any], name: str) -> dict[str, Any]:
    """For librdkafka.  Raises DS665."""
    found: dict[str, Any] = {"bootstrap.servers": said["brokers"], "client.id": name}
    if said["user"]:
        found |= {"sasl.username": said["user"], "sasl.password": said["password"]}
        found["sasl.mechanism"] = said["mechanism"]
    protocol = ("SASL_" if said["user"] else "") + ("SSL" if said["tls"] else "PLAINTEXT")
    found["security.protocol"] = protocol
    found["log_level"] = 0
    for pair in filter(None, (said["config"] or "").split(",")):
        key, sign, value = pair.partition("=")
        if not sign:
            raise Failed("DS665", f"config is name=value,name=value, and {pair} is none")
        found[key.strip()] = value.strip()
    return found


def refused(problem: Any) -> Exception:
    """What users are told of a KafkaError."""
    from confluent_kafka import KafkaError

    final = {
        KafkaError._AUTHENTICATION, KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._INVALID_ARG,
    }  # a list  # fmt: skip
    text = problem.str()
    if problem.code() in (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET):
        return Failed("DS666", f"the topic has let go of what follows: {text}")
    return Failed("DS665", text) if problem.code() in final else Unreachable("DS664", text)


class KafkaSource(Source):
    """Messages of all partitions of a topic; of each partition in order."""

    options = (
        *CONNECTION,
        Option("begin", "with which message, first", default="start", words=("start", "end")),
    )
    beside = ("key", "partition", "offset")

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        super().__init__(options, place)
        self._consumer: Any = None
        self._next: dict[str, int] = {}  # by partition

    async def open(self, position: Any) -> Any:
        await self.apart(self._open, position)
        return dict(self._next)

    def _open(self, position: Any) -> None:
        import confluent_kafka as kafka

        name = f"dsms-{self.place.name}"
        more = {
            "group.id": name, "enable.auto.commit": False, "auto.offset.reset": "error",
            "enable.partition.eof": False,
        }  # a table  # fmt: skip
        try:
            self._consumer = kafka.Consumer(configuration(self.said, name) | more)
            topic = self.said["topic"]
            found = self._consumer.list_topics(topic, timeout=SECONDS).topics[topic]
            if found.error is not None:
                raise refused(found.error)
            known = position or {}
            for number in sorted(found.partitions):
                place = kafka.TopicPartition(topic, number)
                first, end = self._consumer.get_watermark_offsets(place, timeout=SECONDS)
                at_end = position is None and self.said["begin"] == "end"
                self._next[str(number)] = known.get(str(number), end if at_end else first)
            self._consumer.assign(
                [kafka.TopicPartition(topic, int(n), at) for n, at in self._next.items()]
            )
        except kafka.KafkaException as problem:
            raise refused(problem.args[0]) from None

    async def read(self) -> AsyncIterator[Messages]:
        while True:
            found = await self.apart(self._consumer.consume, AT_ONCE, WAIT)
            bad = next((m.error() for m in found if m.error() is not None), None)
            good = [m for m in found if m.error() is None]
            if good:
                yield self._messages(good)
            if bad is not None:
                raise refused(bad)

    def _messages(self, found: list[Any]) -> Messages:
        for message in found:
            self._next[str(message.partition())] = message.offset() + 1
        said, beside = self.said, {}
        if said["key_column"]:
            keys = [m.key() for m in found]
            beside["key"] = [None if k is None else k.decode(errors="replace") for k in keys]
        if said["partition_column"]:
            beside["partition"] = [m.partition() for m in found]
        if said["offset_column"]:
            beside["offset"] = [m.offset() for m in found]
        return Messages([m.value() or b"" for m in found], dict(self._next), beside)

    async def close(self) -> None:
        if self._consumer is not None:
            await self.apart(self._consumer.close)


class KafkaSink(Sink):
    """A message a row."""

    options = (*CONNECTION, Option("key", "the column whose value is the key of a message"))

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        super().__init__(options, place)
        self._producer: Any = None
        self._problem: Exception | None = None

    async def open(self, note: Any) -> int | None:
        import confluent_kafka as kafka

        more = {"enable.idempotence": True, "linger.ms": 5, "message.timeout.ms": 30_000}
        name = f"dsms-sink-{self.place.name}"
        try:
            self._producer = kafka.Producer(configuration(self.said, name) | more)
            topic = self.said["topic"]
            await self.apart(self._producer.list_topics, topic, SECONDS)
        except kafka.KafkaException as problem:
            raise refused(problem.args[0]) from None
        return None

    async def write(self, told: Told) -> Any:
        lines, key = await self.lines(told), self.said["key"]
        keys = told.rows.column(key).to_pylist() if key else [None] * len(lines)
        await self.apart(self._write, lines, keys)

    def _write(self, lines: list[bytes], keys: list[Any]) -> None:
        """A message each, and until all are acknowledged."""
        topic, producer = self.said["topic"], self._producer
        for line, key in zip(lines, keys, strict=False):
            text = None if key is None else str(key)
            while True:
                with contextlib.suppress(BufferError):
                    producer.produce(topic, line, text, on_delivery=self._delivered)
                    break
                producer.poll(WAIT)
        producer.flush()
        if self._problem is not None:
            raise self._problem

    def _delivered(self, problem: Any, message: Any) -> None:
        if problem is not None:
            self._problem = refused(problem)

    async def close(self) -> None:
        if self._producer is not None:
            self._producer.purge()


CONNECTOR = Connector("kafka", KafkaSource, KafkaSink, "confluent_kafka", "kafka")
