"""Functions of text and bytes; positions count code points from 1."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

from dsms.sql.expr import Call
from dsms.sql.types import STRING, list_of
from tests.oracle.functions import Failed, bounded
from tests.oracle.lists import packed
from tests.oracle.values import Value

LONGEST = 1_000_000


def _each(change: Callable[[str], str]) -> Callable[..., str]:
    return lambda call, s: "".join(new if len(new := change(c)) == 1 else c for c in s)


def _substr(call: Call, s: str, start: int, n: int | None = None) -> str:
    return "".join(c for p, c in enumerate(s, 1) if start <= p and (n is None or p < start + n))


def _replace(call: Call, s: str, old: str, new: str) -> str:
    return bounded(s.replace(old, new)) if old else s


def like(s: str, pattern: str, escape: str | None) -> bool:
    """s LIKE pattern: % is any run of code points, _ is one, the escape takes the next one
    literally."""
    parts, rest = [], iter(pattern)
    for c in rest:
        if c == escape:
            literal = next(rest, None)
            if literal is None:
                raise Failed("the pattern ends in its escape")
            parts.append(re.escape(literal))
        else:
            parts.append({"%": ".*", "_": "."}.get(c) or re.escape(c))
    return re.fullmatch("".join(parts), s, re.DOTALL) is not None


def _fill(s: str, n: int, fill: str) -> tuple[str, str]:
    """(s cut to n, what must stand beside it to make n)."""
    if n > LONGEST:
        raise Failed("too long")
    n = max(n, 0)
    short = max(0, n - len(s))
    return s[:n], (fill * short)[:short]


def _lpad(call: Call, s: str, n: int, fill: str = " ") -> str:
    text, beside = _fill(s, n, fill)
    return beside + text


def _rpad(call: Call, s: str, n: int, fill: str = " ") -> str:
    text, beside = _fill(s, n, fill)
    return text + beside


def _repeat(call: Call, s: str, n: int) -> str:
    if len(s.encode()) * max(n, 0) > LONGEST:
        raise Failed("too long")
    return s * max(n, 0)


def _split_part(call: Call, s: str, separator: str, n: int) -> str:
    if n == 0:
        raise Failed("parts count from 1")
    parts = s.split(separator) if separator else [s]
    at = n - 1 if n > 0 else len(parts) + n
    return parts[at] if 0 <= at < len(parts) else ""


def _unhex(call: Call, s: str) -> bytes:
    if re.fullmatch("(?:[0-9a-fA-F]{2})*", s) is None:
        raise Failed("no hexadecimal digits")
    return bytes.fromhex(s)


def _matches(s: str, regex: str) -> list[re.Match[str]]:
    """From the left without overlap; an empty one is none right behind another (as in RE2)."""
    found: list[re.Match[str]] = []
    at = 0
    while at <= len(s):
        one = re.compile(regex).search(s, at)
        if one is None:
            break
        if not one[0] and found and found[-1].end() == one.start():
            at = one.start() + 1
            continue
        found.append(one)
        at = one.end()
    return found


def _regexp_replace(call: Call, s: str, regex: str, to: str) -> Value:
    out, at = "", 0
    for one in _matches(s, regex):
        out += s[at : one.start()] + one.expand(to)
        at = one.end()
    return bounded(out + s[at:])


def _extract(call: Call, s: str, regex: str, group: int = 0) -> str | None:
    found = _matches(s, regex)
    return (found[0][group] or "") if found else None


def _extract_all(call: Call, s: str, regex: str, group: int = 0) -> str:
    found = [m[group] or "" for m in _matches(s, regex)]
    if len(found) > 65536:
        raise Failed("too many matches")
    return packed(found, list_of(STRING))


def _bytes(x: str | bytes) -> bytes:
    return x.encode() if isinstance(x, str) else x


TEXT: dict[str, Callable[..., Value]] = {
    "lower": _each(str.lower),
    "upper": _each(str.upper),
    "trim": lambda call, s, chars=" ": s.strip(chars),
    "ltrim": lambda call, s, chars=" ": s.lstrip(chars),
    "rtrim": lambda call, s, chars=" ": s.rstrip(chars),
    "length": lambda call, s: len(s),
    "octet_length": lambda call, s: len(_bytes(s)),
    "substr": _substr,
    "left": lambda call, s, n: s[:n],
    "right": lambda call, s, n: s[max(0, len(s) - n) :] if n >= 0 else s[-n:],
    "replace": _replace,
    "position": lambda call, part, s: s.find(part) + 1,
    "strpos": lambda call, s, part: s.find(part) + 1,
    "contains": lambda call, s, part: part in s,
    "starts_with": lambda call, s, part: s.startswith(part),
    "ends_with": lambda call, s, part: s.endswith(part),
    "like": lambda call, s, pattern: like(s, pattern, call.params[0] if call.params else None),  # type: ignore[arg-type]
    "lpad": _lpad,
    "rpad": _rpad,
    "repeat": _repeat,
    "reverse": lambda call, s: s[::-1],
    "split_part": _split_part,
    "regexp_matches": lambda call, s, regex: re.search(regex, s) is not None,
    "regexp_extract": _extract,
    "regexp_extract_all": _extract_all,
    "regexp_replace": _regexp_replace,
    "hex": lambda call, x: bounded(_bytes(x).hex().upper()),
    "unhex": _unhex,
    "md5": lambda call, x: hashlib.md5(_bytes(x)).hexdigest(),
    "sha256": lambda call, x: hashlib.sha256(_bytes(x)).hexdigest(),
}
