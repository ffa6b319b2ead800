"""The operators and conditionals: exact meaning of each, by canonical name (`Call.fn`)."""

from __future__ import annotations

from dsms.sql.functions.rules import (
    ADD_DECIMALS,
    ANY_TO_BOOL,
    CASE,
    COMPARE,
    CONCAT,
    IN_LIST,
    MOD_DECIMALS,
    MUL_DECIMALS,
    NULLIF,
    SAME_DECIMAL,
)
from dsms.sql.signatures import Function, texts

_OVERFLOW = "A result outside the type is an error of that row."
_ORDER = (
    "Numbers by value (-0.0 = 0.0, NaN = NaN and above all), text by code point, bytes by "
    "byte, false < true."
)

OPERATORS = (
    Function(
        "add",
        f"x + y. {_OVERFLOW} FLOAT as IEEE 754. DECIMAL keeps the larger scale, exactly. "
        "TIMESTAMP + INTERVAL must stay in years 0001 to 9999; DATE + INTERVAL is a TIMESTAMP, "
        "DATE + INT so many days later, DATE + TIME the TIMESTAMP of both. TIME + INTERVAL goes "
        "around the clock: 23:00 + 2 h is 01:00.",
        texts(
            "INT, INT -> INT",
            ADD_DECIMALS,
            "FLOAT, FLOAT -> FLOAT",
            "INTERVAL, INTERVAL -> INTERVAL",
            "TIMESTAMP, INTERVAL -> TIMESTAMP",
            "INTERVAL, TIMESTAMP -> TIMESTAMP",
            "DATE, INT -> DATE",
            "INT, DATE -> DATE",
            "DATE, TIME -> TIMESTAMP",
            "TIME, DATE -> TIMESTAMP",
            "TIME, INTERVAL -> TIME",
            "INTERVAL, TIME -> TIME",
        ),
    ),
    Function(
        "sub",
        f"x - y. {_OVERFLOW} As add; TIMESTAMP - TIMESTAMP is the length between them (negative "
        "if x is earlier), and so is TIME - TIME; DATE - DATE is a number of days.",
        texts(
            "INT, INT -> INT",
            ADD_DECIMALS,
            "FLOAT, FLOAT -> FLOAT",
            "TIMESTAMP, INTERVAL -> TIMESTAMP",
            "TIMESTAMP, TIMESTAMP -> INTERVAL",
            "INTERVAL, INTERVAL -> INTERVAL",
            "DATE, DATE -> INT",
            "DATE, INT -> DATE",
            "TIME, INTERVAL -> TIME",
            "TIME, TIME -> INTERVAL",
        ),
    ),
    Function(
        "mul",
        f"x * y. {_OVERFLOW} DECIMAL has the sum of the scales, exactly. INTERVAL * FLOAT rounds "
        "to the microsecond, half to even; a NaN or infinite factor is an error of that row.",
        texts(
            "INT, INT -> INT",
            MUL_DECIMALS,
            "FLOAT, FLOAT -> FLOAT",
            "INTERVAL, INT -> INTERVAL",
            "INT, INTERVAL -> INTERVAL",
            "INTERVAL, FLOAT -> INTERVAL",
            "FLOAT, INTERVAL -> INTERVAL",
        ),
    ),
    Function(
        "div",
        "x / y. A zero divisor is an error of that row (also 0.0). INT / INT and INTERVAL / INT "
        "truncate toward zero; DECIMALs are divided as FLOATs (cast the result for a scale), "
        "INTERVAL / INTERVAL too, as microseconds.",
        texts(
            "INT, INT -> INT",
            "FLOAT, FLOAT -> FLOAT",
            "INTERVAL, INT -> INTERVAL",
            "INTERVAL, INTERVAL -> FLOAT",
        ),
    ),
    Function(
        "mod",
        "x % y, the remainder of the division truncated toward zero: it has the sign of x. A zero "
        "divisor is an error of that row. FLOAT as C's fmod; DECIMAL exactly, at the larger scale.",
        texts("INT, INT -> INT", MOD_DECIMALS, "FLOAT, FLOAT -> FLOAT",
              "INTERVAL, INTERVAL -> INTERVAL"),
    ),
    Function(
        "neg",
        f"-x. {_OVERFLOW}",
        texts("INT -> INT", SAME_DECIMAL, "FLOAT -> FLOAT", "INTERVAL -> INTERVAL"),
    ),
    Function(
        "concat",
        "x || y || ...: one text (or byte string) after the other. If one is text, the others are "
        "cast to STRING.",
        texts("STRING, STRING... -> STRING", "BYTES, BYTES... -> BYTES", CONCAT),
    ),
    Function("eq",
             f"x = y. {_ORDER} INT and FLOAT as FLOATs, DECIMALs exactly whatever "
             "their scales.", (COMPARE,)),
    Function("ne", "x <> y: not (x = y).", (COMPARE,)),
    Function("lt", f"x < y. {_ORDER}", (COMPARE,)),
    Function("le", "x <= y: x < y or x = y.", (COMPARE,)),
    Function("gt", "x > y: y < x.", (COMPARE,)),
    Function("ge", "x >= y: y <= x.", (COMPARE,)),
    Function(
        "distinct_from",
        "x IS DISTINCT FROM y: as <>, but NULL is equal to NULL and to nothing else.",
        (COMPARE,),
        nulls="never NULL",
    ),
    Function("not_distinct_from", "Not (x IS DISTINCT FROM y).", (COMPARE,), nulls="never NULL"),
    Function(
        "and",
        "False if one argument is false, else NULL if one is NULL, else true. Where the arguments "
        "before already say false, errors of a later one do not count.",
        texts("BOOL, BOOL... -> BOOL"),
        nulls="three-valued",
    ),
    Function(
        "or",
        "True if one argument is true, else NULL if one is NULL, else false. Where the arguments "
        "before already say true, errors of a later one do not count.",
        texts("BOOL, BOOL... -> BOOL"),
        nulls="three-valued",
    ),
    Function("not", "True for false, false for true.", texts("BOOL -> BOOL")),
    Function("is_null", "x IS NULL (NaN is not NULL).", (ANY_TO_BOOL,), nulls="never NULL"),
    Function("is_not_null", "x IS NOT NULL.", (ANY_TO_BOOL,), nulls="never NULL"),
    Function(
        "in",
        "x IN (a, b, ...), args x, a, b, ...: true if x = one of them, else NULL if x or one of "
        "them is NULL, else false.",
        (IN_LIST,),
        nulls="three-valued",
    ),
    Function(
        "case",
        "args condition1, value1, condition2, value2, ..., otherwise: the value of the first "
        "condition that is true, else the last. Errors count only in what the row needs: the "
        "conditions up to the true one, and its value.",
        (CASE,),
        nulls="a NULL condition is not true; a NULL value is passed on",
    ),
    Function(
        "coalesce",
        "The first argument that is not NULL; NULL if all are. Errors count only in the arguments "
        "looked at.",
        texts("T... -> T"),
        aliases=("ifnull", "nvl"),
        nulls="skips NULLs",
    ),
    Function("nullif", "NULL if x = y, else x.", (NULLIF,), nulls="x if y is NULL"),
    Function(
        "greatest",
        "The largest of the arguments that are not NULL (0.0 for -0.0). " + _ORDER,
        texts("T... -> T"),
        nulls="skips NULLs",
    ),
    Function(
        "least",
        "The smallest of the arguments that are not NULL (0.0 for -0.0).",
        texts("T... -> T"),
        nulls="skips NULLs",
    ),
)  # a table  # fmt: skip

SHORT = (
    Function(
        "if",
        "if(c, a, b): CASE WHEN c THEN a ELSE b END.",
        texts("BOOL, T, T -> T"),
        aliases=("iif", "iff"),
        nulls="b if c is NULL",
    ),
)
