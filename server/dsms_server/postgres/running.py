"""Statements of a PostgreSQL session, done: by the engine as those of any other session, by the
catalog, or here."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from dsms.api import Done, Rows
from dsms.errors import DsmsError, UsageError
from dsms.rights.model import key_of
from dsms_server.postgres import codec, errors, types
from dsms_server.postgres.asking import Asking
from dsms_server.postgres.codec import Shown
from dsms_server.postgres.peer import Peer
from dsms_server.postgres.portals import Portal, Prepared, formats_for
from dsms_server.postgres.rows import data_rows
from dsms_server.postgres.settings import Settings, seconds
from dsms_server.postgres.statements import Statement
from dsms_server.postgres.streams import Stream, Streams

BIG = 4096  # rows, from which on they are written down in another thread
TIMEOUT = "statement_timeout"


class Running:
    """Of one session."""

    def __init__(self, session: Peer, settings: Settings, streams: Streams) -> None:
        self.session, self.settings, self.streams = session, settings, streams
        self.asking = Asking(session, settings)
        self._ways: dict[str, Callable[[Statement, Portal], None]] = {
            "nothing": self._nothing,
            "set": self._set,
            "reset": self._reset,
            "show": self._show,
        }

    def known(self, name: str) -> bool:
        """Whether that is the name of something of the engine's that the user may read."""
        core, user = self.session.server.core, self.session.user
        there = any(
            key_of(name) == key_of(one) for kind in core.names.known.values() for one in kind
        )
        return there and (
            user is None or core.engine.rights.may(user, "SELECT", core.engine.key_of(name))
        )

    async def infer(self, prepared: Prepared) -> None:
        """The types of parameters that nobody has said."""
        if prepared.found is None:
            prepared.found = await self.asking.types(prepared)

    async def columns(self, prepared: Prepared) -> tuple[Shown, ...] | None:
        """Those of the answer, before there is one; None: there are none."""
        statement = prepared.statement
        match statement.verb if statement is not None else "":
            case "ask" | "catalog":
                return await self.asking.columns(prepared)
            case "show":
                found = Portal(prepared)
                self._show(statement, found)  # type: ignore[arg-type]
                return found.columns
        return None

    async def run(self, portal: Portal, portals: dict[str, Portal], outlives: bool) -> None:
        """Do a portal's statement, once.  Raises what ends it."""
        statement = portal.prepared.statement
        if portal.ran or statement is None:
            return
        portal.verb = statement.tag
        match statement.verb:
            case "ask" | "catalog":
                self._answer(portal, await self.asking.answer(portal))
            case "unknown":
                await self.asking.complain(statement)
            case "subscribe":
                portal.stream = await self.streams.subscribe(statement.name or "")
                portal.columns = portal.stream.columns
            case "declare":
                await self._declare(statement, portal, portals, outlives)
            case "fetch" | "move":
                await self._fetch(statement, portal, portals)
            case "close":
                self._close_named(statement, portals)
            case verb:
                self._ways[verb](statement, portal)
        portal.ran = True

    def _answer(self, portal: Portal, found: Rows | pa.Table | Done) -> None:
        """Put the rows into the portal, and tell as of when they are."""
        if isinstance(found, Done):
            return
        if isinstance(found, Rows):
            self._tell(found)
            found = types.at_edge(found.data, found.types)
        portal.table, portal.columns = found, types.shown(found.schema)

    def _tell(self, found: Rows) -> None:
        """What comes with each answer, as settings that the client is told of; a notice where the
        answer lacks something."""
        said = {"as_of": found.as_of, "since": found.since}
        texts = {name: types.instant_text(value) for name, value in said.items()}
        texts["waiting"] = "" if found.waiting is None else str(found.waiting)
        for name, value in texts.items():
            self._told(f"dsms.{name}", value)
        if found.since is not None:
            kept = f"rows are kept from {texts['since']} on: the answer lacks those before"
            self.session.write(errors.notice(kept, "WARNING"))
        if found.approximate is not None or found.share is not None:
            share = found.share if found.share is not None else found.approximate
            self.session.write(errors.notice(f"the answer is approximate ({share:g})", "WARNING"))

    def _told(self, name: str, value: str) -> None:
        if self.settings.get(name) != value:
            self.settings.note(name, value)
            self.session.write(codec.parameter_status(name, value))

    # -- cursors -----------------------------------------------------------------------------------

    async def _declare(
        self, statement: Statement, portal: Portal, portals: dict[str, Portal], outlives: bool
    ) -> None:
        name, inner = statement.name or "", statement.inner
        if inner is None or inner.verb not in ("ask", "catalog", "subscribe"):
            raise UsageError("DS627", "a cursor is over SELECT, SHOW or SUBSCRIBE")
        if name in portals:
            raise errors.with_state(
                UsageError("DS627", f"there is a cursor {name!r} already"), "42P03"
            )
        of = portal.prepared
        prepared = Prepared(inner, of.text, of.oids, of.marks, of.found)
        made = Portal(prepared, portal.values, portal.raw, holds=outlives)
        await self.run(made, portals, outlives)
        portals[name] = made

    async def _fetch(
        self, statement: Statement, portal: Portal, portals: dict[str, Portal]
    ) -> None:
        cursor = portals.get(statement.name or "")
        if cursor is None:
            raise errors.with_state(
                UsageError("DS627", f"there is no cursor {statement.name!r}"), "34000"
            )
        most, inner = int(statement.value or 0), statement.inner
        if statement.value == "0":
            whole = cursor.table if cursor.stream is None else cursor.stream.schema.empty_table()
            rows = None if whole is None else whole.slice(0, 0)
        elif cursor.stream is not None:
            wait = None if inner is None else seconds(inner.value or "")
            rows = await self.streams.take(cursor.stream, most, wait)
        else:
            rows = cursor.take(most)
        if statement.verb == "move":
            portal.given = 0 if rows is None else rows.num_rows
        else:
            portal.columns, portal.table = cursor.columns, rows

    def _close_named(self, statement: Statement, portals: dict[str, Portal]) -> None:
        names = [statement.name] if statement.name is not None else [n for n in portals if n]
        for name in names:
            found = portals.pop(name or "", None)
            if found is None:
                raise errors.with_state(
                    UsageError("DS627", f"there is no cursor {name!r}"), "34000"
                )
            self.close(found)

    def close(self, portal: Portal | None) -> None:
        """It is not read any more."""
        if portal is not None and isinstance(portal.stream, Stream):
            self.streams.close(portal.stream)

    # -- settings ----------------------------------------------------------------------------------

    def _nothing(self, statement: Statement, portal: Portal) -> None:
        """It is done by saying so."""

    def _set(self, statement: Statement, portal: Portal) -> None:
        name, value = statement.name or "", statement.value or ""
        if name.casefold() == TIMEOUT:
            default = value.strip().casefold() == "default"
            length = self.session.server.config.statement_timeout if default else seconds(value)
            self.session.account.statement_timeout = length
        told = self.settings.set(name, value)
        if told is not None:
            self.session.write(codec.parameter_status(*told))

    def _reset(self, statement: Statement, portal: Portal) -> None:
        names = [statement.name] if statement.name else [name for name, _ in self.settings.items()]
        if statement.name is None or statement.name.casefold() == TIMEOUT:
            self.session.account.statement_timeout = self.session.server.config.statement_timeout
        for name in names:
            told = self.settings.reset(name)
            if told is not None:
                self.session.write(codec.parameter_status(*told))

    def _show(self, statement: Statement, portal: Portal) -> None:
        if statement.name is None:
            pairs = self.settings.items()
            columns = [[n for n, _ in pairs], [v for _, v in pairs], [""] * len(pairs)]
            names = ["name", "setting", "description"]
        else:
            value = self.settings.get(statement.name)
            if value is None:
                message = f"there is no setting {statement.name[:80]}"
                raise errors.with_state(UsageError("DS627", message), "42704")
            columns, names = [[value]], [self.settings.shown_name(statement.name)]
        portal.table = pa.table([pa.array(c, pa.string()) for c in columns], names)
        portal.columns = types.shown(portal.table.schema)

    # -- answers -----------------------------------------------------------------------------------

    async def give(self, portal: Portal, most: int) -> bool:
        """Write rows of the portal, `most` of them (0: all); whether some are left."""
        portal.given = portal.given if portal.verb == "MOVE" else 0
        if portal.stream is not None:
            return await self._stream(portal, most)
        rows = portal.take(most)
        if rows is None:
            return False
        self.session.account.rows_out += rows.num_rows
        await self._write(rows, portal)
        return bool(most) and portal.table is not None and portal.table.num_rows > 0

    async def _stream(self, portal: Portal, most: int) -> bool:
        """Write what comes until it is over, or `most` rows have been there."""
        left = most
        try:
            while not self.session.closed:
                rows = await self.streams.take(portal.stream, left, None)
                await self._write(rows, portal)
                left -= rows.num_rows if most else 0
                if most and left <= 0:
                    return True
        except BaseException:
            self.close(portal)
            raise
        return False

    async def _write(self, rows: pa.Table, portal: Portal) -> None:
        """In pieces, each when the peer has read enough of those before."""
        server, session = self.session.server, self.session
        formats = formats_for(portal.formats, rows.num_columns)
        pieces = data_rows(rows, formats)
        portal.given += rows.num_rows
        size = rows.nbytes
        session.expect(size)
        try:
            while not session.closed:
                if rows.num_rows > BIG:
                    piece = await server.loop.run_in_executor(server.pool, next, pieces, None)
                else:
                    piece = next(pieces, None)
                if piece is None:
                    return
                session.write(piece)
                await session.drained()
        finally:
            session.expect(-size)

    # -- the end -----------------------------------------------------------------------------------

    def cancel(self, why: DsmsError) -> None:
        """Stop what the engine does for the session."""
        self.session.requests.stop_statements(why)

    def place(self, statement: Statement, problem: DsmsError) -> int | None:
        """Where in the statement's text a problem is, from 0 on."""
        return self.asking.place(statement, problem)
