"""Text of others on a terminal: what would steer it is shown instead of obeyed.

A row may hold escape sequences that rewrite what was shown before, set the window's title or type
for the user, and marks of direction that make a line read otherwise than it is.
"""

from __future__ import annotations

import io
import re
import sys
from typing import TextIO

# C0, DEL and C1; marks of direction and isolates; line and paragraph separators; halves of pairs;
# the byte order mark
_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str, keep: str = "") -> str:
    """`text` with control characters escaped (``\\x1b``, ``\\n``, ``\\u202e``), but those in
    `keep`."""
    return _STEERING.sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), text)


def prose(text: str) -> str:
    """As `visible`, for messages, which have lines."""
    return visible(text, keep="\n\t")


def for_screen(text: str, out: TextIO) -> str:
    """`text` as it is, unless `out` is a terminal."""
    return prose(text) if out.isatty() else text


def _escaped(character: str) -> str:
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


def write_utf8() -> None:
    """Data is UTF-8 whatever the locale says; on a terminal, what it can't show is replaced."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        on_screen = sys.stdout.isatty()
        sys.stdout.reconfigure(
            encoding=None if on_screen else "utf-8", errors="replace" if on_screen else "strict"
        )
