"""Values that a Bind message gives for $1, $2, ...: texts or binary, by their types' OIDs -> Python
values as the engine takes them."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from dsms.errors import UsageError
from dsms.forms.scalars import Instant, Length
from dsms.instants import instant
from dsms.lengths import interval_of
from dsms_server.postgres.binaries import EPOCH, EPOCH_DAYS
from dsms_server.postgres.codec import Body
from dsms_server.postgres.types import ALIASES, BY_ARRAY, BY_OID, PgType

DAY = 86_400_000_000  # µs
MOST_DIGITS = 1000  # groups of a numeric
_CLOCK = re.compile(r"([+-]?)(\d+):(\d{2})(?::(\d{2})(?:\.(\d{1,6})\d*)?)?")
_DAYS = re.compile(r"([+-]?\d+) days?\b")
_OCTAL = re.compile(rb"\\(\\|[0-3][0-7]{2})")


def value_of(raw: bytes | None, oid: int, binary: bool, number: int) -> Any:
    """The value of parameter `number`.  Raises DS618 for what can't be read."""
    if raw is None:
        return None
    try:
        item = BY_ARRAY.get(oid)
        if item is not None:
            return _binary_list(raw) if binary else _text_list(_decoded(raw), item)
        pg = ALIASES.get(oid) or BY_OID.get(oid)
        if not binary:
            return _TEXTS.get(pg.name, str)(_decoded(raw)) if pg else _decoded(raw)
        if pg is None:
            raise ValueError(f"no values of type {oid} are taken in binary")
        return _BINARIES[pg.name](raw)
    except UsageError as problem:
        raise _wrong(number, problem.message) from None
    except (ValueError, struct.error, ArithmeticError, KeyError) as problem:
        raise _wrong(number, str(problem)) from None


def _wrong(number: int, why: str) -> UsageError:
    return UsageError("DS618", f"the value for ${number} can't be read: {why}")


def _decoded(raw: bytes) -> str:
    return raw.decode()


# ---------------------------------------------------------------- texts


def _bool(text: str) -> bool:
    word = text.strip().lower()
    if word in ("t", "true", "1", "on", "yes", "y"):
        return True
    if word in ("f", "false", "0", "off", "no", "n"):
        return False
    raise ValueError(f"{text[:40]!r} is no bool")


