"""A story played in an engine: steps in, every result row out as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dsms import Engine
from dsms.errors import DsmsError
from dsms.frames import Frame
from dsms.intake.convert import to_batch


def play(engine: Engine, steps: Sequence[Sequence[Any]]) -> None:
    for step in steps:
        match step:
            case ["rows", stream, columns]:
                engine.ingest(stream, columns)
            case ["heartbeat", stream, ts]:
                engine.heartbeat(stream, ts)
            case ["end", stream]:
                engine.end(stream)
            case ["advance", ts]:
                engine.advance(ts)
            case ["sql", text]:
                engine.execute(text)
            case ["as", user, text, *refused]:
                code = outcome(engine, text, user)
                assert [code] == (refused or [None]), (text, code)
            case ["group", stream, frames]:
                play_group(engine, stream, frames)


def play_group(engine: Engine, stream: str, frames: Sequence[Sequence[Any]]) -> None:
    """Frames that wait together: of each its writer and number, or None, and columns."""
    schema = engine.runtime.inputs[stream].definition.schema
    made = [Frame(to_batch(columns, schema), client, seq) for client, seq, columns in frames]
    for report in engine.ingest_group(stream, made):
        assert not isinstance(report, DsmsError)


def outcome(engine: Engine, statement: str, user: str) -> str | None:
    """The code with which the statement is refused to that user; None: it isn't."""
    try:
        engine.execute(statement, user=user)
    except DsmsError as error:
        return error.code
    return None


def results(engine: Engine, queries: Sequence[str]) -> dict[str, list[list[str]]]:
    """Per query its result rows from number 0 on: [number, kind, instant, values]; then why it
    ended, if it has."""
    return {name: _rows(engine, name) for name in queries}


def _rows(engine: Engine, query: str) -> list[list[str]]:
    try:
        found = engine.subscribe(query, 0)
    except DsmsError as error:
        if error.code == "DS329":  # a query ON LOOKUP tells nothing
            return []
        return [["-", error.code, "-", ""]]
    out = []
    for push in found.take():
        rows = [] if push.data is None else push.data.to_pylist()
        if push.kind in ("progress", "snapshot"):
            continue
        if push.kind == "end":
            out.append(["-", "end", str(push.code), ""])
        ats = [push.at] * len(rows) if push.ats is None else push.ats.to_pylist()
        for k, (row, at) in enumerate(zip(rows, ats, strict=True)):
            out.append([str(push.seq + k), push.kind, str(at), repr(list(row.values()))])
    engine.unsubscribe(found)
    return out


def answers(engine: Engine, statement: str, user: str | None = None) -> str:
    """What a one-time statement answers that user."""
    try:
        (result,) = engine.execute(statement, user=user)
    except DsmsError as error:
        return error.code
    return repr(result.data.to_pylist())  # type: ignore[union-attr]
