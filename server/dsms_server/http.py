"""The HTTP side: ``/metrics`` for Prometheus and ``/healthz`` for whoever restarts us."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from dsms_server.server import Server

STATS_SECONDS = 1.0  # how long a scrape waits for a busy engine before it shows the counters it last saw


async def start_http(server: Server) -> tuple[web.AppRunner, int]:
    """Serve on the configured address; returns the runner and the port taken."""
    app = web.Application()
    app.router.add_get("/metrics", functools.partial(_metrics, server))
    app.router.add_get("/healthz", functools.partial(_health, server))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, server.config.host, server.config.http_port or 0)
    await site.start()
    return runner, runner.addresses[0][1]


async def _metrics(server: Server, request: web.Request) -> web.Response:
    if not server.stopping:
        stats = server.core.worker.call(server.core.engine.stats)
        done, _ = await asyncio.wait({stats}, timeout=STATS_SECONDS)
        if done and stats.exception() is None:
            server.metrics.engine = stats.result()
    server.update_gauges()
    return web.Response(body=server.metrics.text(), headers={"Content-Type": "text/plain; version=0.0.4"})


async def _health(server: Server, request: web.Request) -> web.Response:
    if server.stopping:
        return web.Response(status=503, text="stopping\n")
    if not server.core.worker.alive:
        return web.Response(status=503, text="the engine thread has ended\n")
    return web.Response(text="ok\n")
