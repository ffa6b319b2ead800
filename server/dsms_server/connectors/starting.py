"""How sources and sinks begin in a server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from dsms_server.connectors.context import Context
from dsms_server.connectors.manager import Manager
from dsms_server.connectors.positions import Positions
from dsms_server.parties import Host

THREADS = 2  # that decode messages


def begin(server: Host, manager: Manager) -> None:
    """All that are declared; their figures stand among those of the server."""
    config = server.config
    context = Context(
        server.core,
        ThreadPoolExecutor(THREADS, thread_name_prefix="dsms-connect"),
        Positions(config.data),
        server.memory.take_rows,
        server.metrics.count_rows,
        config.files,
        config.sink_files,
        config.secrets,
        config.safe_mode,
    )
    server.metrics.registry.register(manager)  # type: ignore[arg-type]
    manager.start(context)
