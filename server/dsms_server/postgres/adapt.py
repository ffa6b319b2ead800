"""Texts of PostgreSQL's clients -> texts of the language, where the two spell the same thing in
different ways: names in the schema `public`, names of types, parameters with a cast."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from dsms.sql.script import Word, words

SCHEMA = "public"
_TYPES = {
    "FLOAT8": "FLOAT", "FLOAT4": "FLOAT", "INT8": "INT", "INT4": "INT", "INT2": "INT",
    "TIMESTAMPTZ": "TIMESTAMP", "BYTEA": "BYTES", "BPCHAR": "STRING", "NAME": "STRING",
}  # a table  # fmt: skip
_LONG = {
    ("CHARACTER", "VARYING"): "STRING",
    ("TIMESTAMP", "WITH", "TIME", "ZONE"): "TIMESTAMP",
    ("TIMESTAMP", "WITHOUT", "TIME", "ZONE"): "TIMESTAMP",
}
CASTS = {  # of a parameter, and what it tells of its type: OIDs
    "BOOL": 16, "BOOLEAN": 16, "BYTEA": 17, "BYTES": 17,
    "INT8": 20, "INT4": 23, "INT2": 21, "INT": 23, "INTEGER": 23, "BIGINT": 20, "SMALLINT": 21,
    "TEXT": 25, "VARCHAR": 1043, "CHAR": 1042, "STRING": 25, "FLOAT": 701, "FLOAT8": 701,
    "FLOAT4": 700, "REAL": 700, "DOUBLE": 701, "NUMERIC": 1700, "DECIMAL": 1700,
    "TIMESTAMP": 1114, "TIMESTAMPTZ": 1184, "DATE": 1082, "INTERVAL": 1186, "UUID": 2950, "OID": 26,
}  # a table  # fmt: skip
ARRAYS = {  # of types: of their arrays
    16: 1000, 17: 1001, 20: 1016, 21: 1005, 23: 1007, 25: 1009, 26: 1028, 701: 1022, 1043: 1009,
    1082: 1182, 1184: 1185, 1700: 1231, 2950: 2951,
}  # a table  # fmt: skip
_CLOCK = r"([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?(Z|[+-]\d{2}(:?\d{2})?)?"
_INSTANT = re.compile(rf"'\d{{4}}-\d{{2}}-\d{{2}}{_CLOCK}'")


@dataclass(slots=True)
class Adapted:
    """`text`: as the engine reads it; `oids`: what casts tell of parameters, by number."""

    text: str
    oids: dict[int, int] = field(default_factory=dict)
    # places in `text` behind an edit, and by how much more is in front of them in what was sent
    _behind: list[int] = field(default_factory=lambda: [0])
    _more: list[int] = field(default_factory=lambda: [0])

    def sent(self, place: int) -> int:
        """The place in what was sent of one in `text`; both from 0 on."""
        return place + self._more[bisect_right(self._behind, place) - 1]


Edit = tuple[int, int, str]  # from, to, what stands there instead


def adapted(text: str, instants: bool = False) -> Adapted:
    """`instants`: texts that read as instants are meant as such."""
    found = list(words(text))
    oids: dict[int, int] = {}
    edits = sorted(_edits(found, oids, instants))
    made, at, parts = Adapted("", oids), 0, list[str]()
    length = 0
    for start, stop, instead in edits:
        if start < at:
            continue
        parts += [text[at:start], instead]
        length += start - at + len(instead)
        made._behind.append(length)
        made._more.append(stop - length)
        at = stop
    made.text = "".join([*parts, text[at:]])
    return made


def _edits(found: list[Word], oids: dict[int, int], instants: bool) -> Iterator[Edit]:
    upper = [word.text.upper() for word in found]
    for at, word in enumerate(found):
        if _is_schema(found, at):
            yield word.start, found[at + 1].end, ""
        elif upper[at] == ":" and upper[at + 1 : at + 2] == [":"]:
            yield from _cast(found, upper, at, oids)
        elif upper[at] == "AS":
            yield from _in_cast(found, upper, at)
        elif instants and _INSTANT.fullmatch(word.text) and upper[at - 1] not in _SAID:
            yield word.start, word.end, f"TIMESTAMP {word.text}"


_SAID = ("TIMESTAMP", "INTERVAL", "DATE", "AT", "ZONE", "TO")


def _is_schema(found: list[Word], at: int) -> bool:
    """``public.name``, but not a column of that name behind a dot."""
    text = found[at].text
    is_public = text == f'"{SCHEMA}"' or text.lower() == SCHEMA
    dotted = at > 0 and found[at - 1].text == "."
    return is_public and not dotted and at + 2 < len(found) and found[at + 1].text == "."


def _cast(found: list[Word], upper: list[str], at: int, oids: dict[int, int]) -> Iterator[Edit]:
    """``x::type`` at the first colon."""
    stop, name = _type(found, upper, at + 2)
    oid = CASTS.get(upper[at + 2]) if at + 2 < len(upper) else None
    if oid is not None and upper[stop : stop + 2] == ["[", "]"]:
        stop, oid = stop + 2, ARRAYS.get(oid, oid)
    if at >= 2 and upper[at - 2] == "$" and upper[at - 1].isdecimal() and oid is not None:
        oids.setdefault(int(upper[at - 1]), oid)
        yield found[at].start, found[stop - 1].end, ""
    elif name is not None:
        yield found[at + 2].start, found[stop - 1].end, name


def _type(found: list[Word], upper: list[str], at: int) -> tuple[int, str | None]:
    """(where the name of a type ends, what it is called here: None as it is)."""
    for long, name in _LONG.items():
        if tuple(upper[at : at + len(long)]) == long:
            return _brackets(upper, at + len(long)), name
    if upper[at : at + 2] == ["DOUBLE", "PRECISION"]:
        return at + 2, None
    known: str | None = _TYPES.get(upper[at]) if at < len(upper) else None
    return _brackets(upper, at + 1), known


def _brackets(upper: list[str], at: int) -> int:
    """Behind ``(10)`` or ``(10,2)``, if that stands here."""
    if upper[at : at + 1] != ["("] or ")" not in upper[at : at + 5]:
        return at
    return at + upper[at : at + 5].index(")") + 1


def _in_cast(found: list[Word], upper: list[str], at: int) -> Iterator[Edit]:
    """``CAST(x AS type)``: a type is what a bracket follows."""
    if at + 1 >= len(found):
        return
    stop, name = _type(found, upper, at + 1)
    if name is not None and upper[stop : stop + 1] == [")"]:
        yield found[at + 1].start, found[stop - 1].end, name
