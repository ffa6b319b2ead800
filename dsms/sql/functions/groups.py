"""Groups of regular expressions (RE2's syntax): how many there are, and the same expression with
one of them alone."""

from __future__ import annotations

import re

NAME = "x"  # of the one group that is left
_NAMED = re.compile(r"\(\?P?<\w+>")


def groups_of(regex: str) -> int:
    """How many groups a valid expression has."""
    return _scanned(regex, 0)[1]


def one_group(regex: str, group: int) -> str:
    """The expression in which that group, from 1 on, is the only one, or (0) the whole is, by the
    name NAME."""
    text = _scanned(regex, group)[0]
    return text if group else f"(?P<{NAME}>{text})"


def _scanned(regex: str, group: int) -> tuple[str, int]:
    out, at, count = [], 0, 0
    while at < len(regex):
        size = 1
        match regex[at]:
            case "\\":
                size = _escape(regex, at)
            case "[":
                size = _class(regex, at)
            case "(":
                named = _NAMED.match(regex, at)
                if named is not None or regex[at + 1 : at + 2] != "?":
                    count += 1
                    out.append(f"(?P<{NAME}>" if count == group else "(?:")
                    at += 1 if named is None else len(named[0])
                    continue
        out.append(regex[at : at + size])
        at += size
    return "".join(out), count


def _escape(regex: str, at: int) -> int:
    """The length of what begins with a backslash."""
    if regex[at + 1 : at + 2] != "Q":
        return 2
    end = regex.find("\\E", at + 2)
    return (len(regex) if end < 0 else end + 2) - at


def _class(regex: str, start: int) -> int:
    """The length of ``[...]``."""
    at = start + 1 + (regex[start + 1 : start + 2] == "^")
    first = at
    while at < len(regex):
        if regex[at] == "\\":
            at += 2
        elif regex.startswith("[:", at) and ":]" in regex[at:]:
            at = regex.index(":]", at) + 2
        elif regex[at] == "]" and at > first:
            return at + 1 - start
        else:
            at += 1
    return at - start
