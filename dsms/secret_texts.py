"""Statements as they may be shown: in logs, in errors, in the history of a shell.  Light to
import."""

from __future__ import annotations

import re

_VERB = re.compile(r"\b(?:create|alter)\b", re.IGNORECASE)
_USER = re.compile(r"\buser\b", re.IGNORECASE)
_SECRET = re.compile(r"\b(?:password|token)\s*'", re.IGNORECASE)
_TEXT = re.compile(r"'(?:[^']|'')*(?:'|$)")
_SHORTEST = 3  # characters of a text that an error may not repeat


def is_secret(text: str) -> bool:
    """Whether passwords or tokens may stand in it: it speaks of users, rightly written or not."""
    return bool(_SECRET.search(text) or (_VERB.search(text) and _USER.search(text)))


def without_secrets(text: str) -> str:
    """The text; if it may hold secrets, with *** in all its quotes."""
    return _TEXT.sub("'***'", text) if is_secret(text) else text


def hide(message: str | None, text: str) -> str | None:
    """What is said of a statement, without the texts in its quotes if they may be secrets."""
    if message is None or not is_secret(text):
        return message
    for found in sorted(
        {m.group()[1:].rstrip("'") for m in _TEXT.finditer(text)}, key=len, reverse=True
    ):
        message = message.replace(found, "***") if len(found) >= _SHORTEST else message
    return message
