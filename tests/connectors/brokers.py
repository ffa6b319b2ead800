"""The other sides of connectors, where they answer on this machine: each puts messages in, and says
what a sink has put there."""

from __future__ import annotations

import asyncio
import json
import socket
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from importlib.util import find_spec
from typing import Any, ClassVar

import pytest

from tests.waiting import WAIT

HOST = "127.0.0.1"


def name() -> str:
    """One that nobody else has."""
    return f"dsms{uuid.uuid4().hex[:12]}"


class Broker(ABC):
    """`source`, `sink`: what follows FROM and TO; `exact_*`: whether nothing comes twice."""

    library: ClassVar[str]
    port: ClassVar[int] = 0
    exact_source = exact_sink = True

    def __init__(self) -> None:
        self.place = name()

    @classmethod
    def check_library(cls) -> None:
        """Skip the test where it can't be spoken to."""
        if find_spec(cls.library) is None:
            pytest.skip(f"{cls.library} is not installed")

    @classmethod
    def check(cls) -> None:
        """Skip the test where it is not there."""
        cls.check_library()
        if cls.port:
            try:
                socket.create_connection((HOST, cls.port), 5).close()
            except OSError as problem:
                pytest.skip(f"nothing answers at port {cls.port}: {problem}")

    @property
    @abstractmethod
    def source(self) -> str: ...

    @property
    @abstractmethod
    def sink(self) -> str: ...

    @abstractmethod
    def begin(self) -> None:
        """Make what has to be there before."""

    @abstractmethod
    def put(self, rows: Sequence[dict[str, Any]]) -> None:
        """Messages come."""

    @abstractmethod
    def told(self) -> list[dict[str, Any]]:
        """What the sink has put there by now, in order."""

    @abstractmethod
    def end(self) -> None:
        """Take it all away."""


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def dumped(rows: Sequence[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(row).encode() for row in rows]


class Redis(Broker):
    library, port = "redis", 6379

    def begin(self) -> None:
        import redis

        self._redis = redis.Redis(HOST, self.port)

    @property
    def source(self) -> str:
        return f"redis WITH (url = 'redis://{HOST}', stream = '{self.place}')"

    @property
    def sink(self) -> str:
        return f"redis WITH (url = 'redis://{HOST}', stream = '{self.place}out')"

    def put(self, rows: Sequence[dict[str, Any]]) -> None:
        with self._redis.pipeline() as pipe:
            for line in dumped(rows):
                pipe.xadd(self.place, {"data": line})
            pipe.execute()

    def told(self) -> list[dict[str, Any]]:
        return [json.loads(e[b"data"]) for _, e in self._redis.xrange(f"{self.place}out")]

    def end(self) -> None:
        self._redis.delete(self.place, f"{self.place}out")
        self._redis.close()


class Nats(Broker):
    library, port = "nats", 4222

    def _do(self, work: Callable[[Any, Any], Coroutine[Any, Any, Any]]) -> Any:
        import nats

        async def all_of_it() -> Any:
            there = await nats.connect(f"nats://{HOST}:{self.port}")
            try:
                return await work(there, there.jetstream())
            finally:
                await there.close()

        return run(all_of_it())

    @property
    def source(self) -> str:
        return f"nats WITH (url = 'nats://{HOST}', subject = '{self.place}.in')"

    @property
    def sink(self) -> str:
        return f"nats WITH (url = 'nats://{HOST}', subject = '{self.place}.out')"

    def begin(self) -> None:
        self._do(lambda _, js: js.add_stream(name=self.place, subjects=[f"{self.place}.>"]))

    def put(self, rows: Sequence[dict[str, Any]]) -> None:
        async def work(_: Any, js: Any) -> None:
            for line in dumped(rows):
                await js.publish(f"{self.place}.in", line)

        self._do(work)

    def told(self) -> list[dict[str, Any]]:
        async def work(_: Any, js: Any) -> list[dict[str, Any]]:
            reader = await js.pull_subscribe(f"{self.place}.out")
            found: list[dict[str, Any]] = []
            while True:
                try:
                    found += [json.loads(m.data) for m in await reader.fetch(1000, 0.2)]
                except TimeoutError:  # nats-py has its own, and at times lets Python's through
                    return found

        return self._do(work)

    def end(self) -> None:
        self._do(lambda _, js: js.delete_stream(self.place))


class Rabbit(Broker):
    library, port = "aio_pika", 5672
    exact_source = exact_sink = False

    def _do(self, work: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        import aio_pika

        async def all_of_it() -> Any:
            async with await aio_pika.connect(f"amqp://guest:guest@{HOST}:{self.port}/") as there:
                return await work(await there.channel())

        return run(all_of_it())

    @property
    def source(self) -> str:
        return f"rabbitmq WITH (url = 'amqp://{HOST}', queue = '{self.place}', prefetch = 50)"

    @property
    def sink(self) -> str:
        return f"rabbitmq WITH (url = 'amqp://{HOST}', routing_key = '{self.place}out')"

    def begin(self) -> None:
        async def work(channel: Any) -> None:
            for queue in (self.place, f"{self.place}out"):
                await channel.declare_queue(queue, durable=True)

        self._seen: list[dict[str, Any]] = []
        self._do(work)

    def put(self, rows: Sequence[dict[str, Any]]) -> None:
        async def work(channel: Any) -> None:
            import aio_pika

            for line in dumped(rows):
                await channel.default_exchange.publish(aio_pika.Message(line), self.place)

        self._do(work)

    def told(self) -> list[dict[str, Any]]:
        async def work(channel: Any) -> None:
            queue = await channel.get_queue(f"{self.place}out")
            while (message := await queue.get(no_ack=True, fail=False)) is not None:
                self._seen.append(json.loads(message.body))

        self._do(work)
        return self._seen

    def end(self) -> None:
        async def work(channel: Any) -> None:
            for queue in (self.place, f"{self.place}out"):
                await channel.queue_delete(queue)

        self._do(work)


class Mqtt(Broker):
    library, port = "paho", 1883
    exact_source = exact_sink = False

    @property
    def source(self) -> str:
        said = f"topic = '{self.place}/in', client_id = '{self.place}'"
        return f"mqtt WITH (url = 'mqtt://{HOST}', {said})"

    @property
    def sink(self) -> str:
        return f"mqtt WITH (url = 'mqtt://{HOST}', topic = '{self.place}/out')"

    def begin(self) -> None:
        import threading

        import paho.mqtt.client as paho

        self._seen: list[dict[str, Any]] = []
        self._client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id=f"{self.place}test")
        there = threading.Event()
        self._client.on_message = lambda c, d, m: self._seen.append(json.loads(m.payload))
        self._client.on_subscribe = lambda *_: there.set()
        self._client.on_connect = lambda c, *_: c.subscribe(f"{self.place}/out", 1)
        self._client.connect(HOST, self.port)
        self._client.loop_start()
        assert there.wait(WAIT)

    def put(self, rows: Sequence[dict[str, Any]]) -> None:
        sent = [self._client.publish(f"{self.place}/in", line, 1) for line in dumped(rows)]
        for one in sent:
            one.wait_for_publish(WAIT)

    def told(self) -> list[dict[str, Any]]:
        return list(self._seen)

    def end(self) -> None:
        import paho.mqtt.client as paho

        self._client.disconnect()
        self._client.loop_stop()
        forget = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id=self.place)
        forget.connect(HOST, self.port)  # a clean session takes the place of the kept one
        forget.disconnect()


