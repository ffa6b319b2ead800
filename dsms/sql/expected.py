"""The tokens that the parser would have accepted, in words a user knows."""

from __future__ import annotations

from collections.abc import Set

_LISTED = 9
# fmt: off
_STARTS = frozenset((  # what an expression may begin with
    "NAME", "QUOTED", "INT", "FLOAT", "STRING", "BYTES", "NULL", "TRUE", "FALSE", "CASE", "CAST",
    "EXISTS", "NOT",
    "LPAR", "LSQB", "NO_ITEMS", "ARRAY_OF", "MINUS", "PLUS", "INTERVAL", "TIMESTAMP", "DATE",
    "TYPED", "LBRACE", "DECIMAL", "LEFT", "RIGHT", "WSTREAM",
))
_OPERATORS = frozenset((
    "PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "CONCAT", "COMPARE", "EQUAL", "AND", "OR", "IS",
    "IN", "LIKE", "ILIKE", "ARROW", "AT_TIME_ZONE",
    "BETWEEN", "NOT", "ESCAPE", "LSQB",
))
_OUTPUTS = frozenset((
    "ISTREAM", "DSTREAM", "RSTREAM", "ISTREAM_RESTORE", "RSTREAM_RESTORE", "WSTREAM_RESTORE",
))
# fmt: on
_WORDS = {
    "NAME": "a name",
    "STRING": "a 'string'",
    "BYTES": "X'bytes'",
    "INT": "a whole number",
    "FLOAT": "a number",
    "TIME_UNIT": "a unit of time (s, min, h, DAYS, ...)",
    "ATTACHED": "a duration (10 SECONDS)",
    "COMPARE": "a comparison",
    "LPAR": "(",
    "RPAR": ")",
    "LSQB": "a window in [ ]",
    "NO_ITEMS": "[]",
    "RSQB": "]",
    "COMMA": "a comma",
    "DOT": "a dot",
    "EQUAL": "=",
    "ARROW": "->>",
    "EVERY_LENGTH": "EVERY",
    "UNTIL_STOP": "UNTIL",
    "INTERNAL_INSIDE": "INTERNAL",
    "SLIDE_LENGTH": "SLIDE",
    "ALIGN_TO": "ALIGN TO",
    "TIME_OF": "TIME ZONE",
    "FIRST_ROWS": "FIRST",
    "SAMPLE_SHARE": "SAMPLE",
    "WITHIN_SPAN": "WITHIN",
    "SKIP_PAST_LAST": "SKIP PAST LAST",
    "LBRACE": "{",
    "RBRACE": "}",
    "COLON": ":",
    "TYPED": "TIME or UUID with a 'string'",
    "UPTO": "UPTO with an instant",
    "OUT_OF_100": "PERCENT",
    "PLUS": "+",
    "MINUS": "-",
    "STAR": "*",
    "SLASH": "/",
    "PERCENT": "%",
    "CONCAT": "||",
    "ALIGN": "ALIGN TO",
    "CURRENT_ROW": "CURRENT ROW",
    "FRAME_RANGE": "RANGE",
    "GROUP": "GROUP BY",
    "IDLE": "IDLE TIMEOUT",
    "MAX": "MAX FUTURE",
    "ORDER": "ORDER BY",
    "PARTITION": "PARTITION BY",
    "TIME": "TIME ZONE",
    "VALID": "VALID UNTIL",
}
_FIRST = ("COMMA", "RPAR", "RSQB", "LPAR", "LSQB", "TIME_UNIT", "NAME")


def expectation(accepts: Set[str]) -> str:
    """``expected a comma, ) or FROM``; empty if the list would say nothing."""
    left, phrases = set(accepts), []
    left -= {"QUOTED", "SEMICOLON", "PARAMETER"}
    if {"CREATE", "DROP", "SHOW"} <= left:
        return "expected a statement (SELECT, CREATE, DROP, INSERT, EXPLAIN, SHOW, ...)"
    ends = "$END" in left
    left.discard("$END")
    if {"INT", "STRING", "CASE"} <= left:
        left -= _STARTS | _OUTPUTS
        phrases.append("an expression")
    elif {"PLUS", "SLASH"} <= left:
        left -= _OPERATORS | {"NAME" if "AS" in left else "", "LPAR", "DOT"}
        phrases.append("an operator")
    if {"INT", "FLOAT", "ATTACHED"} <= left:
        left -= {"INT", "FLOAT", "ATTACHED", "INTERVAL"}
        phrases.append("a duration (10 SECONDS)")
    left = {name for name in left if not name.startswith("__")}
    named = [_WORDS.get(name) or name.replace("_", "-") for name in sorted(left, key=_rank)]
    phrases = [*dict.fromkeys(named), *phrases, *(["the end of the statement"] if ends else [])]
    return _joined(phrases)


def _rank(name: str) -> tuple[int, str]:
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)


def _joined(phrases: list[str]) -> str:
    if not phrases:
        return ""
    if len(phrases) > _LISTED:
        return f"expected {', '.join(phrases[:_LISTED])}, ..."
    *most, last = phrases
    return f"expected {', '.join(most)} or {last}" if most else f"expected {last}"
