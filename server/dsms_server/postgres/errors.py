"""Errors of dsms as PostgreSQL's clients know them: SQLSTATE, message, hint and place."""

from __future__ import annotations

from dsms.errors import DsmsError, brief
from dsms_server.postgres import codec

PROTOCOL, FAILED_TRANSACTION = "08P01", "25P02"
_STATES = {  # by code, or by the beginning of one
    "DS1": "42601",  # syntax_error
    "DS105": "54001",  # statement_too_complex
    "DS2": "42000",
    "DS201": "42703",  # undefined_column
    "DS202": "42702",  # ambiguous_column
    "DS203": "42P01",  # undefined_table
    "DS206": "42883",  # undefined_function
    "DS207": "42883",
    "DS208": "42804",  # datatype_mismatch
    "DS210": "42704",  # undefined_object
    "DS3": "0A000",  # feature_not_supported
    "DS4": "55000",  # object_not_in_prerequisite_state
    "DS401": "42P01",
    "DS5": "22000",  # data_exception
    "DS54": "58000",
    "DS55": "58030",  # io_error
    "DS60": PROTOCOL,
    "DS605": "28P01",  # invalid_password
    "DS610": "57014",  # query_canceled
    "DS616": "57014",
    "DS617": "42P02",  # undefined_parameter
    "DS618": "22023",  # invalid_parameter_value
    "DS62": "53400",  # configuration_limit_exceeded
    "DS621": "53300",  # too_many_connections
    "DS625": "53200",  # out_of_memory
    "DS626": PROTOCOL,
    "DS627": "25006",  # read_only_sql_transaction
    "DS628": "42601",
    "DS63": "53400",
    "DS641": "57P01",  # admin_shutdown
    "DS647": "57P03",  # cannot_connect_now
    "DS66": "42704",
    "DS662": "57P01",
    "DS670": "42501",  # insufficient_privilege
    "DS67": "42704",
    "DS68": "53400",
    "DS7": "22000",
    "DS701": "22012",  # division_by_zero
    "DS702": "22003",  # numeric_value_out_of_range
    "DS703": "22P02",  # invalid_text_representation
    "DS706": "22003",
}


def sqlstate(problem: DsmsError) -> str:
    """That of the problem, unless it has one of its own (`state`)."""
    own = getattr(problem, "state", None)
    if own is not None:
        return str(own)
    for length in (5, 4, 3):
        found = _STATES.get(problem.code[:length])
        if found is not None:
            return found
    return "XX000"  # internal_error


def with_state(problem: DsmsError, state: str) -> DsmsError:
    """The problem, with an SQLSTATE that says more than its code does."""
    problem.state = state  # type: ignore[attr-defined]
    return problem


def response(problem: DsmsError, position: int | None = None, fatal: bool = False) -> bytes:
    """An ErrorResponse; `position`: of a character of the statement, from 1 on."""
    severity = "FATAL" if fatal else "ERROR"
    named = [
        ("S", severity),
        ("V", severity),
        ("C", sqlstate(problem)),
        ("M", f"{problem.code}: {brief(problem.message)}"),
    ]
    if problem.hint:
        named.append(("H", brief(problem.hint)))
    if position is not None:
        named.append(("P", str(position)))
    return codec.fields(b"E", named)


def notice(text: str, severity: str = "NOTICE") -> bytes:
    """A NoticeResponse."""
    named = (("S", severity), ("V", severity), ("C", "00000"), ("M", brief(text)))
    return codec.fields(b"N", named)


def position(problem: DsmsError, text: str) -> int | None:
    """Where line and column of the problem are in the text, from 1 on."""
    if problem.line is None or problem.column is None:
        return None
    lines = text.split("\n")
    if not 1 <= problem.line <= len(lines):
        return None
    return sum(len(line) + 1 for line in lines[: problem.line - 1]) + problem.column
