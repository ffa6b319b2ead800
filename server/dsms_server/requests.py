"""What a session asks: each request checked, queued in the writer's lane, answered.

Requests of one session are worked on in the order they came, except `ping` and `cancel`, which are
answered at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dsms.api import Cancel, IngestReport, Result, Rows, Subscription
from dsms.errors import DsmsError, UsageError, brief
from dsms_client.protocol import VERSION
from dsms_server.clock import elapsed
from dsms_server.encode import result_reply
from dsms_server.feeds import SubscriptionFeed
from dsms_server.parties import Peer
from dsms_server.pushes import ROWS_PIECE
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
        self.server.metrics.requests.labels(op).inc()
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
        if (
            op not in ("ingest", "cancel", "ping")
            and len(self.jobs) >= self.server.config.max_requests
        ):
            raise UsageError("DS622", f"{len(self.jobs)} requests of this session wait already")

    # -- answered at once --------------------------------------------------------------------------

    def _hello(self, message: Message, ident: Any, size: int) -> None:
        if message["version"] != VERSION:
            raise UsageError(
                "DS606", f"this server speaks version {VERSION}, not {message['version']}"
            )
        if not self._token_fits(message.get("token"), message, ident, size):
            return
        form = message.get("data", "rows")
        if form not in ("rows", "arrow", "auto"):
            raise UsageError("DS604", f"`data` is rows, arrow or auto, not {form!r}")
        self.session.form = form
        if message.get("client") is not None:
            self.client = message["client"]
            self.server.core.worker.free(self.lane)
            self.lane = self.server.lane_of(self.client, self.session)
        server = self.server
        config = server.config
        self.session.reply(
            ident,
            version=VERSION,
            server=server.version,
            run=server.run,
            data=form,
            max_frame=config.max_frame,
            **({"ping_seconds": config.ping_seconds} if config.ping_seconds else {}),
        )
        self.session.release(size)

    def _token_fits(self, token: str | None, message: Message, ident: Any, size: int) -> bool:
        """False: the hello is answered here, or later."""
        threshold = self.session.threshold
        if threshold.guarded and token and (seconds := threshold.wait()):
            threshold.hold(seconds, size, partial(self._start, "hello", ident, message, size))
            return False
        if threshold.knows(token):
            if self.session.trusted():
                return True
            self.session.release(size)
            return False
        hint = "give the token that `dsms serve` was given"
        if not token:
            raise UsageError("DS605", "this server asks for a token", hint=hint)

        def answer() -> None:
            self.session.refuse(ident, UsageError("DS605", "the token is wrong", hint=hint))
            threshold.refused()
            self.session.release(size)

        threshold.hold(threshold.wrong(), size, answer)
        return False

    def _ping(self, message: Message, ident: Any, size: int) -> None:
        if "every" in message:
            self.session.promised(message["every"])
        self.session.reply(ident)
        self.session.release(size)

    def _names(self, message: Message, ident: Any, size: int) -> None:
        kinds = {
            kind: {name: [[c.name, c.type] for c in columns] for name, columns in named.items()}
            for kind, named in self.server.core.names.items()
        }
        self.session.reply(ident, **kinds)
        self.session.release(size)

    def _cancel(self, message: Message, ident: Any, size: int) -> None:
        job = self.jobs.get(message["request"])
        if job is not None:
            self._stop(job)
        self.session.reply(ident, cancelled=job is not None)
        self.session.release(size)

    # -- answered by the engine thread -------------------------------------------------------------

    def _queue(
        self,
        ident: Any,
        size: int,
        kind: str,
        urgency: Urgency,
        steps: Callable[[Cancel], Steps],
        answer: Callable[[Any], None],
        failed: Callable[[DsmsError], None] | None = None,
        answered: bool = False,
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
        job = EngineJob(
            lambda: steps(cancel), done, urgency, cancel, kind, replies=kind == "execute"
        )
        self.jobs[key] = job
        self.statements_wait += kind == "execute"
        self.waiting_ingests += kind == "ingest"
        return self.server.core.worker.submit(job, self.lane)

    def _execute(self, message: Message, ident: Any, size: int) -> None:
        sql, core, asked = message["sql"], self.server.core, elapsed()

        def answer(results: list[Result]) -> None:
            if len(results) == 1 and isinstance(results[0], Rows):
                self.server.metrics.response.observe(elapsed() - asked)
            self._answer_results(ident, results, None)

        self._queue(
            ident,
            size,
            "execute",
            Urgency.STATEMENT,
            lambda cancel: core.execute_steps(sql, cancel, self.session.account),
            answer,
            lambda problem: self._answer_results(
                ident, list(getattr(problem, "done", [])), problem
            ),
        )

    def _answer_results(self, ident: Any, results: list[Result], problem: DsmsError | None) -> None:
        if problem is not None and not results:
            self.session.refuse(ident, problem)
            return
        if problem is not None:
            self.server.metrics.errors.labels(problem.code).inc()
        fields = problem.fields() if problem is not None else None
        args = (ident, results, self.session.form, self.server.config.max_reply, fields)
        rows = sum(r.data.num_rows for r in results if isinstance(r, Rows))
        self.session.account.rows_out += rows
        if rows > ROWS_PIECE:
            size = sum(r.data.nbytes for r in results if isinstance(r, Rows))
            self.session.hold(1)
            self.session.expect(size)
            self.server.loop.create_task(self._answer_big(args, size))
            return
        try:
            self.session.write(result_reply(*args))
        except DsmsError as too_large:
            self.session.refuse(ident, too_large)

    async def _answer_big(self, args: Any, size: int) -> None:
        """Encode rows of `size` bytes in another thread; the session counts as busy, by 1 byte,
        until it is written."""
        frame = await self.server.loop.run_in_executor(self.server.pool, _encoded, args)
        if isinstance(frame, DsmsError):
            self.session.refuse(args[0], frame)
        else:
            self.session.write(frame)
        self.session.expect(-size)
        self.session.release(1)

    def _ingest(self, message: Message, ident: Any, size: int) -> None:
        stream, payload, core = message["stream"], message["payload"], self.server.core
        self.server.memory.check("rows")
        client, seq = self.client, message.get("seq")
        if seq is not None and client is None:
            raise UsageError("DS603", "`seq` needs a writer's name", hint="give `client` in hello")
        at_once = (
            message.get("wait") is False and payload.shape is not None and payload.error is None
        )

        def answer(report: IngestReport) -> None:
            core.heat()
            self.server.metrics.count_rows(report)
            self.session.account.rows_in += report.accepted + report.late + report.refused
            if not at_once:
                self.session.reply(ident, **_report_fields(report))

        def failed(problem: DsmsError) -> None:
            if not at_once:
                self.session.refuse(ident, problem)

        self._queue(
            ident,
            size,
            "ingest",
            Urgency.BULK,
            lambda cancel: core.ingest_steps(stream, payload, client, seq, cancel),
            answer,
            failed,
            at_once,
        )
        if at_once:
            self.session.reply(ident, queued=True)

    def _heartbeat(self, message: Message, ident: Any, size: int) -> None:
        core = self.server.core
        self._queue(
            ident,
            size,
            "heartbeat",
            Urgency.CONTROL,
            lambda cancel: core.heartbeat_steps(message["stream"], message["ts"], cancel),
            lambda result: self.session.reply(ident),
        )

    def _end(self, message: Message, ident: Any, size: int) -> None:
        core = self.server.core
        self._queue(
            ident,
            size,
            "end",
            Urgency.CONTROL,
            lambda cancel: core.end_steps(message["stream"], cancel),
            lambda result: self.session.reply(ident),
        )

    def _subscribe(self, message: Message, ident: Any, size: int) -> None:
        core, feed = self.server.core, SubscriptionFeed(self.session, message["query"])
        self.server.memory.check("a subscription")

        def answer(sub: Subscription) -> None:
            if self.session.closed:
                self._detach(feed)
                return
            if feed.query in self.feeds:
                self._detach(feed)
                self.session.refuse(ident, _subscribed(feed.query))
                return
            self.feeds[feed.query] = feed
            columns = [c.name for c in sub.columns]
            first = {} if feed.snapshot else {"seq": feed.next_seq}
            self.session.reply(
                ident, query=feed.query, columns=columns, types=list(feed.types), **first
            )
            core.grant(feed)

        self._queue(
            ident,
            size,
            "subscribe",
            Urgency.CONTROL,
            lambda cancel: core.subscribe_steps(feed, message.get("from")),
            answer,
        )

    def _unsubscribe(self, message: Message, ident: Any, size: int) -> None:
        name, core = message["query"], self.server.core
        found = [
            f for q, f in self.feeds.items() if name in (q, q.lower()) or name.lower() == q.lower()
        ]
        if not found:
            raise UsageError(
                "DS644",
                f"this session has no subscription to {name}",
                hint=f"it has {', '.join(self.feeds) or 'none'}",
            )
        feed = found[0]

        def answer(result: Any) -> None:
            self.feeds.pop(feed.query, None)
            self.session.forget(feed)
            self.session.reply(ident)

        self._queue(
            ident,
            size,
            "unsubscribe",
            Urgency.CONTROL,
            lambda cancel: core.unsubscribe_steps(feed),
            answer,
        )

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
        why = UsageError(
            "DS610",
            "the statement was cancelled, since its client has closed its side of the connection",
        )
        for job in [job for job in self.jobs.values() if job.kind == "execute"]:
            self._stop(job, why)

    def _stop(self, job: EngineJob, why: UsageError | None = None) -> None:
        job.cancel.set(why)
        if self.server.core.worker.drop(job):
            job.done(None, UsageError("DS610", "the statement was cancelled"))

    def lost(self) -> None:
        """The connection is gone: accepted rows are still applied, statements whose answer is not
        wanted any more are stopped."""
        for job in list(self.jobs.values()):
            if job.kind == "execute":
                job.cancel.set()
        for feed in self.feeds.values():
            self._detach(feed)
        self.feeds.clear()

    def give_up(self, feed: SubscriptionFeed) -> None:
        """End a subscription from this side."""
        self.feeds.pop(feed.query, None)
        self._detach(feed)

    def _detach(self, feed: SubscriptionFeed) -> None:
        core = self.server.core
        core.worker.submit(
            EngineJob(lambda: core.unsubscribe_steps(feed), lambda r, e: None, Urgency.CONTROL)
        )


def _encoded(args: Any) -> bytes | DsmsError:
    try:
        return result_reply(*args)
    except Exception as problem:
        return expected(problem, "an answer")


def _subscribed(query: str) -> UsageError:
    return UsageError("DS643", f"this session has a subscription to {query} already")


def _report_fields(report: IngestReport) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "accepted": report.accepted,
        "late": report.late,
        "refused": report.refused,
    }
    if report.repeated:
        fields["repeated"] = True
    if report.reasons:
        fields["reasons"] = [brief(reason) for reason in report.reasons]
    return fields
