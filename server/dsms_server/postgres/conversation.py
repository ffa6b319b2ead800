"""What a client says once it is in: simple queries, and the extended protocol with its prepared
statements and portals.

After an error in the extended protocol everything up to the next Sync is passed over.  There are no
transactions, as nothing is changed; that a client believes it is in one is kept, with what it would
see: a failed one takes nothing but its end."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from dsms.errors import DsmsError, UsageError
from dsms.sql.script import words
from dsms_server.postgres import codec, errors
from dsms_server.postgres.codec import Body
from dsms_server.postgres.parameters import value_of
from dsms_server.postgres.peer import Peer
from dsms_server.postgres.portals import Portal, Prepared, formats_for
from dsms_server.postgres.running import Running
from dsms_server.postgres.settings import Settings
from dsms_server.postgres.statements import Statement, statements, unknown
from dsms_server.postgres.streams import Streams
from dsms_server.worker import expected

MOST_PREPARED, MOST_PORTALS = 1024, 256
_ENDS = ("commit", "rollback")


@dataclass(slots=True)
class _Place:
    """Where in what was sent the statement under way is, for errors."""

    text: str = ""
    statement: Statement | None = None


class Conversation:
    """Of one session.

    status     I: idle, T: in a transaction, E: in one that has failed
    skipping   up to the next Sync"""

    def __init__(self, session: Peer, settings: Settings) -> None:
        self.session, self.settings = session, settings
        self.streams = Streams(session)
        self.running = Running(session, settings, self.streams)
        self.status = "I"
        self.skipping = False
        self.prepared: dict[str, Prepared] = {}
        self.portals: dict[str, Portal] = {}
        self._place = _Place()

    async def hear(self, kind: int, body: bytes) -> None:
        """One message.  Raises DS626 for one that can't be read, which ends the session."""
        letter = chr(kind)
        if letter == "X":
            self.session.transport.close()
            return
        if self.skipping and letter != "S":
            return
        fields = Body(body)
        try:
            await self._answer(letter, fields)
        except Exception as found:
            problem = expected(found, "a statement of a PostgreSQL client")
            if problem.code == "DS626":
                raise problem from None
            self._fail(problem)
            self.skipping = letter not in "QF"
            if letter in "QF":
                self._ready()

    async def _answer(self, letter: str, fields: Body) -> None:
        match letter:
            case "Q":
                text = fields.text()
                fields.over()
                await self._query(text)
            case "P":
                self._parse(fields)
            case "B":
                await self._bind(fields)
            case "D":
                await self._describe(fields)
            case "E":
                await self._execute(fields)
            case "C":
                self._close(fields)
            case "S":
                fields.over()
                self._sync()
            case "H":
                fields.over()
            case "F":
                raise unknown("this port has no function calls by number", "0A000")
            case "d" | "c" | "f":
                pass  # of a COPY that was refused
            case _:
                raise codec.broken(f"{letter!r} can't come here")

    # -- simple ------------------------------------------------------------------------------------

    async def _query(self, text: str) -> None:
        self.session.server.metrics.count_request("postgres_query")
        self._place = _Place(text)
        self._drop("")
        some = False
        for statement in statements(text, self.running.known):
            some = True
            self._place.statement = statement
            portal = Portal(Prepared(statement))
            if not self._done_here(portal):
                await self._run(portal)
                await self._give(portal, 0, described=False)
            self._place.statement = None
        if not some:
            self.session.write(codec.EMPTY)
        self._ready()

    def _ready(self) -> None:
        if self.status == "I":
            self._leave()
        self.session.write(codec.ready(self.status))

    def _leave(self) -> None:
        """A transaction is over: its portals are gone, but for cursors that were declared outside
        of one."""
        self._drop(*[name for name, portal in self.portals.items() if not portal.holds])

    def _drop(self, *names: str) -> None:
        for name in names:
            self.running.close(self.portals.pop(name, None))

    def _fail(self, problem: DsmsError) -> None:
        self.session.server.metrics.errors.labels(problem.code).inc()
        self.session.write(errors.response(problem, self._position(problem)))
        if self.status == "T":
            self.status = "E"

    def _position(self, problem: DsmsError) -> int | None:
        statement = self._place.statement
        if statement is None or statement.verb not in ("ask", "unknown"):
            return errors.position(problem, self._place.text) if statement is None else None
        place = self.running.place(statement, problem)
        return None if place is None else min(len(self._place.text), statement.start + place) + 1

    # -- what is no statement of the engine --------------------------------------------------------

    def _done_here(self, portal: Portal) -> bool:
        """Begin or end a transaction, or forget what was prepared, if that is asked for.  Raises
        DS627 for anything but its end in one that has failed."""
        statement = portal.prepared.statement
        verb = "" if statement is None else statement.verb
        if self.status == "E" and verb not in _ENDS:
            raise errors.with_state(
                UsageError("DS627", "the transaction has failed: nothing but its end is taken"),
                errors.FAILED_TRANSACTION,
            )
        if statement is None:
            self.session.write(codec.EMPTY)
            return True
        tag = statement.tag
        match verb:
            case "begin":
                self._begin()
            case "commit" | "rollback":
                tag = "ROLLBACK" if self.status == "E" else tag
                self._end(verb, quiet=self.status != "I")
            case "deallocate":
                self._forget(statement.name)
            case "discard":
                self.prepared.clear()
                self._drop(*self.portals)
                for name, _ in self.settings.items():
                    self.settings.reset(name)
                self.session.account.statement_timeout = (
                    self.session.server.config.statement_timeout
                )
            case _:
                return False
        self.session.write(codec.complete(tag))
        return True

    def _begin(self) -> None:
        if self.status == "T":
            self.session.write(errors.notice("there is already a transaction", "WARNING"))
        self.status = "T"

    def _end(self, verb: str, quiet: bool) -> None:
        if not quiet:
            self.session.write(errors.notice("there is no transaction", "WARNING"))
        self.status = "I"
        self._leave()

    def _forget(self, name: str | None) -> None:
        if name is None:
            self.prepared.clear()
        elif self.prepared.pop(name, None) is None:
            raise _no_such("prepared statement", name, "26000")

    # -- extended ----------------------------------------------------------------------------------

    def _parse(self, fields: Body) -> None:
        name, text = fields.text(), fields.text()
        oids = [fields.unsigned() for _ in range(fields.short())]
        fields.over()
        self.session.server.metrics.count_request("postgres_parse")
        self._place = _Place(text)
        if name and name in self.prepared:
            raise errors.with_state(
                UsageError("DS627", f"there is a prepared statement {name!r} already"), "42P05"
            )
        found = list(statements(text, self.running.known))
        if len(found) > 1:
            raise errors.with_state(
                UsageError("DS111", "one statement at a time is prepared"), "42601"
            )
        if len(self.prepared) >= MOST_PREPARED and name not in self.prepared:
            raise UsageError("DS622", f"{MOST_PREPARED} prepared statements are the most")
        self.prepared[name] = Prepared(
            found[0] if found else None, text, oids, _marks(text) if found else 0
        )
        self.session.write(codec.PARSED)

    async def _bind(self, fields: Body) -> None:
        name, of = fields.text(), fields.text()
        forms = fields.shorts()
        raw = [fields.value() for _ in range(fields.short())]
        formats = fields.shorts()
        fields.over()
        prepared = self._prepared(of)
        self._place = _Place(prepared.text, prepared.statement)
        if any(form > 1 for form in (*forms, *formats)):
            raise codec.broken("a format is 0, text, or 1, binary")
        if name and name in self.portals:
            raise errors.with_state(
                UsageError("DS627", f"there is a portal {name!r} already"), "42P03"
            )
        if len(self.portals) >= MOST_PORTALS:
            raise UsageError("DS622", f"{MOST_PORTALS} portals are the most")
        if len(raw) != prepared.count:
            raise errors.with_state(
                UsageError("DS617", f"{len(raw)} values for {prepared.count} parameters"),
                errors.PROTOCOL,
            )
        self._drop(name)
        each = formats_for(forms, len(raw))
        if any(form and not oid for form, oid in zip(each, prepared.oids_for(), strict=True)):
            await self.running.infer(prepared)
        oids = prepared.oids_for()
        values = [
            value_of(one, oid, bool(form), k)
            for k, (one, oid, form) in enumerate(zip(raw, oids, each, strict=True), 1)
        ]
        self.portals[name] = Portal(prepared, values, raw, formats)
        self.session.write(codec.BOUND)

    def _prepared(self, name: str) -> Prepared:
        found = self.prepared.get(name)
        if found is None:
            raise _no_such("prepared statement", name, "26000")
        return found

    def _portal(self, name: str) -> Portal:
        found = self.portals.get(name)
        if found is None:
            raise _no_such("portal", name, "34000")
        return found

    async def _describe(self, fields: Body) -> None:
        kind, name = fields.byte(), fields.text()
        fields.over()
        if kind == ord("S"):
            prepared = self._prepared(name)
            self._place = _Place(prepared.text, prepared.statement)
            await self.running.infer(prepared)
            columns = await self.running.columns(prepared)
            self.session.write(codec.parameter_description(prepared.oids_for()))
            formats = [0] * len(columns or ())
        elif kind == ord("P"):
            portal = self._portal(name)
            self._place = _Place(portal.prepared.text, portal.prepared.statement)
            if not portal.local and self.status != "E":
                await self._run(portal)
            columns = portal.columns
            formats = formats_for(portal.formats, len(columns or ()))
        else:
            raise codec.broken("Describe is of a statement, S, or a portal, P")
        if columns is None:
            self.session.write(codec.NO_DATA)
        else:
            self.session.write(codec.row_description(columns, formats))

    async def _execute(self, fields: Body) -> None:
        name, most = fields.text(), max(0, fields.long())
        fields.over()
        self.session.server.metrics.count_request("postgres_execute")
        portal = self._portal(name)
        self._place = _Place(portal.prepared.text, portal.prepared.statement)
        if self._done_here(portal):
            return
        await self._run(portal)
        await self._give(portal, most, described=True)

    def _close(self, fields: Body) -> None:
        kind, name = fields.byte(), fields.text()
        fields.over()
        if kind == ord("S"):
            self.prepared.pop(name, None)
        elif kind == ord("P"):
            self._drop(name)
        else:
            raise codec.broken("Close is of a statement, S, or a portal, P")
        self.session.write(codec.CLOSED)

    def _sync(self) -> None:
        self.skipping = False
        self._ready()

    # -- answers -----------------------------------------------------------------------------------

    async def _run(self, portal: Portal) -> None:
        """Have the portal's statement done, if it is not."""
        await self.running.run(portal, self.portals, outlives=self.status == "I")

    async def _give(self, portal: Portal, most: int, described: bool) -> None:
        """The rows of a portal, `most` of them (0: all), and what comes behind them."""
        if portal.columns is not None and not described:
            formats = formats_for(portal.formats, len(portal.columns))
            self.session.write(codec.row_description(portal.columns, formats))
        suspended = await self.running.give(portal, most)
        if portal.columns is not None and suspended:
            self.session.write(codec.SUSPENDED)
        else:
            self.session.write(codec.complete(portal.tag))

    # -- the end -----------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Stop what is run."""
        why = UsageError("DS610", "the statement was cancelled on the user's request")
        self.running.cancel(why)
        self.streams.cancel(why)

    def lost(self) -> None:
        """The connection is gone."""
        self.prepared.clear()
        self.portals.clear()
        self.streams.lost()


def _no_such(kind: str, name: str, state: str) -> DsmsError:
    return errors.with_state(UsageError("DS627", f"there is no {kind} {name[:80]!r}"), state)


def _marks(text: str) -> int:
    """The largest n of a $n in the text."""
    found, most = list(words(text)), 0
    for one, then in pairwise(found):
        if one.text == "$" and then.start == one.end and re.fullmatch(r"\d{1,5}", then.text):
            most = max(most, int(then.text))
    return most
