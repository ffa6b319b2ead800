"""Queries on their way to the engine or the catalog: texts and values as these want them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from dsms.api import Cancel, Column, Result
from dsms.errors import DsmsError, QueryError
from dsms.forms.scalars import Instant, Length
from dsms.secret_texts import without_secrets
from dsms_server import clock
from dsms_server.account import Work
from dsms_server.postgres import errors, types
from dsms_server.postgres.adapt import Adapted, adapted
from dsms_server.postgres.codec import Shown
from dsms_server.postgres.parameters import value_of
from dsms_server.postgres.peer import Peer
from dsms_server.postgres.portals import Portal, Prepared
from dsms_server.postgres.rewrite import Session, rewritten
from dsms_server.postgres.settings import Settings
from dsms_server.postgres.statements import Statement, refused
from dsms_server.postgres.work import asked
from dsms_server.slices import some_at_once
from dsms_server.worker import Steps

MOST_INFERRED = 64  # parameters whose types are looked for; others are texts
_DATED = re.compile(r"'\d{4}-\d{2}-\d{2}")
SAMPLES: dict[int, Any] = {
    types.BOOL.oid: True,
    types.BYTEA.oid: b"x",
    types.INT8.oid: 1,
    types.INT4.oid: 1,
    types.INT2.oid: 1,
    26: 1,
    700: 0.5,
    types.FLOAT8.oid: 0.5,
    types.NUMERIC.oid: Decimal("0.5"),
    types.TIMESTAMPTZ.oid: Instant(0),
    1114: Instant(0),
    types.DATE.oid: Instant(0),
    types.INTERVAL.oid: Length(1_000_000),
}
_SQL = {pg.oid: name for name, pg in types.SQL_NAMES.items()} | {
    21: "INT", 23: "INT", 26: "INT", 700: "FLOAT", 1114: "TIMESTAMP", 1082: "TIMESTAMP",
    1043: "STRING", 1042: "STRING", 705: "STRING", 19: "STRING", 18: "STRING",
}  # a table  # fmt: skip


class Asking:
    """Of one session."""

    def __init__(self, session: Peer, settings: Settings) -> None:
        self.session, self.settings = session, settings
        self._last = Adapted("")  # the text that was run, for places in it

    # -- answers -----------------------------------------------------------------------------------

    async def answer(self, portal: Portal) -> Result | pa.Table:
        """Of the portal's statement.  Raises what ends it."""
        statement = portal.prepared.statement
        assert statement is not None
        if statement.verb == "catalog":
            return await self._of_catalog(statement, portal.values)
        text, values = await self._settled(portal)
        core, account = self.session.server.core, self.session.account
        user, params = self.session.user, values or None

        def steps(cancel: Cancel) -> Steps:
            return core.execute_steps(text, cancel, account, user, params)

        began = clock.elapsed()
        results: list[Result] = await asked(self.session, "execute", steps)
        self.session.server.metrics.response.observe(clock.elapsed() - began)
        return results[0]

    async def _of_catalog(
        self, statement: Statement, values: Sequence[Any], rows: int | None = None
    ) -> pa.Table:
        session, settings = self.session, self.settings
        sql = rewritten(statement.text, Session(settings, session.account.id), values)
        core, account, catalogs = session.server.core, session.account, session.face.catalogs
        shown, user = without_secrets(statement.text), session.user

        def steps(cancel: Cancel) -> Steps:
            declared = core.engine.declared(user)
            account.work = Work(shown, cancel, clock.elapsed())
            found: list[pa.Table | Exception] = []

            def work() -> None:
                try:
                    found.append(catalogs.answer(sql, user, declared, cancel, rows))
                except Exception as problem:
                    found.append(problem)

            try:
                account.work.run = core.runners.submit(account.asking, work, cancel)
                yield account.work.run.future
            finally:
                account.work = None
            if not found:
                cancel.check()
            if isinstance(found[0], Exception):
                raise found[0]
            return found[0]

        table: pa.Table = await asked(session, "execute", steps)
        return table

    async def _settled(self, portal: Portal) -> tuple[str, list[Any]]:
        """The text and the values with which the statement binds, where drivers leave open what
        they mean: texts may be instants, values that come as texts may be of any type."""
        prepared = portal.prepared
        assert prepared.statement is not None
        plain = self._last = adapted(prepared.statement.text)
        dated = _DATED.search(plain.text) is not None
        open_ones = 0 in [*prepared.oids_for()]
        if not (dated or open_ones):
            return plain.text, portal.values
        if await self._binds(plain.text, portal.values):
            return plain.text, portal.values
        ways = [(plain, portal.values)]
        if open_ones:
            prepared.found = await self.types(prepared)
            values = _read_anew(portal)
            ways.append((plain, values))
        if dated:
            other = adapted(prepared.statement.text, instants=True)
            ways += [(other, values) for _, values in list(ways)]
        for one, values in ways[1:]:
            if await self._binds(one.text, values):
                self._last = one
                return one.text, values
        return plain.text, portal.values

    async def _binds(self, text: str, values: Sequence[Any]) -> bool:
        try:
            await self._describe(text, values)
        except DsmsError as problem:
            return not isinstance(problem, QueryError) and problem.code != "DS618"
        return True

    # -- before there is an answer -----------------------------------------------------------------

    async def types(self, prepared: Prepared) -> tuple[int, ...]:
        """OIDs of all parameters: as said, as casts tell, as their places tell."""
        statement = prepared.statement
        if not prepared.count or statement is None:
            return (0,) * prepared.count
        inner = statement.inner or statement
        text = adapted(inner.text)
        said = prepared.oids_for()
        oids = [oid or text.oids.get(k, 0) for k, oid in enumerate(said, 1)]
        if inner.verb != "ask" or 0 not in oids or len(oids) > MOST_INFERRED:
            return tuple(oid or types.TEXT.oid for oid in oids)
        known = [_SQL.get(oid, "STRING") if oid else None for oid in oids]
        core, user = self.session.server.core, self.session.user

        def steps(cancel: Cancel) -> Steps:
            cancel.check()
            return (yield from some_at_once(core.engine.parameter_types(text.text, user, known)))

        names = await asked(self.session, "execute", steps)
        told = [types.SQL_NAMES.get(name, types.TEXT).oid for name in names]
        return tuple(oid or one for oid, one in zip(oids, told, strict=True))

    async def columns(self, prepared: Prepared) -> tuple[Shown, ...] | None:
        """Those of the answer.  Raises what binding the statement raises."""
        statement = prepared.statement
        assert statement is not None
        values = [SAMPLES.get(oid, "x") for oid in prepared.oids_for()]
        if statement.verb == "catalog":
            empty = [None] * prepared.count
            return types.shown((await self._of_catalog(statement, empty, 0)).schema)
        tried = Portal(prepared, values)
        text = await self._as_it_binds(tried)
        found = await self._describe(text, values)
        if found is None:  # SHOW and its like, whose columns nobody knows before
            rows = await self.answer(tried)
            assert not isinstance(rows, pa.Table)
            data, names = getattr(rows, "data", None), getattr(rows, "types", ())
            return None if data is None else types.shown(types.at_edge(data, names).schema)
        return types.shown(types.edge_schema([c.name for c in found], [c.type for c in found]))

    async def _as_it_binds(self, portal: Portal) -> str:
        statement = portal.prepared.statement
        assert statement is not None
        plain = self._last = adapted(statement.text)
        if _DATED.search(plain.text) and not await self._binds(plain.text, portal.values):
            other = adapted(statement.text, instants=True)
            if await self._binds(other.text, portal.values):
                self._last = other
                return other.text
        return plain.text

    async def _describe(self, text: str, values: Sequence[Any]) -> tuple[Column, ...] | None:
        core, user = self.session.server.core, self.session.user
        params = list(values) or None

        def steps(cancel: Cancel) -> Steps:
            cancel.check()
            return core.engine.describe(text, user, params)
            yield

        found: tuple[Column, ...] | None = await asked(self.session, "execute", steps)
        return found

    async def complain(self, statement: Statement) -> None:
        """Raise what is wrong with a statement that does not begin as one that reads; it is not
        run."""
        self._last = Adapted(statement.text)
        await self._describe(statement.text, ())
        raise refused(statement.tag, [])

    def place(self, statement: Statement, problem: DsmsError) -> int | None:
        """Where in the statement's text a problem is, from 0 on."""
        found = errors.position(problem, self._last.text)
        return None if found is None else self._last.sent(found - 1)


def _read_anew(portal: Portal) -> list[Any]:
    """The values, by the types that are known now: those that came in binary stay."""
    oids = portal.prepared.oids_for()
    said = [*portal.prepared.oids, *[0] * len(oids)]
    made = []
    for k, (raw, oid, value) in enumerate(zip(portal.raw, oids, portal.values, strict=True), 1):
        made.append(value if said[k - 1] else value_of(raw, oid, False, k))
    return made