class Kafka(Broker):
    """librdkafka's mock cluster, in this process."""

    library = "confluent_kafka"
    exact_sink = False

    def begin(self) -> None:
        from confluent_kafka import Producer

        mock = {"bootstrap.servers": "127.0.0.1:1", "test.mock.num.brokers": 1, "log_level": 0}
        self._mock = Producer(mock)
        (found,) = self._mock.list_topics(timeout=WAIT).brokers.values()
        self.brokers = f"{found.host}:{found.port}"
        self._producer = Producer({"bootstrap.servers": self.brokers, "log_level": 0})
        for topic in (self.place, f"{self.place}out"):
            self._producer.list_topics(topic, timeout=WAIT)

    @property
    def source(self) -> str:
        return f"kafka WITH (brokers = '{self.brokers}', topic = '{self.place}')"

    @property
    def sink(self) -> str:
        return f"kafka WITH (brokers = '{self.brokers}', topic = '{self.place}out')"

    def put(self, rows: Sequence[dict[str, Any]]) -> None:
        for line in dumped(rows):
            self._producer.produce(self.place, line, partition=0)
        assert self._producer.flush(WAIT) == 0

    def told(self) -> list[dict[str, Any]]:
        from confluent_kafka import Consumer, TopicPartition

        reader = Consumer({"bootstrap.servers": self.brokers, "group.id": "t", "log_level": 0})
        found: list[tuple[int, dict[str, Any]]] = []
        try:
            topic = f"{self.place}out"
            parts = reader.list_topics(topic, timeout=WAIT).topics[topic].partitions
            for part in parts:
                first, end = reader.get_watermark_offsets(TopicPartition(topic, part), WAIT)
                reader.assign([TopicPartition(topic, part, first)])
                left = end - first
                while left:
                    for message in reader.consume(left, 1.0):
                        if message.error() is None:
                            at = message.timestamp()[1]
                            found.append((at, json.loads(message.value())))
                            left -= 1
        finally:
            reader.close()
        return [row for _, row in sorted(found, key=lambda pair: pair[1]["k"])]

    def end(self) -> None:
        """The cluster goes with the process."""


class Postgres(Broker):
    library, port = "psycopg", 5432

    def begin(self) -> None:
        import psycopg

        self._db = psycopg.connect(f"postgresql://root@{HOST}/test", autocommit=True)
        self._db.execute(
            f"CREATE TABLE {self.place} (id bigserial PRIMARY KEY, k bigint, v double precision)"
        )

    @property
    def source(self) -> str:
        return (
            f"postgres WITH (url = 'postgresql://root@{HOST}/test', table = '{self.place}', "
            "cursor = id, every = 50 ms)"
        )

    @property
    def sink(self) -> str:
        return f"postgres WITH (url = 'postgresql://root@{HOST}/test', table = '{self.place}out')"

    def put(self, rows: Sequence[dict[str, Any]]) -> None:
        values = [(row["k"], row["v"]) for row in rows]
        with self._db.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {self.place} (k, v) VALUES (%s, %s)", values)

    def told(self) -> list[dict[str, Any]]:
        if self._db.execute("SELECT to_regclass(%s)", (f"{self.place}out",)).fetchone()[0] is None:
            return []
        found = self._db.execute(f"SELECT k, v FROM {self.place}out ORDER BY ctid").fetchall()
        return [{"k": k, "v": v} for k, v in found]

    def end(self) -> None:
        self._db.execute(f"DROP TABLE IF EXISTS {self.place}, {self.place}out")
        if self._db.execute("SELECT to_regclass('dsms_sinks')").fetchone()[0] is not None:
            self._db.execute("DELETE FROM dsms_sinks WHERE name LIKE %s", (f"%:{self.place}out",))
        self._db.close()


BROKERS: dict[str, type[Broker]] = {
    "kafka": Kafka, "mqtt": Mqtt, "nats": Nats, "postgres": Postgres, "rabbitmq": Rabbit,
    "redis": Redis,
}  # a table  # fmt: skip
