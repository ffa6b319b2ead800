"""Every code of a query that parses and is refused, in one place: DS2xx names and types, DS3xx rules of the language.

A code is stable: programs match on it.  `tests/test_rules.py` holds a snippet that produces each of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.suggest import hint as nearest_hint

CODES: dict[str, str] = {
    # names
    "DS201": "unknown column",
    "DS202": "ambiguous column",
    "DS203": "unknown stream, table or query",
    "DS204": "unknown name before the dot",
    "DS205": "the same name twice in FROM",
    "DS206": "unknown function",
    "DS213": "the name is taken",
    "DS216": "the wrong kind of object",
    "DS219": "position outside of the select list",
    "DS222": "unknown time zone",
    # types
    "DS207": "no such function for these arguments",
    "DS208": "types that can't be compared or combined",
    "DS209": "a condition that is not BOOL",
    "DS210": "unknown type",
    "DS211": "wrong arguments of a type",
    "DS217": "wrong number of columns or values",
    "DS218": "a value that does not fit its column",
    # definitions
    "DS212": "duplicate column",
    "DS214": "unknown option",
    "DS215": "wrong value of an option",
    "DS223": "TIMESTAMP BY a column of the wrong type",
    "DS224": "UNIT missing or out of place",
    "DS225": "LATE INTO a stream that does not fit",
    "DS226": "PRIMARY KEY said twice or naming a column twice",
    "DS227": "a duration that must be positive, or has no fixed length",
    "DS228": "a clause for event time on a stream without it",
    # rules: aggregates and blocks
    "DS301": "an aggregate where none may stand",
    "DS302": "an aggregate inside an aggregate",
    "DS303": "a column that is neither grouped nor aggregated",
    "DS304": "* where it has no meaning",
    "DS332": "ORDER BY something that DISTINCT or a set operation hides",
    # rules: windows
    "DS305": "a window on a table",
    "DS306": "a window over a result that is not append-only",
    "DS307": "an empty window",
    "DS308": "a SLIDE that does not fit its window",
    "DS309": "two different SLIDEs",
    "DS310": "RANGE and SLIDE without a usable common measure",
    "DS311": "restore without one SLIDE on all windows",
    "DS312": "Wstream-restore",
    "DS313": "UNTIL that reaches past the start of the window",
    "DS314": "INTERNAL windows with DISTINCT",
    "DS315": "INTERNAL windows with negation",
    "DS316": "INTERNAL windows mixed with windows whose rows leave unpredictably",
    "DS317": "a query-level WINDOW that meets no stream, or one that has its window",
    # rules: queries
    "DS318": "ORDER BY or LIMIT on a continuous query",
    "DS319": "ORDER BY or LIMIT inside of a query",
    "DS320": "a subquery where none can be evaluated",
    "DS321": "a scalar subquery",
    "DS322": "a correlated subquery where correlation is not possible",
    "DS323": "a non-retroactive table on the preserved side of an outer join",
    "DS324": "a non-retroactive table without a stream",
    "DS325": "a persistent query over a query",
    "DS327": "Wstream where it has no meaning",
    "DS328": "an output function inside of a query",
    "DS329": "ON LOOKUP where it has no meaning, or LOOKUP of a query without it",
    "DS331": "an aggregate over sub-windows in a query without them",
    # rules: archives
    "DS390": "reading the archive of something that has none",
    "DS391": "an archive where none can be read",
    "DS392": "a window that reaches back further than the archive keeps rows",
}


def error(code: str, message: str, at: ast.Node | ast.Pos | None, hint: str | None = None) -> QueryError:
    """The error of that code at a node's place."""
    assert code in CODES, code
    pos = at if isinstance(at, ast.Pos) else None if at is None else at.pos
    if pos is None or pos.line == 0:
        return QueryError(code, message, hint=hint)
    return QueryError(code, message, pos.line, pos.column, hint)


def suggest(name: str, known: Iterable[str], what: str) -> str | None:
    """A hint: the nearest known name, and all of them when they are few.  `what` names them, e.g. "columns"."""
    return nearest_hint(name, list(dict.fromkeys(known)), what)
