"""The HTTP side: ``/metrics`` for Prometheus and ``/healthz`` for the supervisor that restarts the
server, ``/readyz`` for the load balancer that sends clients."""

from __future__ import annotations

import asyncio
import functools
import hmac
import socket

from aiohttp import web

from dsms_server import clock
from dsms_server.accepting import Plain, bind
from dsms_server.parties import Host
from dsms_server.slices import some_at_once

SECONDS = 10.0  # that a connection may last, request and answer
AT_ONCE = 32  # connections
# how long a scrape waits for a busy engine before it shows the counters it last saw
STATS_SECONDS = 1.0


class Http:
    """The listener, and its connections: a request each, within `SECONDS`, and at most `AT_ONCE` of
    them.

    Whoever comes then takes the place of the one that has been there longest."""

    def __init__(self, server: Host, runner: web.AppRunner) -> None:
        assert runner.server is not None
        self._server, self._runner, self._web = server, runner, runner.server
        self._deadlines: dict[web.RequestHandler, asyncio.TimerHandle] = {}
        self._counted_out = self._web.connection_lost
        self._web.connection_lost = self._lost  # type: ignore[method-assign]
        self.port = 0

    def open(self, sockets: list[socket.socket]) -> None:
        """Listen on these, or where the configuration says if there are none.  Raises OSError."""
        config = self._server.config
        sockets = sockets or bind(config.host, config.http_port or 0)
        self._listener = Plain(self._server, self._connection, sockets)
        self.port = self._listener.port

    async def close(self) -> None:
        self._listener.close()
        await self._runner.cleanup()

    def _connection(self) -> asyncio.Protocol:
        there = [
            c for c in self._deadlines if c.transport is not None and not c.transport.is_closing()
        ]
        if len(there) >= AT_ONCE:
            self._end(there[0], "crowded")
        connection = self._web()
        self._deadlines[connection] = self._server.later(SECONDS, self._end, connection, "quiet")
        return connection

    def _lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        self._deadlines.pop(handler).cancel()
        self._counted_out(handler, exc)

    def _end(self, connection: web.RequestHandler, why: str) -> None:
        if connection.transport is not None and not connection.transport.is_closing():
            self._server.metrics.let_go.labels(why).inc()
            connection.transport.abort()


async def start_http(server: Host, sockets: list[socket.socket]) -> Http:
    """Serve on these sockets; if there are none, on the configured address."""
    app = web.Application()
    app.on_response_prepare.append(_once)
    app.router.add_get("/metrics", functools.partial(_metrics, server))
    app.router.add_get("/healthz", functools.partial(_health, server))
    app.router.add_get("/readyz", functools.partial(_ready, server))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    http = Http(server, runner)
    try:
        http.open(sockets)
    except OSError:
        await runner.cleanup()
        raise
    return http


async def _once(request: web.Request, response: web.StreamResponse) -> None:
    """A connection is for one request: none waits for another one."""
    response.force_close()


async def _metrics(server: Host, request: web.Request) -> web.Response:
    if not _may_measure(server, request.headers.get("Authorization", "")):
        headers = {"WWW-Authenticate": 'Bearer realm="dsms metrics"'}
        return web.Response(
            status=401, headers=headers, text="give the token of --metrics-token-file as Bearer\n"
        )
    if not server.stopping:
        engine = server.core.engine
        stats = server.core.worker.work(lambda: some_at_once(engine.counting()))
        done, _ = await asyncio.wait({stats}, timeout=STATS_SECONDS)
        if done and stats.exception() is None:
            server.metrics.engine = stats.result()
    server.update_gauges()
    return web.Response(
        body=server.metrics.text(), headers={"Content-Type": "text/plain; version=0.0.4"}
    )


def _may_measure(server: Host, given: str) -> bool:
    """Metrics name streams and queries: with users, or a token, they are for who shows the token of
    the metrics."""
    secret = server.config.metrics_token
    if secret is None:
        return not server.config.auth
    return hmac.compare_digest(
        given.encode("utf-8", "surrogateescape"), f"Bearer {secret}".encode()
    )


async def _health(server: Host, request: web.Request) -> web.Response:
    if server.stopping:
        return web.Response(status=503, text="stopping\n")
    if not server.core.worker.alive:
        return web.Response(status=503, text="the engine thread has ended\n")
    if not server.watchdog.look(clock.elapsed()):
        return web.Response(status=503, text=f"{server.watchdog.complaint}\n")
    return web.Response(text="ok\n")


async def _ready(server: Host, request: web.Request) -> web.Response:
    """Whether clients are served: not while the server stops.  A long slice makes it no less
    ready."""
    if server.stopping:
        return web.Response(status=503, text="stopping\n")
    return web.Response(text="ready\n")
