"""Settings as PostgreSQL's clients ask for and set them: most are kept and mean nothing; what would
change how values are written can't be set to another way than the one there is."""

from __future__ import annotations

import re

from dsms.errors import UsageError
from dsms.lengths import interval_of
from dsms_server.postgres.errors import with_state

SERVER_VERSION = "15.0"
REPORTED = (  # told to the client at the beginning, and when they change
    "server_version",
    "server_encoding",
    "client_encoding",
    "application_name",
    "default_transaction_read_only",
    "in_hot_standby",
    "is_superuser",
    "session_authorization",
    "DateStyle",
    "IntervalStyle",
    "TimeZone",
    "integer_datetimes",
    "standard_conforming_strings",
)
MOST, LONGEST = 200, 4096  # settings that a session may have, characters of one
_DEFAULTS = {
    "server_version": SERVER_VERSION,
    "server_version_num": "150000",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "application_name": "",
    "default_transaction_read_only": "on",
    "default_transaction_isolation": "read committed",
    "transaction_read_only": "on",
    "transaction_isolation": "read committed",
    "transaction_deferrable": "off",
    "in_hot_standby": "off",
    "is_superuser": "off",
    "session_authorization": "dsms",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "search_path": '"$user", public',
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "block_size": "8192",
    "lc_collate": "C",
    "lc_ctype": "C",
    "lc_messages": "C",
    "escape_string_warning": "on",
    "array_nulls": "on",
    "default_table_access_method": "heap",
}
_FIXED = {  # what they can be set to
    "client_encoding": re.compile(r"utf-?8|unicode|sql_ascii|default", re.I),
    "datestyle": re.compile(r"iso(\s*,\s*\w+)?|default", re.I),
    "intervalstyle": re.compile(r"postgres|default", re.I),
    "bytea_output": re.compile(r"hex|default", re.I),
    "standard_conforming_strings": re.compile(r"on|true|1|yes|default", re.I),
}
_READ_ONLY = ("server_version", "server_version_num", "server_encoding", "integer_datetimes",
              "is_superuser", "session_authorization", "in_hot_standby")  # names  # fmt: skip
_KEEPS_ITS_NAME = ("client_encoding", "datestyle", "intervalstyle")


class Settings:
    """Those of one session, by their names in any case."""

    def __init__(self, user: str | None, database: str | None) -> None:
        self.user, self.database = user or "dsms", database or "dsms"
        self._names = {name.casefold(): name for name in _DEFAULTS}
        self._first = dict(_DEFAULTS) | {"session_authorization": self.user}
        self._values = dict(self._first)

    def __contains__(self, name: str) -> bool:
        return name.casefold() in self._names

    def get(self, name: str) -> str | None:
        """The value, as SHOW writes it."""
        return self._values.get(self._names.get(name.casefold(), name))

    def shown_name(self, name: str) -> str:
        """As it is written."""
        return self._names.get(name.casefold(), name)

    def items(self) -> list[tuple[str, str]]:
        return sorted(self._values.items(), key=lambda pair: pair[0].casefold())

    def reported(self) -> list[tuple[str, str]]:
        """What the client is told at the beginning."""
        return [(name, self._values[name]) for name in REPORTED]

    def set(self, name: str, value: str) -> tuple[str, str] | None:
        """Set it; (name, value) if the client is to be told.  Raises DS618."""
        key, value = name.casefold(), value.strip().strip("'")
        allowed = _FIXED.get(key)
        if key in _READ_ONLY or (allowed is not None and not allowed.fullmatch(value)):
            problem = UsageError("DS618", f"{name} can't be set to {value[:80]!r} here")
            raise with_state(problem, "22023" if allowed else "55P02")
        if len(value) > LONGEST or len(name) > LONGEST or len(self._values) >= MOST:
            raise UsageError("DS618", "too many settings in one session, or a value too long")
        shown = self._names.setdefault(key, name)
        if value.casefold() == "default":
            value = self._first.get(shown, "")
        elif key in _KEEPS_ITS_NAME:
            return None
        self._values[shown] = value
        return (shown, value) if shown in REPORTED else None

    def note(self, name: str, value: str) -> None:
        """What the server says by itself."""
        self._names[name.casefold()] = name
        self._values[name] = value

    def reset(self, name: str) -> tuple[str, str] | None:
        """As at the beginning; (name, value) if the client is to be told of a change.  What tells
        of the last answer stays."""
        shown = self.shown_name(name)
        if shown.startswith("dsms."):
            return None
        value = self._first.get(shown, "")
        changed = self._values.get(shown) != value
        self._values[shown] = value
        return (shown, value) if changed and shown in REPORTED else None


def seconds(text: str) -> float:
    """``5s``, ``'2 min'``; a bare number is milliseconds, as PostgreSQL has it.  Raises DS618."""
    text = text.strip()
    if re.fullmatch(r"\d{1,12}(\.\d{1,6})?", text):
        return float(text) / 1000
    found = interval_of(re.sub(r"(?<=\d)(?=[a-z])", " ", text, flags=re.I))
    if found is None or found < 0:
        raise UsageError(
            "DS618", f"{text[:40]!r} is no length of time", hint="write 500, '5s' or '2min'"
        )
    return found / 1_000_000