def _instant(text: str) -> Instant:
    found = instant(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is no instant")
    return Instant(found)


def _length(text: str) -> Length:
    """``1 day 02:03:04.5``, as drivers send it, or a length as the language writes it."""
    if clock := _CLOCK.search(text):
        sign, hours, minutes, seconds, part = clock.groups()
        micros = (int(hours) * 60 + int(minutes)) * 60 + int(seconds or 0)
        micros = micros * 1_000_000 + int((part or "").ljust(6, "0"))
        days = _DAYS.search(text)
        return Length((-micros if sign == "-" else micros) + int(days[1] if days else 0) * DAY)
    if days := _DAYS.fullmatch(text.strip()):
        return Length(int(days[1]) * DAY)
    found = interval_of(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} is no length of time")
    return Length(found)


def _bytes(text: str) -> bytes:
    if text.startswith("\\x"):
        return bytes.fromhex(text[2:])
    plain = text.encode()
    return _OCTAL.sub(
        lambda found: b"\\" if found[1] == b"\\" else bytes([int(found[1], 8)]), plain
    )


def _integer(text: str) -> int:
    if len(text) > 40:
        raise ValueError("the number is too long")
    return int(text)


_TEXTS: dict[str, Callable[[str], Any]] = {
    "bool": _bool,
    "int2": _integer,
    "int4": _integer,
    "int8": _integer,
    "oid": _integer,
    "float4": float,
    "float8": float,
    "numeric": lambda text: _number(Decimal(text)),
    "bytea": _bytes,
    "timestamp": _instant,
    "timestamptz": _instant,
    "date": _instant,
    "interval": _length,
}


def _number(value: Decimal) -> Decimal | float:
    """A DECIMAL; a float where it has more digits than one holds, or is none."""
    digits, exponent = value.as_tuple().digits, value.as_tuple().exponent
    if not isinstance(exponent, int):
        return float(value)
    return value if max(len(digits) + max(exponent, 0), -exponent) <= 38 else float(value)


def _text_list(text: str, item: PgType) -> list[Any]:
    """``{1,NULL,"a b"}``."""
    read = _TEXTS.get(item.name, str)
    return [None if part is None else read(part) for part in _parts(text)]


_PART = re.compile(r'"((?:[^"\\]|\\.)*)"|([^",{}\\]+)', re.DOTALL)


def _parts(text: str) -> list[str | None]:
    inside = text.strip()
    if not (inside.startswith("{") and inside.endswith("}")):
        raise ValueError("a list is written {1,2}")
    inside, at, found = inside[1:-1], 0, list[str | None]()
    while at < len(inside):
        part = _PART.match(inside, at)
        if part is None:
            raise ValueError("a list is written {1,2}, and holds no lists")
        quoted, plain = part.groups()
        if quoted is not None:
            found.append(re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
        else:
            found.append(None if plain.strip().upper() == "NULL" else plain.strip())
        at = part.end()
        if at < len(inside):
            if inside[at] != "," or at + 1 == len(inside):
                raise ValueError("a list is written {1,2}")
            at += 1
    return found


# ---------------------------------------------------------------- binary


def _unpacked(form: str) -> Callable[[bytes], Any]:
    wanted = struct.Struct(form)
    return lambda raw: wanted.unpack(raw)[0]


def _binary_instant(raw: bytes) -> Instant:
    return Instant(struct.unpack(">q", raw)[0] + EPOCH)


def _binary_date(raw: bytes) -> Instant:
    return Instant((struct.unpack(">i", raw)[0] + EPOCH_DAYS) * DAY)


def _binary_length(raw: bytes) -> Length:
    micros, days, months = struct.unpack(">qii", raw)
    if months:
        raise ValueError("a month has no length")
    return Length(micros + days * DAY)


def _numeric(raw: bytes) -> Decimal | float:
    body = Body(raw)
    count, weight = body.short(), struct.unpack(">h", body.raw(2))[0]
    sign, _ = body.short(), body.short()
    if sign in (0xC000, 0xD000, 0xF000):
        return {0xC000: float("nan"), 0xD000: float("inf"), 0xF000: float("-inf")}[sign]
    if count > MOST_DIGITS:
        raise ValueError("the number is too long")
    groups = [body.short() for _ in range(count)]
    whole = int("".join(f"{group:04d}" for group in groups) or "0")
    places = 4 * (weight + 1 - count)
    found = Decimal(whole).scaleb(places) if whole else Decimal(0)
    return _number(-found if sign == 0x4000 else found)


def _uuid(raw: bytes) -> str:
    if len(raw) != 16:
        raise ValueError("a UUID has 16 bytes")
    hexes = raw.hex()
    return "-".join((hexes[:8], hexes[8:12], hexes[12:16], hexes[16:20], hexes[20:]))


_BINARIES: dict[str, Callable[[bytes], Any]] = {
    "bool": lambda raw: bool(struct.unpack(">B", raw)[0]),
    "int2": _unpacked(">h"),
    "int4": _unpacked(">i"),
    "int8": _unpacked(">q"),
    "oid": _unpacked(">I"),
    "float4": _unpacked(">f"),
    "float8": _unpacked(">d"),
    "numeric": _numeric,
    "text": _decoded,
    "json": _decoded,
    "bytea": bytes,
    "timestamp": _binary_instant,
    "timestamptz": _binary_instant,
    "date": _binary_date,
    "interval": _binary_length,
    "uuid": _uuid,
}


def _binary_list(raw: bytes) -> list[Any]:
    body = Body(raw)
    dimensions, _, oid = body.long(), body.long(), body.unsigned()
    if dimensions == 0:
        return []
    if dimensions != 1:
        raise ValueError("a list holds no lists")
    count, _ = body.long(), body.long()
    if not 0 <= count <= len(raw):  # an item takes at least the bytes of its length
        raise ValueError("a list with a wrong number of items")
    items = [body.value() for _ in range(count)]
    return [value_of(item, oid, True, 0) for item in items]
