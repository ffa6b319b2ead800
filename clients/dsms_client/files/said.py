"""Options of how a file is written, as statements say them: ``delimiter = ';'``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dsms.errors import UsageError
from dsms_client.files.options import KINDS, Options, delimiter_of, encoding_of
from dsms_client.protocol import nearest


def with_option(
    options: Options, name: str, value: str, what: str, more: tuple[str, ...] = ()
) -> Options:
    """With one more.  `what` takes it, and has `more` options of its own.  Raises DS214, DS215."""
    change = _OPTIONS.get(name)
    if change is None:
        known = ", ".join(sorted([*_OPTIONS, *more]))
        hint = nearest(name, _OPTIONS) or f"options are {known}"
        raise UsageError("DS214", f"{what} has no option {name}", hint=hint)
    return replace(options, **change(value))


def _one_of(field: str, known: tuple[str, ...]) -> Callable[[str], dict[str, Any]]:
    def change(value: str) -> dict[str, Any]:
        if value.lower() not in known:
            raise UsageError("DS215", f"{value} is none of {', '.join(known)}")
        return {field: value.lower()}

    return change


def _zone(value: str) -> dict[str, Any]:
    from dsms_client.files.times import check_zone

    check_zone(value)
    return {"zone": value}


def _time_format(value: str) -> dict[str, Any]:
    from dsms_client.files.times import compiled

    compiled(value)
    return {"time_formats": (value,)}


_OPTIONS: dict[str, Callable[[str], dict[str, Any]]] = {
    "format": _one_of("kind", KINDS),
    "delimiter": lambda value: {"delimiter": delimiter_of(value)},
    "null": lambda value: {"nulls": (value,)},
    "decimal": _one_of("decimal", (".", ",")),
    "encoding": lambda value: {"encoding": encoding_of(value)},
    "time_unit": _one_of("unit", ("s", "ms", "us", "ns")),
    "time_format": _time_format,
    "time_zone": _zone,
}
