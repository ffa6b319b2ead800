"""What a text asks for: what is said to PostgreSQL and means nothing or little here, what the
engine answers, what the catalog answers, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dsms.errors import DsmsError, QueryError, UsageError
from dsms.sql.script import Piece, Word, pieces, words
from dsms_server.postgres.errors import with_state

Known = Callable[[str], bool]  # whether a name is that of an object of the engine's


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement.

    verb     what it asks for: a key of `dsms_server.postgres.running.Running`
    tag      what CommandComplete says, where the answer has no number of rows
    text     of it; `start`: where that begins in what was sent
    name     of a setting, a cursor, a prepared statement or a query; None: all
    value    of a setting; or rows to be fetched (None: all there are)
    inner    of a cursor: what it is over
    """

    verb: str
    tag: str
    text: str
    start: int = 0
    name: str | None = None
    value: str | None = None
    inner: Statement | None = None


ENDS = {"COMMIT": "commit", "END": "commit", "ROLLBACK": "rollback", "ABORT": "rollback"}
_ASKED = ("SHOW", "EXPLAIN", "DESCRIBE", "LOOKUP")
_CHANGING = ("CREATE", "DROP", "ALTER", "INSERT", "UPDATE", "DELETE", "GRANT", "REVOKE", "COMMENT",
             "TRUNCATE", "MERGE", "COPY", "PREPARE", "EXECUTE", "PAUSE", "RESUME", "HEARTBEAT",
             "END", "PUNCTUATE", "CANCEL", "CLOSE", "VACUUM", "ANALYZE", "CALL",
             "DO")  # words  # fmt: skip
_NOTHING = {  # done by saying so
    "LISTEN": "LISTEN", "UNLISTEN": "UNLISTEN", "SAVEPOINT": "SAVEPOINT", "RELEASE": "RELEASE",
    "LOCK": "LOCK TABLE",
}  # a table  # fmt: skip
_CATALOG = re.compile(
    r"(?:pg_\w+|information_schema|version|current_(?:schemas?|database|catalog|user|role|setting)"
    r"|session_user|set_config|has_\w+_privilege|(?:obj|col)_description|to_reg\w+|reg(?:class|type"
    r"|proc|namespace|role)|format_type|quote_ident|inet_\w+|txid_current)",
    re.IGNORECASE,
)
_CALLED = ("version",)  # words of the catalog only in front of a bracket
_BEHIND = ("FROM", "JOIN", "STREAM", "(")


def statements(text: str, known: Known) -> Iterator[Statement]:
    """Those of a script, in order.  Raises DS103, DS105, DS627."""
    for piece in pieces(text):
        yield _statement(piece, _offset(text, piece), known)


def _offset(text: str, piece: Piece) -> int:
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: piece.line - 1]) + piece.column - 1


def _statement(piece: Piece, start: int, known: Known) -> Statement:
    found = list(words(piece.text))
    first = found[0].text.upper()
    upper = [word.text.upper() for word in found]
    made = _session(first, upper, found) or _cursor(first, upper, found, piece, start, known)
    if made is not None:
        return Statement(made.verb, made.tag, piece.text, start, made.name, made.value, made.inner)
    if first in ("SELECT", "WITH", "VALUES", "("):
        verb = "catalog" if _asks_catalog(found, known) else "ask"
        return Statement(verb, "SELECT", piece.text, start)
    if first in _ASKED:
        return Statement("ask", first, piece.text, start)
    if first == "SUBSCRIBE":
        return _subscribe(found, piece, start)
    if first in _CHANGING:
        raise refused(first, upper[1:2])
    return Statement("unknown", first, piece.text, start)


def _session(first: str, upper: list[str], found: list[Word]) -> Statement | None:
    """What sets, shows or ends something of the session."""
    match first:
        case "BEGIN" | "START":
            return Statement("begin", "BEGIN" if first == "BEGIN" else "START TRANSACTION", "")
        case "ROLLBACK" if "TO" in upper[1:4]:
            return Statement("nothing", "ROLLBACK", "")
        case "COMMIT" | "ROLLBACK" | "ABORT":
            return Statement(ENDS[first], ENDS[first].upper(), "")
        case "END" if upper[1:2] in ([], ["TRANSACTION"], ["WORK"]):
            return Statement("commit", "COMMIT", "")
        case "SET":
            return _set(upper, found)
        case "RESET":
            name = None if upper[1:2] == ["ALL"] else _name(found, 1)
            return Statement("reset", "RESET", "", name=name)
        case "SHOW":
            return _show(upper, found)
        case "DISCARD":
            return Statement("discard", f"DISCARD {' '.join(upper[1:2])}".strip(), "")
        case "DEALLOCATE":
            at = 2 if upper[1:2] == ["PREPARE"] else 1
            name = None if upper[at : at + 1] == ["ALL"] else _name(found, at)
            tag = "DEALLOCATE ALL" if name is None else "DEALLOCATE"
            return Statement("deallocate", tag, "", name=name)
        case _ if first in _NOTHING:
            return Statement("nothing", _NOTHING[first], "")
    return None


