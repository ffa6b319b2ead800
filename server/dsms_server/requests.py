"""What a session asks: each request checked, queued in the writer's lane, answered.

Requests of one session are worked on in the order they came, except `ping` and `cancel`, which are
answered at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dsms.api import Cancel, IngestReport, Result, Rows, Subscription
from dsms.errors import DsmsError, UsageError
from dsms.rights.writers import name_of as writer_name
from dsms_client.protocol import VERSION
from dsms_server import hello
from dsms_server.answers import answer_results, names_fields, report_fields
from dsms_server.clock import elapsed
from dsms_server.feeds import SubscriptionFeed, asked_for, subscribed
from dsms_server.grouping import Waiting
from dsms_server.parties import Peer
from dsms_server.slices import nothing
from dsms_server.worker import EngineJob, Lane, Steps, Urgency, expected

Message = dict[str, Any]


class Requests:
    """The requests of one session that wait or run, and its subscriptions."""

    def __init__(self, session: Peer) -> None:
        self.session = session
        self.server = session.server
        self.feeds: dict[str, SubscriptionFeed] = {}
        self.client: str | None = None
        self.lane = Lane()
        self.jobs: dict[Any, EngineJob] = {}
        self.statements_wait = 0
        self.waiting_ingests = 0

    def handle(self, message: Message, size: int) -> None:
        """Start work on a well-formed request of `size` bytes; they are released when it is
        answered."""
        op, ident = message["op"], message.get("id")
        self.server.metrics.count_request(op)
        self._start(op, ident, message, size)

    def _start(self, op: str, ident: Any, message: Message, size: int) -> None:
        try:
            self._admit(op, ident)
            getattr(self, f"_{op}")(message, ident, size)
        except Exception as problem:
            self.session.refuse(ident, expected(problem, f"the request {op}"))
            self.session.threshold.refused()
            self.session.release(size)

    def _admit(self, op: str, ident: Any) -> None:
        if not isinstance(ident, (int, str)):
            raise UsageError(
                "DS603", f"`{op}` needs an `id`, an integer or text that its reply repeats"
            )
        if ident in self.jobs:
            raise UsageError(
                "DS603", f"the id {ident!r} belongs to a request that still waits for its answer"
            )
        most = self.server.config.max_requests
        if len(self.jobs) >= most and op not in ("ingest", "cancel", "ping"):
            raise UsageError("DS622", f"{len(self.jobs)} requests of this session wait already")

    # -- answered at once --------------------------------------------------------------------------

    def _hello(self, message: Message, ident: Any, size: int) -> None:
        hello.begin(self, message, ident, size)

    def greeted(self, ident: Any, form: str, client: str | None) -> None:
        """The peer has shown who it is."""
        self.session.form = form
        if client is not None:
            self.client = writer_name(self.session.user, client)
            self.server.core.worker.free(self.lane)
            self.lane = self.server.lane_of(self.client, self.session)
        self.server.audit.login(self.session.account)
        server, user, every = self.server, self.session.user, self.server.config.ping_seconds
        self.session.reply(
            ident,
            version=VERSION,
            server=server.version,
            run=server.run,
            data=form,
            changes=self.session.changes,
            max_frame=server.config.max_frame,
            **({"ping_seconds": every} if every else {}),
            **({"user": user} if user is not None else {}),
        )

    def _ping(self, message: Message, ident: Any, size: int) -> None:
        if "every" in message:
            self.session.promised(message["every"])
        self.session.reply(ident)
        self.session.release(size)

    def _names(self, message: Message, ident: Any, size: int) -> None:
        core, user = self.server.core, self.session.user

        def answer(names: dict[str, Any]) -> None:
            self.session.reply(ident, **names_fields(names))

        if user is not None:
            self.queue(
                ident, size, "names", Urgency.CONTROL, lambda _: core.names_steps(user), answer
            )
            return
        answer(core.names.known)
        self.session.release(size)

    def _cancel(self, message: Message, ident: Any, size: int) -> None:
        job = self.jobs.get(message["request"])
        if job is not None:
            self._stop(job)
        self.session.reply(ident, cancelled=job is not None)
        self.session.release(size)

    # -- answered by the engine thread -------------------------------------------------------------

    def queue(
        self,
        ident: Any,
        size: int,
        kind: str,
        urgency: Urgency,
        steps: Callable[[Cancel], Steps],
        answer: Callable[[Any], None],
        failed: Callable[[DsmsError], None] | None = None,
        answered: bool = False,
        frame: Waiting | None = None,
    ) -> EngineJob:
        """`answered`: the request has its reply already, so its id may be used again."""
        key = object() if answered else ident

        def done(result: Any, error: BaseException | None) -> None:
            self.jobs.pop(key, None)
            self.statements_wait -= kind == "execute"
            self.waiting_ingests -= kind == "ingest"
            refuse = failed or partial(self.session.refuse, ident)
            try:
                if error is None:
                    answer(result)
                else:
                    refuse(cancel.told(expected(error, kind)))
            except Exception as problem:
                refuse(expected(problem, f"the answer of {kind}"))
            finally:
                self.session.release(size)

        cancel = Cancel()
        replies = kind == "execute"
        job = EngineJob(lambda: steps(cancel), done, urgency, cancel, kind, replies=replies)
        job.alike = None if frame is None else self.server.core.grouping.alike(frame, cancel)
        self.jobs[key] = job
        self.statements_wait += kind == "execute"
        self.waiting_ingests += kind == "ingest"
        return self.server.core.worker.submit(job, self.lane)

    def _execute(self, message: Message, ident: Any, size: int) -> None:
        sql, core, asked, peer = message["sql"], self.server.core, elapsed(), self.session

        def answer(results: list[Result]) -> None:
            if len(results) == 1 and isinstance(results[0], Rows):
                self.server.metrics.response.observe(elapsed() - asked)
            answer_results(peer, ident, results)

        def failed(problem: DsmsError) -> None:
            answer_results(peer, ident, list(getattr(problem, "done", [])), problem)

        def steps(cancel: Cancel) -> Steps:
            return core.execute_steps(sql, cancel, peer.account, peer.user, message.get("params"))

        self.queue(ident, size, "execute", Urgency.STATEMENT, steps, answer, failed)

    def _ingest(self, message: Message, ident: Any, size: int) -> None:
        stream, payload, core = message["stream"], message["payload"], self.server.core
        client, seq = self.client, message.get("seq")
        self.server.memory.take_rows(size)
        self.server.audit.check("ingest")
        if seq is not None and client is None:
            raise UsageError("DS603", "`seq` needs a writer's name", hint="give `client` in hello")
        user, account = self.session.user, self.session.account
        positions, upsert = message.get("positions", False), message.get("upsert", False)
        came = elapsed()
        frame = Waiting(stream, payload, client, seq, user, positions, upsert, came)
        fits = payload.shape is not None and payload.error is None
        at_once = fits and message.get("wait") is False
        if fits and user is not None:  # else the reply would tell that there is such a stream
            key = core.engine.key_of(name := payload.shape.stream)
            if may := core.engine.rights.may(user, "INSERT", key):
                rows = len(payload.fitted(payload.shape))
                self.server.quotas.check_rows(user, name, rows, key)
            at_once = at_once and may

        def answer(report: IngestReport) -> None:
            core.ticking.heat()
            self.server.metrics.count_rows(report)
            rows = report.accepted + report.late + report.refused + report.shed
            account.rows_in += rows
            self.server.quotas.took(user, rows)
            self.server.audit.often("ingest", account, stream, None, report)
            if not at_once:
                self.session.reply(ident, **report_fields(report, positions))

        def failed(problem: DsmsError) -> None:
            self.server.audit.often("ingest", account, stream, problem)
            if not at_once:
                self.session.refuse(ident, problem)

        self.queue(
            ident,
            size,
            "ingest",
            Urgency.BULK,
            lambda cancel: core.intake.ingest_steps(
                stream, payload, client, seq, cancel, user, upsert, came
            ),
            answer,
            failed,
            at_once,
            frame,
        )
        if at_once:
            self.session.reply(ident, queued=True)

    def _heartbeat(self, message: Message, ident: Any, size: int) -> None:
        core, user, stream = self.server.core, self.session.user, message["stream"]
        ts, where = message.get("ts"), message.get("where")
        self.server.audit.check("heartbeat")

        def over(problem: DsmsError | None) -> None:
            self.server.audit.often("heartbeat", self.session.account, stream, problem)
            self._say(ident, problem)

        self.queue(
            ident,
            size,
            "heartbeat",
            Urgency.CONTROL,
            lambda cancel: core.intake.heartbeat_steps(stream, ts, cancel, user, where),
            lambda result: over(None),
            over,
        )

    def _end(self, message: Message, ident: Any, size: int) -> None:
        core, user, stream = self.server.core, self.session.user, message["stream"]
        self.server.audit.check("end")

        def over(problem: DsmsError | None) -> None:
            self.server.audit.request("end", self.session.account, stream, problem)
            self._say(ident, problem)

        self.queue(
            ident,
            size,
            "end",
            Urgency.CONTROL,
            lambda cancel: core.intake.end_steps(stream, cancel, user),
            lambda result: over(None),
            over,
        )

    def _say(self, ident: Any, problem: DsmsError | None) -> None:
        if problem is None:
            self.session.reply(ident)
        else:
            self.session.refuse(ident, problem)

    def _subscribe(self, message: Message, ident: Any, size: int) -> None:
        core, user = self.server.core, self.session.user
        feed = asked_for(self.session, message, self.session.changes)
        self.server.memory.check("a subscription")
        self.server.audit.check("subscribe")

        def over(problem: DsmsError | None) -> None:
            self.server.audit.request("subscribe", self.session.account, feed.query, problem)

        def failed(problem: DsmsError) -> None:
            over(problem)
            self.session.refuse(ident, problem)

        def answer(sub: Subscription) -> None:
            if self.session.closed:
                self.detach(feed)
                return
            if feed.query in self.feeds:
                self.detach(feed)
                failed(subscribed(feed.query))
                return
            over(None)
            self.feeds[feed.query] = feed
            told: dict[str, Any] = {} if feed.snapshot else {"seq": feed.next_seq}
            told |= {} if sub.approximate is None else {"approximate": sub.approximate}
            told |= {"columns": [c.name for c in sub.columns], "types": list(feed.types)}
            self.session.reply(ident, query=feed.query, **told)
            core.delivery.grant(feed)

        self.queue(
            ident,
            size,
            "subscribe",
            Urgency.CONTROL,
            lambda cancel: core.delivery.subscribe_steps(feed, message.get("from"), user),
            answer,
            failed,
        )

    def _unsubscribe(self, message: Message, ident: Any, size: int) -> None:
        name, core = message["query"], self.server.core
        found = [feed for query, feed in self.feeds.items() if name.lower() == query.lower()]
        if not found:
            known = f"it has {', '.join(self.feeds) or 'none'}"
            raise UsageError("DS644", f"this session has no subscription to {name}", hint=known)
        feed = found[0]

        def answer(result: Any) -> None:
            self.feeds.pop(feed.query, None)
            self.session.forget(feed)
            self.server.audit.request("unsubscribe", self.session.account, feed.query)
            self.session.reply(ident)

        self.queue(
            ident,
            size,
            "unsubscribe",
            Urgency.CONTROL,
            lambda cancel: core.delivery.unsubscribe_steps(feed),
            answer,
        )

    # -- rights ------------------------------------------------------------------------------------

    def recheck(self) -> None:
        """Rights have changed: end what may not go on."""
        session, engine = self.session, self.server.core.engine
        if session is None or session.closed:
            return
        if not self.server.identities.holds(session.identity):
            why = UsageError("DS605", "the user was dropped, or has another token or password now")
            session.account.ended = why.code
            session.refuse(None, why)
            session.linger()
            return
        for feed in list(self.feeds.values()):
            if not engine.rights.may(session.user, "SUBSCRIBE", engine.key_of(feed.source)):
                what = f"{session.user} has no right SUBSCRIBE on {feed.query} any more"
                gone = UsageError("DS670", what)
                self.server.audit.request("unsubscribe", session.account, feed.query, gone)
                session.take_back(feed, gone)

    # -- the end -----------------------------------------------------------------------------------

    def cancel_all(self) -> None:
        for job in self.jobs.values():
            job.cancel.set()

    @property
    def has_statements(self) -> bool:
        """Whether any is not answered."""
        return any(job.kind == "execute" for job in self.jobs.values())

    def abandon(self) -> None:
        """Nobody waits for the answers of statements any more."""
        gone = "its client has closed its side of the connection"
        self.stop_statements(UsageError("DS610", f"the statement was cancelled, since {gone}"))

    def stop_statements(self, why: DsmsError) -> None:
        """End those that are not answered."""
        for job in [job for job in self.jobs.values() if job.kind == "execute"]:
            self._stop(job, why)

    def _stop(self, job: EngineJob, why: DsmsError | None = None) -> None:
        job.cancel.set(why)
        if self.server.core.worker.drop(job):
            job.done(None, UsageError("DS610", "the statement was cancelled"))

    def lost(self) -> None:
        """The connection is gone: rows that were accepted are applied, statements are stopped."""
        for job in list(self.jobs.values()):
            if job.kind == "execute":
                job.cancel.set()
        for feed in self.feeds.values():
            self.detach(feed)
        self.feeds.clear()

    def give_up(self, feed: SubscriptionFeed) -> None:
        """End a subscription from this side."""
        self.feeds.pop(feed.query, None)
        self.detach(feed)

    def detach(self, feed: SubscriptionFeed) -> None:
        core = self.server.core
        steps = partial(core.delivery.unsubscribe_steps, feed)
        core.worker.submit(EngineJob(steps, nothing, Urgency.CONTROL))
