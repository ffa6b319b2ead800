"""Words of other SQL dialects and streaming systems: where one stands, the form of this language
that does it.

foreign.txt lists them by section, that is by the place where the word would mean what it means
elsewhere:

    [join]       before JOIN                      [create]    behind CREATE or DROP
    [clause]     behind the items of FROM         [column]    in the declaration of a column
    [behind]     there, too, but never alone      [function]  a name before (
    [operator]   between values                   [type]      in CAST, or behind a column's name
    [statement]  first of all                     [bare]      a name that needs no (
    [show]       behind SHOW                      [relation]  a name in FROM
    [drop]       behind DROP, before [create]     [with]      behind WITH
    [explain]    between EXPLAIN and SELECT       [side]      before SEMI or ANTI
    [ours]       before JOIN, known here, too     [asof]      before JOIN and LEFT JOIN alone
    [behind value]  behind an item of SELECT, as [operator]

A word of [join], [clause], [ours] or [asof] that this grammar would take for an alias, as in
`s LATEST JOIN r`, is refused there (DS110), and so is one of [operator] in `SELECT v ISNULL`: the
query would run and mean something else.  In quotes, or behind AS, it is an alias like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import resources

from dsms.sql import ast
from dsms.sql.literals import bad
from dsms.sql.script import Piece, Word, words

_COMPARES = ("=", "<", ">", "<=", ">=", "<>")
_SIDES = ("LEFT", "RIGHT", "FULL")
_JOINS = ("JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "SEMI", "ANTI", "NATURAL")
_BEHIND = ("join", "clause", "ours", "asof")  # a relation
# operators of other systems that are as good as names
_NAMES = ("ANY", "SOME", "ALL", "EXCLUDE", "REPLACE", "PLACING")
# between values, where the parse stops at what follows: they were taken for an alias
_INFIX = ("RLIKE", "REGEXP", "GLOB", "SIMILAR", "COLLATE", "OVERLAPS", "XOR")
_ONLY_NULL = (
    "it is NULL where nothing, or no such value, is at the path: COALESCE(JSON_VALUE(...), x)"
)
_OF_JSON = {
    "RETURNING": "write JSON_VALUE(j, '$.a' AS INT)",
    **dict.fromkeys(("NULL", "ERROR", "DEFAULT"), _ONLY_NULL),
}


@cache
def sections() -> dict[str, dict[str, str]]:
    """By section the hint of each word, upper case."""
    text = resources.files("dsms.sql").joinpath("foreign.txt").read_text(encoding="utf-8")
    _, *parts = text.split("\n[")
    return {
        name: dict(_entries(body)) for name, _, body in (part.partition("]\n") for part in parts)
    }


def _entries(body: str) -> Iterator[tuple[str, str]]:
    named: list[str] = []
    hint: list[str] = []
    for line in [*body.splitlines(), "END"]:
        if line.startswith(" "):
            hint.append(line.strip())
        elif line and hint:
            yield from ((word, " ".join(hint)) for word in named)
            named, hint = line.split(), []
        elif line:
            named += line.split()


def instead(word: str, *names: str) -> str | None:
    """What is written here for a word of these sections."""
    known = sections()
    return next((hint for name in names if (hint := known[name].get(word.upper()))), None)


def check_aliases(aliases: Iterable[ast.Ident], piece: Piece, stored: bool = False) -> None:
    """Raise DS110 if one of a statement's aliases is, without AS, a join word, or a clause word or
    an operator (but in what is stored) of other systems."""
    named = {
        (a.pos.line, a.pos.column): a.text
        for a in aliases
        if (not stored if _operator(a.text) else instead(a.text, *_BEHIND))
    }
    if not named:
        return
    found = [Word("", 0, 0), *words(piece.text), Word("", 0, 0)]
    for before, word, after in zip(found, found[1:], found[2:], strict=False):
        place = piece.place(word.start)
        if place in named and before.text.upper() != "AS" and not word.text.startswith('"'):
            _check(word.text, after.text, ast.Pos(*place))


def alias_of(node: ast.Node) -> ast.Ident | None:
    """The alias of a relation in FROM that is a join or clause word elsewhere, or the one of an
    item of SELECT that is an operator."""
    if isinstance(node, ast.SelectItem):
        named = node.alias
        return named if named is not None and _operator(named.text) else None
    named = node.alias if isinstance(node, ast.TableRef | ast.SubqueryRef | ast.UnnestRef) else None
    return named if named is not None and instead(named.text, *_BEHIND) else None


def _operator(word: str) -> str | None:
    """The hint of a word that would be an operator behind a value."""
    return instead(word, "operator", "behind value") if word.upper() not in _NAMES else None


def _check(word: str, after: str, pos: ast.Pos) -> None:
    as_alias = f"; as an alias it is written AS {word}"
    if after.upper() in _JOINS and (hint := instead(word, "join")):
        raise bad("DS110", pos, f"{word} JOIN is not known here", hint + as_alias)
    if after.upper() in _JOINS and (hint := instead(word, "ours", "asof")):
        raise bad("DS110", pos, f"{word} {after} is not known here", hint + as_alias)
    if hint := _operator(word) or instead(word, "clause"):
        raise bad("DS110", pos, f"{word} is not known here", hint + as_alias)


def foreign_word(word: str, before: Sequence[str], in_from: bool) -> tuple[int, str, str] | None:
    """For a parse that stopped at `word` behind the words `before`: which word is foreign (0 the
    failing one, 1 the one before it, ...), what it is, and its hint.  `in_from`: a join or another
    clause of the query may follow here."""
    if found := _join_before(before):
        return found
    last, earlier = (before[-1].upper(), before[-2].upper()) if len(before) > 1 else ("", "")
    if last in ("INNER", "LEFT", "RIGHT", "FULL") and (hint := instead(word, "join")):
        return 0, f"{last} {word} JOIN", hint
    if last in (*_JOINS, "OUTER") and (hint := instead(word, "asof")):
        return 0, f"{last} {word} JOIN", hint
    if word.upper() in ("SEMI", "ANTI") and (found := _sided(word, last, earlier)):
        return found
    if in_from and earlier in ("FROM", "JOIN", ","):
        return _named_function(before[-1]) if word == "(" else None
    outer = last == "OUTER" and earlier in _JOINS  # which is known
    if (
        in_from
        and not outer
        and earlier != "AS"
        and (hint := instead(last, "clause", "behind", "join"))
    ):
        return 1, before[-1], hint
    if earlier in ("SELECT", "DISTINCT") and (hint := instead(last, "bare")):
        return 1, before[-1], hint
    if not before:
        return _found(word, "statement")
    if (earlier, last) == ("WITH", "RECURSIVE"):
        return 1, before[-1], instead("CONNECT", "behind") or ""
    if last == "WITH" and (found := _found(word, "with")):
        return found
    if word.upper() in _OF_JSON and _called(before) in ("JSON_VALUE", "JSON_EXISTS"):
        return 0, f"{word} in a call", _OF_JSON[word.upper()]
    begun = before[0].upper()
    if begun == "EXPLAIN" and len(before) <= 3 and (hint := instead(last, "explain")):
        return 1, before[-1], hint
    if begun in ("CREATE", "DROP") and len(before) == 1:
        return _found(word, *(("drop", "create") if begun == "DROP" else ("create",)))
    if begun == "CREATE" and before[1].upper() != "QUERY":
        return (
            (1, before[-1], sections()["column"][last])
            if last == "WATERMARK"
            else _found(word, "column")
        )
    if word.upper() == "FOR" and not in_from and _in_call(before):
        return 0, word, "arguments are separated by commas, for example SUBSTR(text, start, n)"
    if begun in ("SHOW", "ALTER") or (begun == "INSERT" and len(before) == 1):
        return None
    if (
        earlier not in ("AS", ".")
        and (last in ("DIV", "MOD") or (last in _INFIX and earlier not in ("SELECT", ",", "(")))
        and (hint := instead(last, "operator"))
    ):
        return 1, before[-1], hint
    joining = ("join", "asof") if in_from or last in _JOINS else ()
    return _quantified(word.upper(), last, earlier) or _found(
        word, "clause", "behind", "operator", *joining
    )


def _sided(word: str, last: str, earlier: str) -> tuple[int, str, str] | None:
    """`RIGHT SEMI JOIN`, `LEFT OUTER ANTI JOIN`."""
    side = f"{earlier} {last}" if last == "OUTER" else last
    hint = instead(side.split()[0], "side")
    return (0, f"{side} {word.upper()} JOIN", hint) if hint else None


def _in_call(before: Sequence[str]) -> bool:
    """`SUBSTRING(a FROM 2`."""
    at = _opened(before)
    return bool(at) and not {"SELECT", "FROM"} & {before[at - 1].upper(), before[-1].upper()}


def _called(before: Sequence[str]) -> str:
    """What stands before that bracket, in capitals."""
    at = _opened(before)
    return before[at - 1].upper() if at else ""


def _opened(before: Sequence[str]) -> int:
    """Where the last bracket is that is not closed; 0: there is none."""
    opened: list[int] = []
    for at, word in enumerate(before):
        if word == "(":
            opened.append(at)
        elif word == ")" and opened:
            opened.pop()
    return opened[-1] if opened else 0


def condition_there(word: str, before: Sequence[str]) -> tuple[str, str] | None:
    """For ON or USING that fails behind these words: what is wrong and a hint, where the join to
    which it belongs has its condition already."""
    if word.upper() not in ("ON", "USING"):
        return None
    depth, said = 0, False
    for at in range(len(before) - 1, -1, -1):
        text = before[at].upper()
        depth += (text in (")", "]")) - (text in ("(", "["))
        if depth < 0 or (depth == 0 and text in ("FROM", ",")):
            break
        if depth == 0 and text == "JOIN":
            return _twice(word.upper(), _kind(before[:at]), said)
        said = said or (depth == 0 and text in ("ON", "USING"))
    return None


def _kind(before: Sequence[str]) -> str:
    """`NATURAL LEFT JOIN`, of the words in front of JOIN."""
    first = len(before)
    while first and before[first - 1].upper() in (*_JOINS, "OUTER"):
        first -= 1
    return " ".join([*before[first:], "JOIN"]).upper()


def _twice(word: str, kind: str, said: bool) -> tuple[str, str] | None:
    first, _, rest = kind.partition(" ")
    if said:
        return "a join has one condition", "put all of it behind ON, joined by AND"
    if first != "NATURAL":
        return None
    how = "USING (column)" if word == "USING" else "ON condition"
    hint = f"it compares the columns that both sides have; to say which, write {rest} r {how}"
    return f"{kind} takes no condition", hint


def _join_before(before: Sequence[str]) -> tuple[int, str, str] | None:
    """The last `... NATURAL JOIN r`, which perhaps should have gone on in another way."""
    for at in range(len(before) - 2, 0, -1):
        if before[at].upper() == "OUTER" and before[at - 1].upper() in _SIDES:
            continue
        hint = instead(before[at], "join") if before[at + 1].upper() in _JOINS else None
        if hint and before[at - 1].upper() not in ("AS", "FROM", "JOIN", ",", "."):
            return len(before) - at, before[at], hint
    return None


def _named_function(name: str) -> tuple[int, str, str] | None:
    """`FROM read_csv(`."""
    hint = instead(name, "function", "bare", "clause", "join")
    return (1, name, hint) if hint else None


def _quantified(word: str, last: str, earlier: str) -> tuple[int, str, str] | None:
    """`= ANY (SELECT`, `> ALL (SELECT`."""
    if word == "SELECT" and last == "(" and earlier in ("ANY", "SOME"):
        return 2, earlier, instead(earlier, "operator") or ""
    return (
        (0, word, instead(word, "operator") or "") if word == "ALL" and last in _COMPARES else None
    )


def _found(word: str, *names: str) -> tuple[int, str, str] | None:
    hint = None if word.upper() == "ALL" else instead(word, *names)
    return (0, word, hint) if hint else None