def _set(upper: list[str], found: list[Word]) -> Statement:
    at = 1
    if upper[1:2] in (["SESSION"], ["LOCAL"]) and upper[2:3] != ["CHARACTERISTICS"]:
        at = 2
    match upper[at : at + 2]:
        case ["TIME", "ZONE"]:
            return Statement("set", "SET", "", name="TimeZone", value=_value(found[at + 2 :]))
        case ["TRANSACTION", *_] | ["CHARACTERISTICS", *_] | ["SESSION", _] | ["ROLE", *_]:
            return Statement("nothing", "SET", "")
        case ["CONSTRAINTS", *_]:
            return Statement("nothing", "SET CONSTRAINTS", "")
        case ["NAMES", *_]:
            return Statement(
                "set", "SET", "", name="client_encoding", value=_value(found[at + 1 :])
            )
    mark = next((k for k in range(at + 1, len(found)) if upper[k] in ("=", "TO")), len(found))
    if mark + 1 >= len(found):
        raise QueryError("DS101", "SET takes a name, TO or =, and a value", 1, 1)
    return Statement("set", "SET", "", name=_name(found, at), value=_value(found[mark + 1 :]))


def _value(found: list[Word]) -> str:
    """``'a', b`` as ``a, b``; ``5 s`` as it stands."""
    parts = [_unquoted(word.text) for word in found]
    joined = "".join(f"{part} " if part == "," else part for part in parts)
    return joined if "," in parts else " ".join(parts)


def _show(upper: list[str], found: list[Word]) -> Statement | None:
    """SHOW of a setting; None: it is the engine's."""
    match upper[1:]:
        case ["TRANSACTION", "ISOLATION", "LEVEL"]:
            return Statement("show", "SHOW", "", name="transaction_isolation")
        case ["TIME", "ZONE"]:
            return Statement("show", "SHOW", "", name="TimeZone")
        case ["SESSION", "AUTHORIZATION"]:
            return Statement("show", "SHOW", "", name="session_authorization")
        case ["ALL"]:
            return Statement("show", "SHOW", "")
        case [one, *rest] if one not in _SHOWN and rest[:1] in ([], ["."]):
            return Statement("show", "SHOW", "", name=_name(found, 1))
    return None


_SHOWN = ("STREAMS", "TABLES", "QUERIES", "FUNCTIONS", "AGGREGATES", "WINDOWS", "SHARING",
          "ARCHIVES", "SETTINGS", "SESSIONS", "MEMORY", "USERS", "ROLES", "GRANTS",
          "QUOTAS", "SOURCES", "SINKS")  # words  # fmt: skip


def _cursor(
    first: str, upper: list[str], found: list[Word], piece: Piece, start: int, known: Known
) -> Statement | None:
    """DECLARE name CURSOR FOR ..., FETCH, MOVE, CLOSE."""
    match first:
        case "DECLARE":
            at = upper.index("FOR") if "FOR" in upper else len(upper)
            if at + 1 >= len(found) or "CURSOR" not in upper[:at]:
                raise QueryError("DS101", "DECLARE takes a name, CURSOR FOR and a query", 1, 1)
            begins = found[at + 1].start
            inner = _statement(Piece(piece.text[begins:], 1, 1, True), start + begins, known)
            return Statement("declare", "DECLARE CURSOR", "", name=_name(found, 1), inner=inner)
        case "FETCH" | "MOVE":
            return _fetch(first, upper, found)
        case "CLOSE" if upper[1:2] != ["SESSION"]:
            name = None if upper[1:2] == ["ALL"] else _name(found, 1)
            return Statement("close", "CLOSE CURSOR", "", name=name)
    return None


