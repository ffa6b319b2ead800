"""Redis streams.

Source.  A stream is read by the ids of its entries, which is the position: exactly once, as long
as the stream keeps what follows.

Sink.  A result row is an entry whose id is its number, one higher (``7-0`` is result row 6), so the
stream itself says what it has: exactly once.  Nobody else may add to that stream."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from redis.asyncio import Redis

AT_ONCE = 10_000  # entries
WAIT_MS = 1000  # that the server waits for entries before it says that there are none
NONE = b"\xff"  # in the place of a field that an entry lacks: no text, so it is rejected
OWN = 10**12  # ids from here on are times: entries of others
CONNECTION = (
    Option("url", "redis://host:6379/0, or rediss://", needed=True),
    Option("user", "who connects"),
    Option("password", "of that user", "secret"),
    Option("stream", "the key of the stream", needed=True),
    Option("field", "of an entry that has the message", default="data"),
)


def connection(said: Mapping[str, Any]) -> Redis:
    from redis.asyncio import Redis

    more = {"username": said["user"], "password": said["password"]}
    given = {name: value for name, value in more.items() if value}
    made: Redis = Redis.from_url(said["url"], socket_connect_timeout=10, **given)
    return made


def refused(problem: Exception) -> Exception:
    """What users are told of an error of the library's."""
    from redis import exceptions

    if isinstance(problem, exceptions.AuthenticationError | exceptions.NoPermissionError):
        return Failed("DS665", str(problem))
    if isinstance(problem, exceptions.ConnectionError | exceptions.TimeoutError):
        return Unreachable("DS664", str(problem))
    if isinstance(problem, exceptions.ResponseError):
        return Failed("DS665", str(problem))
    return problem


class RedisSource(Source):
    """Entries of a stream."""

    options = (
        *CONNECTION,
        Option(
            "begin", "with which entry, the first time", default="start", words=("start", "end")
        ),
    )
    beside = ("id",)

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        super().__init__(options, place)
        self._redis = connection(options)

    async def open(self, position: Any) -> Any:
        key = self.said["stream"]
        try:
            await self._redis.ping()
            if position is None and self.said["begin"] == "end":
                last = await self._redis.xrevrange(key, count=1)
                position = last[0][0].decode() if last else None
        except Exception as problem:
            raise refused(problem) from None
        self._at = position or "0-0"
        return self._at

    async def read(self) -> AsyncIterator[Messages]:
        key, field = self.said["stream"], self.said["field"].encode()
        while True:
            try:
                found = await self._redis.xread({key: self._at}, AT_ONCE, WAIT_MS)
            except Exception as problem:
                raise refused(problem) from None
            if not found:
                self.lag = 0
                continue
            entries = found[0][1]
            self._at = entries[-1][0].decode()
            ids = [ident.decode() for ident, _ in entries] if self.said["id_column"] else []
            bodies = [fields.get(field, NONE) if fields else NONE for _, fields in entries]
            self.lag = None if len(entries) == AT_ONCE else 0
            yield Messages(bodies, self._at, {"id": ids})

    async def close(self) -> None:
        await self._redis.aclose()


class RedisSink(Sink):
    """An entry a row."""

    options = (*CONNECTION, Option("max_entries", "that the stream keeps, about", "whole"))

    def __init__(self, options: Mapping[str, Any], place: Place) -> None:
        super().__init__(options, place)
        self._redis = connection(options)
        self.at_once = AT_ONCE

    async def open(self, note: Any) -> int | None:
        key = self.said["stream"]
        try:
            if not await self._redis.exists(key):
                return None
            last = (await self._redis.xinfo_stream(key))["last-generated-id"].decode()
        except Exception as problem:
            raise refused(problem) from None
        number = int(last.partition("-")[0])
        if number >= OWN:
            message = f"the stream {key} has entries of others"
            raise Failed("DS665", message, hint="name a stream for this sink alone")
        return number

    async def write(self, told: Told) -> Any:
        key, field, most = self.said["stream"], self.said["field"], self.said["max_entries"]
        lines = await self.lines(told)
        async with self._redis.pipeline(transaction=True) as pipe:
            for at, line in enumerate(lines):
                ident = f"{told.first}-{at + 1}" if told.snapshot else f"{told.first + at + 1}-0"
                pipe.xadd(key, {field: line}, id=ident, maxlen=most)
            try:
                await pipe.execute()
            except Exception as problem:
                raise refused(problem) from None

    async def close(self) -> None:
        await self._redis.aclose()


CONNECTOR = Connector("redis", RedisSource, RedisSink, "redis", "redis")
