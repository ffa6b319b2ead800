"""The connectors that there are: those of this room by name, those of others by their entry points
in the group ``dsms.connectors``, whose name is that of the connector and which lead to its
`Connector`."""

from __future__ import annotations

import importlib.util
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from dsms.errors import UsageError
from dsms_client.protocol import nearest
from dsms_server.connectors.protocol import Connector, Failed

GROUP = "dsms.connectors"
OWN = {
    name: f"dsms_server.connectors.{module}"
    for name, module in {
        "file": "file",
        "kafka": "kafka",
        "mqtt": "mqtt",
        "nats": "nats",
        "postgres": "postgres",
        "rabbitmq": "rabbitmq",
        "redis": "redis",
        "webhook": "webhook",
    }.items()
}


def names() -> list[str]:
    """Of all that there are, in order."""
    return sorted({*OWN, *_others()})


def _others() -> dict[str, EntryPoint]:
    return {point.name.casefold(): point for point in entry_points(group=GROUP)}


def find(kind: str, name: str) -> Connector:
    """The connector of that name, which has a source or a sink, as `kind` says.  Raises DS447, and
    DS669 where another one's code can't be loaded."""
    found = _load(name)
    if found is None:
        near = nearest(name, names()) or f"there are {', '.join(names())}"
        raise UsageError("DS447", f"there is no connector {name}", hint=near)
    if (found.source if kind == "source" else found.sink) is None:
        other = "sink" if kind == "source" else "source"
        raise UsageError("DS447", f"{name} has no {kind}: it is a {other} alone")
    return found


def _load(name: str) -> Connector | None:
    if name in OWN:
        connector: Connector = import_module(OWN[name]).CONNECTOR
        return connector
    point = _others().get(name)
    if point is None:
        return None
    try:
        found = point.load()
    except Exception as problem:
        raise Failed("DS669", f"{point.value} can't be loaded: {problem}") from problem
    if not isinstance(found, Connector):
        raise Failed("DS669", f"{point.value} is no Connector")
    return found


def check_library(found: Connector) -> None:
    """Raise DS663 where the library is missing that it needs."""
    if found.library is None or importlib.util.find_spec(found.library) is not None:
        return
    message = f"{found.name} needs the library {found.library}, which is not installed"
    hint = f"pip install 'dsms[{found.extra}]', and start the server again"
    raise UsageError("DS663", message, hint=hint)
