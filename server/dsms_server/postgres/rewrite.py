"""Queries about PostgreSQL's catalog -> texts that DuckDB runs over `catalog.sql`.

Both read nearly the same language.  What differs is put otherwise word by word: schemas in front of
names, types whose values are names (regclass), operators in brackets, patterns that match a part,
what a session says of itself, and parameters, which become constants."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dsms.errors import UsageError
from dsms.forms.scalars import Instant, Length
from dsms.sql.script import words
from dsms_server.postgres.settings import Settings

# what a name given for one of these, or its number, is
_REGS = {
    "regclass": "_regclass", "regtype": "_regtype", "regproc": "_regproc",
    "regprocedure": "_regproc", "regnamespace": "_regnamespace", "regrole": "_regrole",
}  # a table  # fmt: skip
_TYPES = {
    "name": "varchar",
    "xid": "bigint",
    "_text": "varchar[]",
    "cstring": "varchar",
    "int2vector": "bigint[]",
    "oidvector": "bigint[]",
    "aclitem": "varchar",
}
_RENAMED = {"json_build_object": "json_object", "jsonb_build_object": "json_object"}
_USERS = ("current_user", "session_user", "current_role", "user")


@dataclass(slots=True)
class Session:
    """What a session says of itself."""

    settings: Settings
    number: int


@dataclass(slots=True)
class _Words:
    """Words read, and words made: each with the space in front of it."""

    texts: list[str]
    gaps: list[str]
    at: int = 0
    made: list[tuple[str, str]] = field(default_factory=list)

    def next(self, ahead: int = 0) -> str:
        """In small letters, unless it is quoted; nothing behind the end."""
        at = self.at + ahead
        text = self.texts[at] if at < len(self.texts) else ""
        return text if text[:1] in ("'", '"') else text.lower()

    def put(self, text: str, skip: int = 1) -> None:
        """Write that in place of the next words."""
        self.made.append((self.gaps[self.at], text))
        self.at += skip

    def follows(self, *wanted: str, ahead: int = 0) -> bool:
        return all(self.next(ahead + k) == text for k, text in enumerate(wanted))


def rewritten(text: str, session: Session, values: Sequence[Any] = ()) -> str:
    """`values`: of $1, $2, ...  Raises DS617 for one that is not given."""
    found = list(words(text))
    ends = [0, *(word.end for word in found)]
    gaps = [text[end : word.start] for end, word in zip(ends, found, strict=False)]
    read = _Words([word.text for word in found], gaps)
    while read.at < len(found):
        _step(read, session, values)
    return "".join(gap + word for gap, word in read.made)


def _step(read: _Words, session: Session, values: Sequence[Any]) -> None:
    word, before = read.next(), read.made[-1][1].lower() if read.made else ""
    if read.follows("pg_catalog", ".") or read.follows('"pg_catalog"', "."):
        read.at += 2
        read.gaps[read.at : read.at + 1] = [read.gaps[read.at - 2]]
    elif read.follows("information_schema", "."):
        read.put("information_schema_" + read.next(2).strip('"'), 3)
    elif read.follows("operator", "("):
        _operator(read)
    elif word == "collate":
        read.at += 2 + 2 * (read.next(2) == ".")
    elif word == "$" and read.next(1).isdecimal():
        read.put(constant(_value(values, int(read.next(1)))), 2)
        _pattern(read)
    elif read.follows(":", ":"):
        _cast(read)
    elif word == "as" and (end := _named_in_cast(read)) is not None:
        _end_cast(read, end)
    elif word[:1] == "'":
        read.put(word)
        _pattern(read)
    elif word in _RENAMED and read.next(1) == "(":
        read.put(_RENAMED[word])
    elif before != "." and (said := _said(read, word, session, values)) is not None:
        read.put(*said)
    else:
        read.put(read.texts[read.at])


def _operator(read: _Words) -> None:
    """``OPERATOR(pg_catalog.~)``."""
    at, parts = 2, []
    while read.next(at) not in (")", ""):
        parts.append(read.next(at))
        at += 1
    read.put("".join(parts).removeprefix("pg_catalog."), at + 1)


def _pattern(read: _Words) -> None:
    """A constant behind ~ is a pattern that a part of the text meets; DuckDB's meets all of it."""
    if len(read.made) > 1 and read.made[-2][1] in ("e", "E") and not read.made[-1][0]:
        read.made[-2:] = [(read.made[-2][0], "E" + read.made[-1][1])]
    gap, text = read.made[-1]
    sign = ""
    for _, one in reversed(read.made[-4:-1]):
        if one not in ("~", "!", "*"):
            break
        sign = one + sign
    if sign in ("~", "!~"):
        read.made[-1] = gap, f"('(?s:.*(?:' || {text} || ').*)')"


def _cast(read: _Words) -> None:
    """``::type``, of a type that DuckDB does not know."""
    skip = 2 + 2 * (read.next(2).strip('"') == "pg_catalog" and read.next(3) == ".")
    name = read.next(skip).strip('"')
    if name in _REGS:
        _as_reg(read, _REGS[name])
        read.at += skip + 1
        return
    read.put("::")
    read.at += skip - 1
    if read.at < len(read.texts):
        read.put(_TYPES.get(name) or read.texts[read.at])


def _named_in_cast(read: _Words) -> int | None:
    """Where ``as regclass )``, of a CAST, ends; None: that does not stand here."""
    skip = 1 + 2 * (read.next(1) == "pg_catalog" and read.next(2) == ".")
    name = read.next(skip)
    known = name in _REGS or name in _TYPES
    return skip + 1 if known and read.next(skip + 1) == ")" else None


