"""Python client of dsms.

    from dsms_client import connect

    with connect() as db:
        db.execute("CREATE STREAM s (k INT, v FLOAT); CREATE QUERY q AS SELECT k, v FROM s WHERE v > 0.5")
        pushes = db.subscribe("q")
        db.ingest("s", {"k": [1, 2], "v": [0.2, 0.9]})
        print(next(pushes).rows)

`AsyncClient` is the same with await.  Nothing heavy is imported before it is needed.
"""  # noqa: E501

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsms.errors import DsmsError, InternalError, QueryError, UsageError
    from dsms_client.aio import AsyncClient
    from dsms_client.aio import connect as connect_async
    from dsms_client.changes import Changes
    from dsms_client.results import Done, IngestReport, Push, RowSet
    from dsms_client.subscription import AsyncChanges, AsyncSubscription
    from dsms_client.sync import ChangesReader, Client, Subscription, connect
    from dsms_client.view import View

_HOME = {
    "AsyncClient": "aio",
    "AsyncChanges": "subscription",
    "AsyncSubscription": "subscription",
    "Changes": "changes",
    "ChangesReader": "sync",
    "View": "view",
    "Client": "sync",
    "Subscription": "sync",
    "connect": "sync",
    "Done": "results",
    "RowSet": "results",
    "Push": "results",
    "IngestReport": "results",
}
_ERRORS = ("DsmsError", "InternalError", "QueryError", "UsageError")

__all__ = [
    "AsyncChanges", "AsyncClient", "AsyncSubscription", "Changes", "ChangesReader", "Client",
    "Done", "DsmsError", "IngestReport", "InternalError", "Push",
    "QueryError", "RowSet", "Subscription", "UsageError", "View", "connect", "connect_async",
]  # a long list  # fmt: skip


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "connect_async":
        return import_module("dsms_client.aio").connect
    if name in _ERRORS:
        return getattr(import_module("dsms.errors"), name)
    if name in _HOME:
        return getattr(import_module(f"dsms_client.{_HOME[name]}"), name)
    raise AttributeError(f"module dsms_client has no attribute {name}")
