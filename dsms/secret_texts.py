"""What may not be shown: in logs, in errors, in the history of a shell.  Light to import."""

from __future__ import annotations

import re
from collections.abc import Iterator

_VERB = re.compile(r"\b(?:create|alter)\b", re.IGNORECASE)
_USER = re.compile(r"\buser\b", re.IGNORECASE)
_SECRET = re.compile(
    r"\b(?:password|token)\s*['\"]"
    # where it is read from is none
    r"|\bpassword\s*(?:=(?!\s*(?:env|file)\s*\()|\bto\b|\bfor\b)|\bidentified\b",
    re.IGNORECASE,
)
# of sources and sinks: options that hold one, and URLs
_CONNECTOR = re.compile(r"\b(?:source|sink)\b", re.IGNORECASE)
_OPTION = re.compile(
    r"(?:password|secret|token|passwd|key)\w{0,20}\"?\s*=\s*'|://[^/@\s':]*:[^/@\s']+@",
    re.IGNORECASE,
)
_WORDS = (
    "password",
    "token",
    "identified",
    "user",
    "source",
    "sink",
)  # without these there is none
# of other systems: all that follows may be one
_LOGIN = re.compile(r"(\s*(?:connect|login|auth)\b).*", re.IGNORECASE | re.DOTALL)
# what may hide a secret: strings, comments and quoted names, whether they are closed or not
_QUOTED = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))
      | (?P<text>'(?:[^']|'')*(?:'|\Z))
      | (?P<name>"(?:[^"]|"")*(?:"|\Z))
      | (?P<said>\b(?:password|token)(?:\s+for\s+[^\s=]+)?(?:\s*=\s*|\s+to\s+|\s+))
        (?P<word>(?:(?!--|/\*)[^\s;'"(),])+)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_TEXT = re.compile(r"'(?:[^']|'')*(?:'|\Z)")
_STATE = re.compile(r"[(,]\s*state\s*=\s*\Z", re.IGNORECASE)
_SIZE = re.compile(r"'\s*\d{1,15}\s*[kmgt]?i?b?\s*'", re.IGNORECASE)
_OF_USER = re.compile(
    r"\b(?:create|alter)\s+user\b|\bset\s+password\b|\bidentified\b", re.IGNORECASE
)
_SHORTEST = 3  # characters of a text that an error may not repeat


def is_secret(text: str) -> bool:
    """Whether passwords or tokens may stand in it: it speaks of users, rightly written or not."""
    if text.isascii():  # other letters may stand for these, too
        low = text.lower()  # a long text is looked through sooner
        if not any(word in low for word in _WORDS):
            return _LOGIN.match(text) is not None
    return bool(
        _SECRET.search(text)
        or (_VERB.search(text) and _USER.search(text))
        or _LOGIN.match(text)
        or (_CONNECTOR.search(text) and _OPTION.search(text))
    )


def without_secrets(text: str) -> str:
    """The text; if it may hold secrets, with *** in all its quotes and comments, and in place of
    what follows PASSWORD and TOKEN."""
    if not is_secret(text):
        return text
    if login := _LOGIN.match(text):
        return f"{login[1]} ***"
    words, end = bool(_OF_USER.search(text)), _end(text)

    def shown(found: re.Match[str]) -> str:
        match found.lastgroup:
            case "comment":
                return "--" if found.group().startswith("--") else "/**/"
            case "text":
                return found.group() if _is_quota(found) else "'***'"
            case "name":
                return '"***"' if _may_be_secret(found) else found.group()
            case _:
                return found["said"] + ("***" if words else found["word"])

    return _QUOTED.sub(shown, text[:end]) + ("" if end == len(text) else '"***"')


def _is_quota(text: re.Match[str]) -> bool:
    """``state = '64 MB'``, which is none."""
    before = text.string[max(0, text.start() - 40) : text.start()]
    return bool(_STATE.search(before) and _SIZE.fullmatch(text.group()))


def _end(text: str) -> int:
    """Where a quoted name begins that holds a quote: who has set it wrongly may mean the rest as a
    secret.  Else where the text ends."""
    names = (found for found in _QUOTED.finditer(text) if found.lastgroup == "name")
    return next((found.start() for found in names if "'" in found.group()), len(text))


def _may_be_secret(name: re.Match[str]) -> bool:
    """Of a quoted name: it stands where a secret should, or is not closed."""
    before = name.string[: name.start()].rstrip().casefold()
    inside = name.group()
    closed = len(inside) > 1 and inside.endswith('"')
    return not closed or before.endswith(("password", "token"))


def hide(message: str | None, text: str) -> str | None:
    """What is said of a statement, without the texts in its quotes if they may be secrets."""
    if message is None or not is_secret(text):
        return message
    for found in sorted(set(_texts(text)), key=len, reverse=True):
        message = message.replace(found, "***") if len(found) >= _SHORTEST else message
    return message


def _texts(text: str) -> Iterator[str]:
    for plain in _TEXT.finditer(text):  # as they stand, wherever comments and names end
        yield plain.group()[1:].rstrip("'")
    for found in _QUOTED.finditer(text):
        match found.lastgroup:
            case "text":
                yield found.group()[1:].rstrip("'")
            case "name" if _may_be_secret(found):
                yield found.group()[1:].rstrip('"')
            case "word" if _OF_USER.search(text) and not _NAMED.fullmatch(found["word"]):
                yield found["word"]


_NAMED = re.compile(r"(?:if|not|exists|add|drop|password|token|user|quota|with)", re.IGNORECASE)
