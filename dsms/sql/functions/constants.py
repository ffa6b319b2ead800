"""Checks of arguments that must be constant: units, time zones, patterns."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from dsms.lengths import LENGTH_UNITS
from dsms.sql.expr import Expr, Lit
from dsms.sql.functions.formats import read_problem, written_problem
from dsms.sql.functions.groups import groups_of
from dsms.sql.functions.paths import path_problem
from dsms.sql.functions.times import EPOCH_UNITS, UNITS
from dsms.sql.signatures import FunctionError
from dsms.sql.suggest import nearest
from dsms.sql.types import INTERVAL
from dsms.sql.zones import zone_of

ZONES = "write a name such as 'America/New_York', or an offset such as '+05:30'"


def _near(word: str, known: Iterable[str]) -> list[str]:
    """The name that a word is a slip of, if there is one; of a long text difflib would build a
    table."""
    return difflib.get_close_matches(word, known, 1) if len(word) < 200 else []


def unit_name(text: str) -> str:
    """A unit as listed: lower case, without the plural's s."""
    low = text.strip().lower()
    return low[:-1] if len(low) > 2 and low.endswith("s") and low not in EPOCH_UNITS else low


def _one_of(what: str, names: Iterable[str]) -> Callable[[str], str | None]:
    known = tuple(names)

    def check(text: str) -> str | None:
        name = unit_name(text)
        if name in known:
            return None
        near = _near(name, known)
        hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(known)}"
        return f"unknown {what} '{text}'; {hint}"

    return check


@lru_cache(maxsize=64)
def zone_problem(text: str) -> tuple[str, str] | None:
    """What is wrong with the name of a time zone, and a hint; None for one that there is."""
    try:
        zone_of(text)
    except Exception:  # zoneinfo raises half a dozen kinds for bad keys
        near = nearest(text, _zones())
        hint = f"did you mean '{near}'?" if near else ZONES
        return f"unknown time zone '{text}'", hint
    return None


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    from zoneinfo import available_timezones

    return frozenset(available_timezones())


def _check_zone(text: str, position: int) -> None:
    found = zone_problem(text)
    if found is not None:
        raise FunctionError("zone", found[0], position=position, hint=found[1])


def _regex(text: str) -> str | None:
    try:
        pc.match_substring_regex(pa.array([""]), text)
    except pa.ArrowInvalid as error:
        return f"'{text}' is no regular expression: {str(error).split(': ', 1)[-1]}"
    return None


_CHECKS: dict[str, Callable[[str], str | None]] = {
    "unit": _one_of("unit", UNITS),
    "length_unit": _one_of("unit", LENGTH_UNITS),
    "epoch_unit": _one_of("unit", EPOCH_UNITS),
    "regex": _regex,
    "path": path_problem,
    "written": written_problem,
    "read": read_problem,
    "text": lambda text: None,
}


def check_constants(
    fn: str, constants: Mapping[int, str], args: Sequence[Expr], params: tuple[object, ...]
) -> None:
    """Raise FunctionError `constant` unless the arguments at those positions are constants that
    pass their checks."""
    for at, what in constants.items():
        if at >= len(args):
            continue
        arg = args[at]
        if not isinstance(arg, Lit) or not isinstance(arg.value, str):
            raise FunctionError(
                "constant", f"argument {at + 1} of {fn} must be a constant text", position=at
            )
        if what == "zone":
            _check_zone(arg.value, at)
            continue
        complaint = _CHECKS[what](arg.value)
        if complaint:
            raise FunctionError("constant", complaint, position=at)
    if fn == "date_trunc" and args[1].type == INTERVAL and isinstance(args[0], Lit):
        complaint = _CHECKS["length_unit"](str(args[0].value))
        if complaint:
            raise FunctionError(
                "constant", f"{complaint} (a length of time has no longer ones)", position=0
            )
    if fn == "like":
        _check_like(args[1], params)
    if fn in ("regexp_extract", "regexp_extract_all") and isinstance(args[1], Lit):
        _check_group(fn, str(args[1].value), args[2] if len(args) > 2 else None)
    if fn == "regexp_replace":
        _check_replacement(*(a.value for a in args[1:] if isinstance(a, Lit)))


def _check_replacement(regex: object, to: object) -> None:
    """A replacement may name only groups that there are."""
    try:
        pc.replace_substring_regex(pa.array([""]), str(regex), str(to))
    except pa.ArrowInvalid as error:
        why = str(error).split(": ", 1)[-1]
        raise FunctionError(
            "constant", f"'{to}' can't replace '{regex}': {why}", position=2
        ) from None


def _check_group(fn: str, regex: str, group: Expr | None) -> None:
    """A group is one that there is, and no more than RE2 can keep apart."""
    most = groups_of(regex)
    number = group.value if isinstance(group, Lit) else None
    if group is not None and (not isinstance(number, int) or not 0 <= number <= most):
        what = "is no constant" if number is None else f"{number} is none of it"
        raise FunctionError(
            "constant",
            f"{fn} needs a group from 0 (the whole) to {most} of '{regex}', and this {what}",
            position=2,
        )


def _check_like(pattern: Expr, params: tuple[object, ...]) -> None:
    escape = params[0] if params else None
    if escape is not None and not (isinstance(escape, str) and len(escape) == 1):
        raise FunctionError("constant", "ESCAPE takes one character", position=2)
    if escape is not None and isinstance(pattern, Lit) and isinstance(pattern.value, str):
        rest = pattern.value.replace(escape * 2, "")
        if rest.endswith(escape):
            raise FunctionError(
                "constant", f"the pattern ends in its escape '{escape}'", position=1
            )
