"""``dsms://user:password@host:port/?option=value``: where a server is and who asks, in one text."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from dsms.errors import UsageError
from dsms_client.protocol import DEFAULT_PORT, nearest

SCHEME = "dsms"
_HOW = "write dsms://user@host:7654/?tls=yes"


def is_url(text: str) -> bool:
    """Whether it is meant for one, and not the name of a host."""
    return "://" in text


def parse_url(url: str) -> tuple[str, int, dict[str, Any]]:
    """Host, port and options of `dsms_client.connect`; what is not said is not there.

    Raises UsageError DS619, which repeats no password, and DS640 for a certificate that can't be
    read."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _wrong("its host or its port is none") from None
    if parts.scheme != SCHEME:
        raise _wrong(f"it begins with {parts.scheme}://, and not with {SCHEME}://")
    if parts.path not in ("", "/") or parts.fragment:
        raise _wrong("a server has no parts that a path or a # could name")
    shown = {"user": parts.username, "password": parts.password}
    options: dict[str, Any] = {k: unquote(v) for k, v in shown.items() if v}
    for name, text in parse_qsl(parts.query, keep_blank_values=True):
        if name not in _READ:
            raise _wrong(f"it has no option `{name}`", nearest(name, _READ))
        if name in options:
            raise _wrong(f"`{name}` is said twice")
        options[name] = _READ[name](name, text)
    return host or "127.0.0.1", port or DEFAULT_PORT, options


def _wrong(why: str, hint: str | None = None) -> UsageError:
    return UsageError("DS619", f"this is no address of a server: {why}", hint=hint or _HOW)


def _text(name: str, text: str) -> str:
    if not text:
        raise _wrong(f"`{name}` is empty")
    return text


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise _wrong(f"`{name}` is no number of seconds")
    return seconds


def _form(name: str, text: str) -> str:
    if text not in ("auto", "rows", "arrow"):
        raise _wrong(f"`{name}` is auto, rows or arrow")
    return text


def _tls(name: str, text: str) -> bool | ssl.SSLContext:
    """yes, no, or the file of a certificate that signs those to be trusted."""
    word = text.lower()
    if word in ("yes", "true", "1", "on"):
        return True
    if word in ("no", "false", "0", "off"):
        return False
    try:
        return ssl.create_default_context(cafile=_text(name, text))
    except (OSError, ssl.SSLError) as problem:
        raise UsageError("DS640", f"cannot use {text}: {problem}") from None


_READ: dict[str, Callable[[str, str], Any]] = {
    "tls": _tls,
    "token": _text,
    "user": _text,
    "password": _text,
    "client": _text,
    "data": _form,
    "connect_seconds": _seconds,
    "reconnect_seconds": _seconds,
}
