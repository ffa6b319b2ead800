"""A tiny stand-in for dsms.engine.Engine, for tests of the server alone.

It knows `CREATE STREAM s (c TYPE, ...)`, `CREATE QUERY q AS SELECT * FROM s` (every accepted row is
pushed), `SELECT COUNT(*) FROM s`, `SELECT * FROM s`, `SELECT n` and `SPIN` (runs until cancelled).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Generator
from types import SimpleNamespace

import pyarrow as pa

from dsms.api import Cancel, Column, Done, IngestReport, Push, Result, Rows, Subscription
from dsms.errors import QueryError, UsageError
from dsms.rights import Rights
from dsms.sql.catalog import StreamDef, TableDef
from dsms.sql.types import Field, Kind, Type
from dsms_client import columns
from tests.waiting import WAIT


def _type(sql: str) -> Type:
    name, _, digits = sql.partition("(")
    precision, scale = (int(d) for d in digits.rstrip(")").split(",")) if digits else (0, 0)
    return Type(Kind(name), precision, scale)


def _next_seq(log: list[Push]) -> int:
    return log[-1].seq + log[-1].data.num_rows if log else 0


class FakeEngine:
    def __init__(self) -> None:
        self.schemas: dict[str, list[Column]] = {}
        self.rows: dict[str, list[pa.RecordBatch]] = {}
        self.queries: dict[str, str] = {}
        self.logs: dict[str, list[Push]] = {}
        self.subs: list[Subscription] = []
        self.seqs: dict[tuple[str, str], int] = {}
        self.now = 0
        self.turns = SimpleNamespace(behind=False, at="")
        self.closed = False
        self.spinning = threading.Event()
        self.gate = threading.Event()  # `GATE` waits for it
        self.gate.set()
        self.at_the_gate = threading.Event()
        self.calls: list[tuple] = []
        self.dropped: set[str] = set()  # their log is still read, and then they end

    rights = Rights()

    def copy_on(self) -> bool:
        return False

    def check_request(self, user: str | None, op: str, name: str | None) -> None:
        assert user is None

    def slices(
        self,
        text: str,
        cancel: Cancel | None = None,
        priority=0,
        caller=None,
        user=None,
        params=None,
    ) -> Generator[SimpleNamespace, None, list[Result]]:
        done: list[Result] = []
        for number, statement in enumerate(s.strip() for s in text.split(";") if s.strip()):
            try:
                done.append(self._one(statement, cancel or Cancel()))
            except (QueryError, UsageError) as problem:
                problem.statement = number
                problem.done = done
                raise
            yield SimpleNamespace(result=done[-1], ready=False, waits=None)
        return done

    def minding_quotas(self) -> Generator[None, None, dict]:
        return {}
        yield

    def changing(self, name: str) -> None:
        return None

    def catch_up(self, cancel: Cancel | None = None) -> bool:
        return False

    def _one(self, sql: str, cancel: Cancel) -> Result:
        if found := re.fullmatch(r"(?is)create stream (\w+)\s*\((.*)\)", sql):
            pairs = [c.split() for c in re.split(r",(?![^(]*\))", found[2])]
            self.schemas[found[1]] = [Column(n, t) for n, t in pairs]
            self.rows[found[1]] = []
            return Done(f"stream {found[1]} created")
        if found := re.fullmatch(r"(?is)create query (\w+) as select \* from (\w+)", sql):
            self.queries[found[1]] = found[2]
            self.logs[found[1]] = []
            return Done(f"query {found[1]} created")
        if found := re.fullmatch(r"(?is)select count\(\*\) from (\w+)", sql):
            return self._rows(["count"], ["INT"], [[sum(b.num_rows for b in self.rows[found[1]])]])
        if found := re.fullmatch(r"(?is)select \* from (\w+)", sql):
            cols = self.schemas[found[1]]
            types = [c.type for c in cols]
            empty = columns.rows_to_batch([], [c.name for c in cols], types)
            whole = pa.Table.from_batches(self.rows[found[1]], empty.schema).combine_chunks()
            return Rows((whole.to_batches() or [empty])[0], tuple(types), self.now)
        if found := re.fullmatch(r"(?is)drop query (\w+)", sql):
            self.dropped.add(found[1])
            return Done(f"query {found[1]} dropped")
        if found := re.fullmatch(r"(?is)describe \"?(\w+)\"?", sql):
            rows = [
                [c.name, c.type, "yes", "event time" if c.type == "TIMESTAMP" else None]
                for c in self.schemas[found[1]]
            ]
            return self._rows(["column", "type", "nullable", "note"], ["STRING"] * 4, rows)
        if found := re.fullmatch(r"(?is)select (\d+)", sql):
            return self._rows([found[1]], ["INT"], [[int(found[1])]])
        if sql.upper().startswith("SHOW QUERIES"):
            rows = [
                [
                    q,
                    "SS" if q.startswith("each") else None,
                    "10 s" if q.startswith("each") else None,
                ]
                for q in self.queries
            ]
            return self._rows(["query", "path", "period"], ["STRING"] * 3, rows)
        if sql.upper() == "GATE":
            self.at_the_gate.set()
            self.gate.wait(WAIT)
            return Done("gate passed")
        if sql.upper() == "SPIN":
            self.spinning.set()
            while True:
                cancel.check()
        raise QueryError("DS100", f"cannot read {sql!r}", 1, 1 + sql.find(" "), "try SELECT 1")

    def _rows(self, names, types, rows) -> Rows:
        return Rows(columns.rows_to_batch(rows, names, types), tuple(types), self.now)

    def ingest(
        self,
        stream,
        data,
        *,
        client=None,
        seq=None,
        first=0,
        last=True,
        cancel=None,
        upsert=False,
        waited=None,
    ) -> IngestReport:
        if client is not None and seq is not None:
            if seq <= self.seqs.get((client, stream), -1):
                return IngestReport(0, repeated=1)
            if last:
                self.seqs[client, stream] = seq
        batch = pa.RecordBatch.from_arrays(
            list(data.columns), [c.name for c in self.schemas[stream]]
        )
        self.rows[stream].append(batch)
        for query, source in self.queries.items():
            if source == stream and len(data):
                self._push(query, batch)
        refused = sum(r.count for r in data.refusals)
        return IngestReport(len(data), 0, refused, reasons=tuple(map(str, data.refusals)))

    def _push(self, query: str, data: pa.RecordBatch) -> None:
        log = self.logs[query]
        seq = _next_seq(log)
        ats = pa.array(range(seq, seq + data.num_rows), pa.int64())
        push = Push(
            query, seq, "insert", seq + data.num_rows - 1, data, ats if data.num_rows > 1 else None
        )
        log.append(push)
        for sub in list(self.subs):
            if sub.query == query:
                self._offer(sub, push)

    def _offer(self, sub: Subscription, push: Push) -> None:
        sub.give(push)
        if sub.closed:
            self.subs.remove(sub)

    def check_heartbeat(self, stream: str, ts: int) -> None:
        pass

    def heartbeat(self, stream: str, ts: int, cancel=None, where=None) -> None:
        self.calls.append(("heartbeat", stream, ts))

    def end(self, stream: str, cancel=None) -> None:
        self.calls.append(("end", stream))

    def advance(self, now: int, cancel=None) -> None:
        assert now >= self.now
        self.now = now

    def stamped_after(self, instant: int) -> dict[str, int]:
        return {}

    def has_work(self) -> bool:
        return False

    def key_of(self, name: str) -> str:
        return name.casefold()

    def arrives(self, query: str) -> bool:
        return False

    def subscribe(
        self, query, start=None, limit_bytes=None, on_ready=None, conflate=False
    ) -> Subscription:
        if query not in self.queries:
            raise UsageError("DS402", f"there is no query `{query}`")
        sub = Subscription(
            query, tuple(self.schemas[self.queries[query]]), limit_bytes or 1 << 20, on_ready
        )
        self.subs.append(sub)
        for push in self.logs[query] if start is not None else []:
            skip = max(0, start - push.seq)
            if skip < push.data.num_rows:
                ats = None if push.ats is None else push.ats.slice(skip)
                self._offer(
                    sub,
                    Push(query, push.seq + skip, push.kind, push.at, push.data.slice(skip), ats),
                )
        if query in self.dropped:
            sub.finish(None, "the query was dropped")
        return sub

    def unsubscribe(self, sub: Subscription) -> None:
        self.subs.remove(sub)

    is_stored, recovered, unsaved = False, None, None

    def streams(self) -> list[StreamDef]:
        fields = {
            n: tuple(Field(c.name, _type(c.type)) for c in cols) for n, cols in self.schemas.items()
        }
        return [StreamDef(name, schema) for name, schema in fields.items()]

    def tables(self) -> list[TableDef]:
        return []

    def next_seq(self, query: str) -> int:
        return _next_seq(self.logs[query])

    def durability(self, stream: str) -> None:
        return None

    def log_files(self) -> int:
        return 0

    def untold(self, query: str) -> None:
        return None

    def uncommitted(self, durability: str) -> bool:
        return False

    def commit(self, durability: str | None = None) -> None:
        """Nothing is kept."""

    def seal_with(self, executor) -> None:
        """Nothing is sealed."""

    def pause_with(self, over) -> None:
        """Nothing here takes long."""

    def held(self) -> list:
        return []

    def give_way(self, size: int) -> int:
        return 0

    def serve_with(self, sessions, memory=None, connectors=None) -> None:
        self.sessions, self.memory = sessions, memory

    def connectors(self) -> dict:
        return {}

    def under_way(self) -> str:
        return self.turns.at

    def archive_with(self, writer=None, runner=None) -> None:
        """Nothing is archived."""

    def tidy(self) -> None:
        """Nothing is archived."""

    def names(self, user: str | None = None) -> dict:
        return {
            "streams": dict(self.schemas),
            "tables": {},
            "queries": {q: self.schemas[s] for q, s in self.queries.items()},
        }

    def counting(self) -> Generator[None, None, dict]:
        return {
            "rows": sum(b.num_rows for bs in self.rows.values() for b in bs),
            "streams": {
                s: {"accepted": sum(b.num_rows for b in bs)} for s, bs in self.rows.items()
            },
            "queries": {},
        }
        yield

    def close(self) -> None:
        self.closed = True
