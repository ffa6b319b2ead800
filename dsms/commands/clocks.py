"""HEARTBEAT, PUNCTUATE and END STREAM: what a source says of its stream, as statements."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from dsms.api import Cancel, Done
from dsms.commands.change import column_of
from dsms.commands.slices import Pieces
from dsms.errors import UsageError
from dsms.intake.named_values import combined
from dsms.intake.values import instant_text
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql.binder import bind_promise
from dsms.sql.catalog import Catalog, StreamDef
from dsms.sql.suggest import hint
from dsms.sql.types import FOREVER


class Clocked(Protocol):
    """The engine, as far as streams end and have clocks."""

    runtime: Runtime

    def check_heartbeat(self, stream: str, ts: int) -> None: ...

    def heartbeat_of(self, key: str, ts: int, cancel: Cancel | None = None) -> None: ...

    def punctuate_of(
        self,
        key: str,
        columns: tuple[int, ...],
        values: tuple[pa.Array, ...],
        upto: int,
    ) -> None: ...

    def end_of(self, key: str, cancel: Cancel | None = None) -> None: ...

    def catch_up(self) -> bool: ...

    def sync(self) -> None: ...

    def check_written(self, stream: str) -> None: ...


def tell(
    engine: Clocked,
    statement: ast.Heartbeat | ast.EndStream | ast.Punctuate,
    catalog: Catalog,
    cancel: Cancel | None,
) -> Pieces[Done]:
    """Nothing up to an instant, nothing of some values, or nothing at all, follows; done when
    queries are where they should be.  MAX FUTURE holds for users, but for those who have ADMIN on
    the stream.

    Raises DS335, DS336, DS401, DS507, DS508, DS513."""
    found = _stream(statement.name, catalog)
    key, user = found.home, catalog.user
    match statement:
        case ast.Heartbeat(at=ast.Instant(ts)):
            if user is not None and not engine.runtime.rights.owns(user, key):
                engine.check_heartbeat(found.name, ts)
            engine.heartbeat_of(key, ts, cancel)
            said = f"stream {found.name} has come to {instant_text(ts)}"
        case ast.Punctuate():
            said = _punctuate(engine, statement, found, catalog)
        case ast.EndStream():
            engine.end_of(key, cancel)
            said = f"stream {found.name} has ended"
    while engine.catch_up():
        yield None
        if cancel is not None:
            cancel.check()
    if found.durability == "sync":
        engine.sync()
        engine.check_written(found.name)
    return Done(said)


def _punctuate(
    engine: Clocked,
    statement: ast.Punctuate,
    stream: StreamDef,
    catalog: Catalog,
) -> str:
    """What is said of it."""
    promise = bind_promise(statement, stream, catalog)
    room = engine.runtime.settings.statement_bytes
    values = [
        column_of([(v,) for v in some], 0, stream.schema[at].type.arrow, room)
        for at, some in zip(promise.columns, promise.values, strict=True)
    ]
    upto = FOREVER if promise.upto is None else promise.upto
    engine.punctuate_of(stream.home, promise.columns, combined(values), upto)
    until = "" if promise.upto is None else f" up to {instant_text(promise.upto)}"
    names = ", ".join(stream.schema[at].name for at in promise.columns)
    return f"stream {stream.name} has no more rows of these values of {names}{until}"


def _stream(name: ast.Ident, catalog: Catalog) -> StreamDef:
    found = catalog.find(name.text, name.quoted)
    if not isinstance(found, StreamDef):
        near = hint(name.text, [s.name for s in catalog.streams.values()])
        message = f"there is no stream {name.text}"
        raise UsageError("DS401", message, name.pos.line, name.pos.column, near)
    return found
