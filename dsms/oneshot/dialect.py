"""What differs between the SQL dialects that plans are rendered to.

A plan becomes about ten shapes of SELECT over numbered columns, all of them plain SQL; so the text
is written directly, and what differs stands in this table.  (A general transpiler such as sqlglot
would rewrite functions by their nearest likeness, and likeness is what must not happen here: what
has not exactly our meaning is not rendered at all.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dsms.sql.types import WHOLE, Kind, Type


@dataclass(frozen=True, slots=True)
class Dialect:
    """types       names of SQL types, by kind (DECIMAL gets its digits behind)
    semi, anti  the joins that keep left rows with, without a match
    blob        a BYTES literal from hexadecimal digits
    wide_sum    a SUM over whole numbers that does not wrap, of a column text
    fail        an expression that ends the query with a message
    odd         whether a text is spelled by its bytes (which can be cast), since quotes do not keep
                it as it is
    """

    name: str
    types: dict[Kind, str]
    semi: str
    anti: str
    blob: Callable[[str], str]
    wide_sum: Callable[[str], str]
    fail: Callable[[str], str]
    odd: Callable[[str], bool] | None = None

    def type(self, t: Type) -> str:
        """The name of a type; TIMESTAMP, INTERVAL, DATE and TIME are whole numbers here, as
        everywhere inside."""
        digits = f"({t.precision},{t.scale})" if t.kind is Kind.DECIMAL else ""
        return self.types[t.kind] + digits


def _types(blob: str, text: str) -> dict[Kind, str]:
    integers = dict.fromkeys(WHOLE, "BIGINT")
    return {
        **integers,
        Kind.BOOL: "BOOLEAN",
        Kind.FLOAT: "DOUBLE",
        Kind.DECIMAL: "DECIMAL",
        Kind.STRING: text,
        Kind.BYTES: blob,
        Kind.UUID: text,
        Kind.LIST: text,
        Kind.STRUCT: text,
        Kind.NULL: "INTEGER",
    }


DUCKDB = Dialect(
    "duckdb",
    _types("BLOB", "VARCHAR"),
    "SEMI JOIN",
    "ANTI JOIN",
    lambda digits: f"from_hex('{digits}')",
    lambda x: f"sum({x})",  # a HUGEINT
    lambda message: f"error('{message}')",
)

SPARK = Dialect(
    "spark",
    _types("BINARY", "STRING"),
    "LEFT SEMI JOIN",
    "LEFT ANTI JOIN",
    lambda digits: f"X'{digits}'",
    lambda x: f"sum(CAST({x} AS DECIMAL(19,0)))",
    lambda message: f"raise_error('{message}')",
    # Spark fills in ${x}
    lambda text: not (text.isascii() and text.isprintable()) or any(c in text for c in "\\'$"),
)
