"""What requests are answered: results of statements, many rows encoded in another thread; counts of
rows taken; names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dsms.api import IngestReport, Result, Rows
from dsms.errors import DsmsError, brief
from dsms_server.encode import result_reply
from dsms_server.parties import Peer
from dsms_server.pushes import ROWS_PIECE
from dsms_server.worker import expected

POSITIONS = 100_000  # of rows that were not taken, in the reply to a frame


def answer_results(
    session: Peer, ident: Any, results: list[Result], problem: DsmsError | None = None
) -> None:
    """Answer `execute`.  `problem`: what stopped it, behind the statements that have results."""
    if problem is not None and not results:
        session.refuse(ident, problem)
        return
    if problem is not None:
        session.server.metrics.errors.labels(problem.code).inc()
    fields = problem.fields() if problem is not None else None
    most = session.server.config.max_reply
    encode = partial(result_reply, ident, results, session.form, most, fields)
    tables = [r.data for r in results if isinstance(r, Rows)]
    rows = sum(table.num_rows for table in tables)
    session.account.rows_out += rows
    if rows > ROWS_PIECE:
        size = sum(table.nbytes for table in tables)
        session.hold(1)
        session.expect(size)
        session.server.loop.create_task(_answer_big(session, ident, encode, size))
        return
    try:
        session.write(encode())
    except DsmsError as too_large:
        session.refuse(ident, too_large)


async def _answer_big(session: Peer, ident: Any, encode: Callable[[], bytes], size: int) -> None:
    """Encode rows of `size` bytes in another thread; the session counts as busy, by 1 byte, until
    it is written."""
    server = session.server
    frame = await server.loop.run_in_executor(server.pool, _encoded, encode)
    if isinstance(frame, DsmsError):
        session.refuse(ident, frame)
    else:
        session.write(frame)
    session.expect(-size)
    session.release(1)


def _encoded(encode: Callable[[], bytes]) -> bytes | DsmsError:
    try:
        return encode()
    except Exception as problem:
        return expected(problem, "an answer")


def names_fields(names: dict[str, Any]) -> dict[str, Any]:
    """The reply to `names`: columns and types of each kind of thing."""
    return {
        kind: {name: [[c.name, c.type] for c in columns] for name, columns in named.items()}
        for kind, named in names.items()
    }


def report_fields(report: IngestReport, positions: bool = False) -> dict[str, Any]:
    """The reply to `ingest`.

    positions  with those of all rows that were not taken, up to POSITIONS of them"""
    fields: dict[str, Any] = {
        "accepted": report.accepted,
        "late": report.late,
        "refused": report.refused,
    }
    if report.repeated:
        fields["repeated"] = True
    if report.shed:
        fields["shed"] = report.shed
    if report.reasons:
        fields["reasons"] = [brief(reason) for reason in report.reasons]
    if positions:
        fields["positions"] = _positions(report)
    return fields


def _positions(report: IngestReport) -> dict[str, list[int]]:
    """By reason, ascending."""
    found: dict[str, list[int]] = {}
    left = POSITIONS
    for reason, rows in report.positions:
        found.setdefault(reason, []).extend(rows[:left].tolist())
        left -= min(left, len(rows))
    return found