def _fetch(first: str, upper: list[str], found: list[Word]) -> Statement:
    """FETCH [FORWARD] [n | ALL | NEXT] [FROM | IN] name [WITH (timeout = '5 s')]."""
    rest, count = list(range(1, len(found))), "1"
    if rest and upper[rest[0]] == "FORWARD":
        rest = rest[1:]
    if rest and (upper[rest[0]] in ("ALL", "NEXT") or upper[rest[0]].isdecimal()):
        word = upper[rest[0]]
        count = "" if word == "ALL" else "1" if word == "NEXT" else word
        rest = rest[1:]
    elif rest and upper[rest[0]] in ("BACKWARD", "PRIOR", "FIRST", "LAST", "ABSOLUTE", "RELATIVE"):
        raise unknown("a cursor goes forward alone", "0A000")
    if rest and upper[rest[0]] in ("FROM", "IN"):
        rest = rest[1:]
    if not rest:
        raise QueryError("DS101", f"{first} takes the name of a cursor", 1, 1)
    if len(count) > 18:
        raise QueryError("DS106", "the number of rows is too large", 1, 1)
    inner = None
    if upper[rest[0] + 1 : rest[0] + 5] == ["WITH", "(", "TIMEOUT", "="]:
        wait = _value(found[rest[0] + 5 : -1])
        inner = Statement("timeout", "", "", value=wait)
    return Statement(first.lower(), first, "", name=_name(found, rest[0]), value=count, inner=inner)


def _subscribe(found: list[Word], piece: Piece, start: int) -> Statement:
    """SUBSCRIBE [TO] name."""
    at = 2 if len(found) > 2 and found[1].text.upper() == "TO" else 1
    if len(found) != at + 1:
        raise QueryError(
            "DS101", "SUBSCRIBE takes the name of a query", 1, 1, hint="SUBSCRIBE TO q"
        )
    return Statement("subscribe", "SUBSCRIBE", piece.text, start, _name(found, at))


def _name(found: list[Word], at: int) -> str:
    """A name as it was meant: a setting may have dots in it."""
    if at >= len(found):
        raise QueryError("DS102", "a name is missing at the end", 1, 1)
    parts = [found[at].text]
    while [w.text for w in found[at + 1 : at + 2]] == ["."] and at + 2 < len(found):
        parts, at = [*parts, found[at + 2].text], at + 2
    return ".".join(map(_unquoted, parts))


def _unquoted(text: str) -> str:
    mark = text[:1]
    quoted = mark in ("'", '"') and len(text) > 1
    return text[1:-1].replace(mark * 2, mark) if quoted else text


def _asks_catalog(found: list[Word], known: Known) -> bool:
    """Whether a query is one about what there is, and not about what flows through it."""
    texts = [word.text for word in found]
    if texts[0].upper() == "VALUES":
        return True
    asks = False
    for at, text in enumerate(texts):
        plain = _unquoted(text)
        behind = texts[at + 1] if at + 1 < len(texts) else ""
        if behind != "." and at and (texts[at - 1].upper() in ("FROM", "JOIN", ",", ".")):
            dotted = texts[at - 1] == "." and _unquoted(texts[at - 2]).lower() != "public"
            if not dotted and texts[at - 1] != "," and known(plain):
                return False
        if text[:1] == "'" or not _CATALOG.fullmatch(plain):
            continue
        if plain.lower() in _CALLED and behind != "(":
            continue
        if plain.lower() in ("version", "user") and texts[at - 1] == ".":
            continue
        asks = True
    return asks


def unknown(message: str, state: str, hint: str | None = None) -> DsmsError:
    """DS627, with its SQLSTATE."""
    return with_state(UsageError("DS627", message, hint=hint), state)


def refused(first: str, behind: list[str]) -> DsmsError:
    """DS627 for a statement that begins with these words."""
    if first == "COPY":
        return unknown(
            "this port has no COPY", "0A000", "read with SELECT; `dsms load` brings rows in"
        )
    if first in ("PREPARE", "EXECUTE"):
        return unknown(
            f"this port has no {first} statement", "0A000", "drivers prepare by the protocol"
        )
    shown = " ".join([first, *(word for word in behind if word.isalpha())])
    return unknown(
        f"this port only reads: {shown[:80]} is not taken here",
        "25006",
        "use `dsms shell` or a dsms client for statements that change something",
    )
