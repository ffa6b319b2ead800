"""What a declaration may not say."""

from __future__ import annotations

RULES: list[tuple[str, str, str, str | None]] = [
    ("DS212", "CREATE STREAM z (a INT, ^A FLOAT)", "declared twice", None),
    ("DS212", "INSERT INTO limits (sym, ^sym) VALUES ('a', 'b')", "named twice", None),
    ("DS212", "UPDATE limits SET top = 1, ^top = 2", "set twice", None),
    (
        "DS214",
        "CREATE QUERY q AS SELECT 1 WITH (^stragety = upa)",
        "unknown option",
        "did you mean strategy?",
    ),
    ("DS214", "CREATE STREAM z (a INT) WITH (^strategy = upa)", "unknown option", "description"),
    (
        "DS215",
        "CREATE QUERY q AS SELECT 1 WITH (^strategy = fast)",
        "upa or direct or nt",
        "'fast'",
    ),
    (
        "DS214",
        "CREATE TABLE z (a INT) WITH (^strategy = upa)",
        "unknown option",
        "a table takes no options",
    ),
    (
        "DS235",
        "CREATE STREAM z (a STRING DEFAULT ^upper('a'))",
        "the DEFAULT of a is no constant",
        "write a literal",
    ),
    (
        "DS234",
        "CREATE STREAM z (a INT, b INT AS (a + 1), c INT AS (^b + 1))",
        "`b` is computed itself",
        "what it is made of",
    ),
    ("DS234", "CREATE STREAM ^z (b INT AS (1))", "all columns of z are computed", "rows bring"),
    (
        "DS223",
        "CREATE STREAM z (a FLOAT) TIMESTAMP BY (a ^* 2) AS t",
        "needs a TIMESTAMP or an INT",
        "UNIT",
    ),
    ("DS215", "CREATE STREAM z (a INT) WITH (^description = 5)", "a text", "5"),
    ("DS215", "SELECT 1 WITH (^optimize = 5)", "TRUE or FALSE", "5"),
    ("DS215", "SELECT 1 WITH (^partitions = 0)", "at least 1", "0"),
    (
        "DS223",
        "CREATE STREAM z (a STRING) TIMESTAMP BY ^a",
        "needs a TIMESTAMP or INT column",
        None,
    ),
    (
        "DS224",
        "CREATE STREAM z (a INT) TIMESTAMP BY ^a",
        "needs a UNIT, and none is given",
        "UNIT s",
    ),
    (
        "DS224",
        "CREATE STREAM z (a TIMESTAMP) TIMESTAMP BY ^a UNIT s",
        "whose unit is known",
        "leave UNIT out",
    ),
    (
        "DS225",
        "CREATE STREAM z (t TIMESTAMP) TIMESTAMP BY t LATE INTO ^trades",
        "(TIMESTAMP), and trades has",
        None,
    ),
    ("DS226", "CREATE TABLE z (a INT, PRIMARY KEY (a, ^a))", "names `a` twice", None),
    ("DS227", "CREATE STREAM z (a INT) RETAIN ^0 s", "RETAIN must be positive", "10 SECONDS"),
    (
        "DS227",
        "SELECT * FROM trades [RANGE 1 YEAR UNTIL ^1 MONTH AGO SLIDE 1 DAY]",
        "needs a fixed length",
        "DAY",
    ),
    ("DS227", "SELECT * FROM trades [RANGE ^1 MONTH]", "needs a SLIDE", "SLIDE"),
    ("DS228", "CREATE STREAM z (a INT) SLACK ^1 s", "needs event time", "TIMESTAMP BY"),
    (
        "DS230",
        "CREATE STREAM z SLACK ^1 s AS SELECT Istream(sym) FROM trades [RANGE 5]",
        "SLACK has no meaning",
        "leave it out",
    ),
    (
        "DS330",
        "CREATE STREAM z AS ^SELECT SUM(qty) AS n FROM trades [RANGE 10]",
        "rows that enter or leave",
        "Istream",
    ),
    (
        "DS330",
        "CREATE QUERY q AS INSERT INTO ^kept SELECT sym FROM trades",
        "stamped on arrival",
        "TIMESTAMP BY",
    ),
    ("DS229", "CREATE STREAM z (a INT) INDEX BY (a, ^a)", "names `a` twice", "once"),
    ("DS229", "CREATE STREAM z (a BOOL) INDEX BY (^a)", "a is BOOL", "IN or a range"),
]