def _end_cast(read: _Words, end: int) -> None:
    """``CAST(x AS regclass)``, as a call of a function; another type by the name it has here."""
    name, at, depth = read.next(end - 1), len(read.made), 1
    if name in _TYPES:
        read.put(f"as {_TYPES[name]})", end + 1)
        return
    while at > 0 and depth:
        at -= 1
        depth += (read.made[at][1] == ")") - (read.made[at][1] == "(")
    inside = "".join(gap + word for gap, word in read.made[at + 1 :]).strip()
    gap = read.made[at - 1][0] if at else ""
    read.made[max(0, at - 1) :] = [(gap, f"{_REGS[name]}({inside})")]
    read.at += end + 1


def _as_reg(read: _Words, function: str) -> None:
    """What stands in front of the cast, as the argument of a function."""
    start = _operand(read.made)
    inside = "".join(gap + word for gap, word in read.made[start:]).lstrip()
    gap = read.made[start][0] if start < len(read.made) else " "
    read.made[start:] = [(gap, f"{function}({inside})")]


def _operand(made: list[tuple[str, str]]) -> int:
    """Where what a cast at the end would be of begins."""
    at, depth = len(made) - 1, 0
    while at > 0:
        depth += (made[at][1] == ")") - (made[at][1] == "(")
        if depth <= 0:
            break
        at -= 1
    if at >= 2 and made[at - 1][1] == "::":
        return _operand(made[: at - 1])
    if at >= 1 and made[at][1] == "(" and _NAME.fullmatch(made[at - 1][1].lower()):
        at -= 1
    while at >= 2 and made[at - 1][1] == ".":
        at -= 2
    return max(at, 0)


_NAME = re.compile(r"(?!(?:in|and|or|not|select|as|on|then|else|when|any)$)[a-z_]\w*")


def _said(
    read: _Words, word: str, session: Session, values: Sequence[Any]
) -> tuple[str, int] | None:
    """What the session says in place of the words here, and how many they are."""
    settings, called = session.settings, read.next(1) == "("
    empty = called and read.next(2) == ")"
    match word:
        case "version" if empty:
            return constant(version(settings)), 3
        case "current_database" if empty:
            return "'dsms'", 3
        case "current_catalog":
            return "'dsms'", 1
        case "current_schema":
            return "'public'", 3 if empty else 1
        case "current_schemas" if called and read.next(3) == ")":
            return "['pg_catalog', 'public']", 4
        case "pg_backend_pid" if empty:
            return str(session.number), 3
        case "current_setting" | "set_config" if called and read.next(2)[:1] in ("'", "$"):
            return _setting(read, word, settings, values)
        case "current_setting" if called and read.next(3) == "." and read.next(5) == ")":
            name = f"{read.next(2)}.{read.next(4)}"
            return f"(SELECT k.setting FROM {_settings(settings)} k WHERE k.name = {name})", 6
        case "pg_settings" if read.next(1) != ".":
            return _settings(settings), 1
        case "any" if called and read.next(2)[:2] == "'{" and read.next(3) in (")", ":"):
            items = [item.strip('" ') for item in read.next(2)[2:-2].split(",")]
            return f"any ({constant(items)}", 3
        case _ if word in _USERS and not called and read.next(1) != ".":
            return constant(settings.user), 1
    return None


def _setting(read: _Words, word: str, settings: Settings, values: Sequence[Any]) -> tuple[str, int]:
    """``current_setting('a' [, true])``, ``set_config('a', 'b', false)``."""
    end = 2
    while read.next(end) not in (")", ""):
        end += 1
    name = read.next(2)[1:-1]
    if read.next(2) == "$" and read.next(3).isdecimal():
        name = str(_value(values, int(read.next(3))))
    if word == "set_config" and read.next(4)[:1] == "'":
        value: str | None = read.next(4)[1:-1].replace("''", "'")
        settings.set(name, value or "")
    else:
        value = settings.get(name)
    return constant(value), end + 1


def _settings(settings: Settings) -> str:
    """All of them, as a relation."""
    rows = ", ".join(f"({constant(name)}, {constant(value)})" for name, value in settings.items())
    more = (
        "NULL::VARCHAR AS unit, '' AS category, '' AS short_desc, 'user' AS context, "
        "'string' AS vartype, 'default' AS source, setting AS boot_val, setting AS reset_val"
    )
    return f"(SELECT name, setting, {more} FROM (VALUES {rows}) v(name, setting))"


def version(settings: Settings) -> str:
    """As drivers look for it: they want to know what they may ask."""
    return f"PostgreSQL {settings.get('server_version')} (dsms)"


def _value(values: Sequence[Any], number: int) -> Any:
    if not 1 <= number <= len(values):
        raise UsageError("DS617", f"no value is given for ${number}")
    return values[number - 1]


def constant(value: Any) -> str:
    """A value as DuckDB reads it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case str():
            return "'" + value.replace("\0", "").replace("'", "''") + "'"
        case bytes():
            return "'" + "".join(f"\\x{byte:02x}" for byte in value) + "'::blob"
        case list():
            return "[" + ", ".join(map(constant, value)) + "]"
        case Instant(us):
            return f"make_timestamp({us})"
        case Length(us):
            return f"to_microseconds({us})"
        case int() if value < 0:
            return f"({value})"
        case float():
            return f"'{value!r}'::double"
        case _:
            return str(value)
