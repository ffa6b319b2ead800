"""Archive queries on Spark answer as the same queries over live rows do, and as the oracle says.

One session for all; where many expressions can stand in one query they do, since each query costs a
second of Spark.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsms.oneshot.aggregates import exact_aggregate
from dsms.oneshot.dialect import SPARK
from dsms.oneshot.reads import reads
from dsms.oneshot.relation import column_names
from dsms.oneshot.scalars import exact
from dsms.operators.expressions import ErrorCounter, compile_many
from dsms.plan.identity import by_value
from dsms.plan.paths import from_past
from dsms.plan.planner import plan
from dsms.sql import logical as lp
from dsms.sql.expr import AggCall, Call, Col, Expr, Lit
from dsms.sql.functions import AGGREGATES, FunctionError, call, resolve_aggregate
from dsms.sql.types import BOOL, BYTES, FLOAT, INT, INTERVAL, STRING, TIMESTAMP, Field, Type
from dsms.sql.window import First, Lasting, Latest, Session, Throttled, When
from tests import oneshot_runs
from tests.archive_runs import from_archives, run
from tests.effort import effort, examples, sampled
from tests.generate.stories import stories
from tests.oneshot_runs import values
from tests.oracle import Oracle, Row
from tests.oracle import plans as p
from tests.oracle.values import canons
from tests.scalars import DEC, WIDE
from tests.spark_session import spark  # noqa: F401
from tests.stories import text
from tests.stories.judge import take_in
from tests.stories.model import Story
from tests.test_expressions_oracle import signatures
from tests.test_oneshot_values import ARGUMENTS, CERTAIN

pytestmark = pytest.mark.xdist_group("spark")
S = 1_000_000
NAN, INF = float("nan"), float("inf")
ODD: dict[Type, tuple[Any, ...]] = {
    BOOL: (True, False),
    INT: (0, 1, -1, 2, 7, 2**63 - 1, -(2**63), 2**53 + 1),
    FLOAT: (0.0, -0.0, 1.0, -1.5, NAN, INF, -INF, 1e308, 5e-324, 0.1, float(2**53)),
    DEC: tuple(Decimal(x) for x in ("0.00", "1.00", "-1.50", "999.99", "0.01")),
    WIDE: tuple(Decimal(x) for x in ("0", "1", "-1", "9" * 20)),
    STRING: (
        "",
        "a",
        "A",
        "ab",
        "it's",
        "a\\b",
        "${x}",
        "$",
        "é",
        "z\U0001f600",
        "\uffff",
        "%_",
        "a\0b",
        " a ",
    ),
    BYTES: (b"", b"a", b"\x00", b"\xff\x01", b"ab"),
    TIMESTAMP: (0, 1, -1, 1_400_000_000_000_000, -62_135_596_800_000_000, 253_402_300_799_999_999),
    INTERVAL: (0, 1, -S, 86_400 * S),
}
TYPES = tuple(ODD)
PARAMS = {
    "phi": 0.3, "k": 2, "lg_k": 12, "size": 200, "g": 3, "scale": "linear", "sep": "-", "n": 2,
    "edges": "[1, 2]",
}  # a table  # fmt: skip


def odd_rows(types: tuple[Type, ...], count: int, seed: int = 1) -> list[tuple]:
    """Rows of odd values; every value of each type comes, and NULL."""
    random = Random(seed)
    columns = []
    for type_ in types:
        pool = [*ODD[type_], None, None]
        random.shuffle(pool)
        columns.append([*pool, *random.choices(pool, k=max(0, count - len(pool)))][:count])
    return list(zip(*columns, strict=True))


# ---------------------------------------------------------------- what is left to Spark's SQL


def expressions(random: Random) -> list[Expr]:
    """What SQL may evaluate, over the columns of `TYPES` (twice, so that two of a type can be
    compared)."""
    found: list[Expr] = []
    for name in sorted(CERTAIN):
        for types in signatures(name):
            for _ in range(3):
                expr = _over_columns(name, types, random)
                if expr is not None:
                    found.append(expr)
    return found


def _over_columns(name: str, types: tuple[Type, ...], random: Random) -> Expr | None:
    if not all(t in ODD for t in types):
        return None
    args: list[Expr] = []
    for t in types:
        if random.random() < 0.3:
            args.append(Lit(random.choice((*ODD[t], None)), t))
        else:
            args.append(Col(TYPES.index(t) + random.choice((0, len(TYPES))), t))
    if not any(isinstance(a, Col) for a in args):
        args[0] = Col(TYPES.index(types[0]), types[0])
    try:
        return call(name, args)
    except FunctionError:
        return None


def test_what_sparks_sql_evaluates_is_what_we_would(spark, tmp_path) -> None:  # noqa: F811
    exprs = expressions(Random(7))
    texts = {
        k: t for k, e in enumerate(exprs) if (t := exact(e, column_names(), SPARK)) is not None
    }
    assert len(texts) > 200 and {e.fn for k, e in enumerate(exprs) if k in texts} >= CERTAIN - {
        "not"
    }  # type: ignore[union-attr]
    both = TYPES * 2
    rows = [a + b for a, b in zip(odd_rows(TYPES, 60, 1), odd_rows(TYPES, 60, 2), strict=True)]
    rows += [a + a for a in odd_rows(TYPES, 15, 3)]  # equal ones, too
    data = pa.RecordBatch.from_arrays(
        [pa.array([r[k] for r in rows], t.arrow) for k, t in enumerate(both)],
        [f"c{k}" for k in range(len(both))],
    )
    want = compile_many([exprs[k] for k in texts])(
        list(data.columns), len(rows), ErrorCounter("stop")
    )
    numbered = pa.Table.from_batches([data]).append_column("n", pa.array(range(len(rows))))
    spark.createDataFrame(numbered).createOrReplaceTempView("odd")
    shown = ", ".join(f"{t} AS x{k}" for k, t in texts.items())
    got = spark.sql(f"SELECT {shown} FROM odd ORDER BY n").toArrow()
    spark.catalog.dropTempView("odd")
    for column, expected, k in zip(got.columns, want, texts, strict=True):
        assert canons(tuple(column.to_pylist())) == canons(tuple(expected.to_pylist())), (
            texts[k],
            exprs[k],
        )


@pytest.mark.parametrize("value", sampled(ODD[STRING], 4))
def test_every_text_is_spelled_so_that_spark_reads_it(value: str, spark) -> None:  # noqa: F811
    spelled = exact(Lit(value, STRING), str, SPARK)
    assert spelled is not None
    assert spark.sql(f"SELECT {spelled} AS x").toArrow().to_pydict() == {"x": [value]}


# ---------------------------------------------------------------- aggregates


def aggregates(schema: dict[str, Type]) -> list[AggCall]:
    """Every aggregate over every type, plain, distinct and filtered, over columns `g`, `h` and the
    others."""
    names = list(schema)
    only = Call("gt", (Col(1, INT), Lit(0, INT)), BOOL)
    out = []
    for spec in (card for card in AGGREGATES if card.family != "python"):
        params = tuple(PARAMS[what] for what in spec.params)
        two = (*((t, INT) for t in ARGUMENTS), (INT, BOOL))
        for types in ((), *((t,) for t in ARGUMENTS), *two):
            for distinct in (False, True) if spec.distinct and types else (False,):
                try:
                    found = resolve_aggregate(spec.name, types, distinct=distinct, params=params)
                except FunctionError:
                    continue
                if found.fn != spec.name:
                    continue
                cols = [Col(names.index(_named(t, k)), t) for k, t in enumerate(types)]
                args = tuple(
                    c if to is None else Call("cast", (c,), to)
                    for c, to in zip(cols, found.casts, strict=True)
                )
                filter_ = only if len(out) % 3 == 0 else None
                out.append(AggCall(spec.name, args, found.type, distinct, filter_, found.params))
    return out


def _some_of_each(calls: list[AggCall]) -> list[AggCall]:
    """Of each aggregate its calls by turns: the second, the fifth and so on, or the only one."""
    found: dict[str, list[AggCall]] = defaultdict(list)
    for a in calls:
        found[a.fn].append(a)
    return [a for some in found.values() for a in some[min(1, len(some) - 1) :: 3]]


def _named(type_: Type, place: int) -> str:
    return "h" if (place, type_) == (1, INT) else f"c{ARGUMENTS.index(type_)}"


@pytest.mark.parametrize("grouped", sampled([True, False], 2))
def test_every_aggregate_over_an_archive(grouped: bool, spark, tmp_path: Path) -> None:  # noqa: F811
    schema: dict[str, Type] = {"g": INT, "h": INT, **{f"c{i}": t for i, t in enumerate(ARGUMENTS)}}
    tame = {
        INT: (0, 1, -1, 2**62),
        WIDE: (Decimal(1), Decimal(-3)),
        INTERVAL: (0, 1, -S),
        FLOAT: (0.0, -0.0, NAN, 1.5, 0.1),
    }
    random = Random(5)
    rows = [
        Row(
            k // 5 * S,
            k,
            (
                random.choice((1, 2, 2, None)),
                random.choice((0, 1, 3, None)),
                *(random.choice((*tame.get(t, ODD[t]), None)) for t in ARGUMENTS),
            ),
        )
        for k in range(48)
    ]
    rows.append(Row(10 * S, 48, (3, None, *[None] * len(ARGUMENTS))))  # a group of NULLs
    left = p.window(p.stream("s", **schema), "time", 100 * S)
    calls = [
        a
        for a in aggregates(schema)
        if not (a.fn == "sum" and a.type.kind in (INT.kind, INTERVAL.kind))
    ]
    calls = calls if effort() else _some_of_each(calls)
    calls += [AggCall("sum", (Col(1, INT),), INT), AggCall("sum", (Col(1, INT),), INT, True)]
    assert {a.fn for a in calls} == {a.name for a in AGGREGATES if a.family != "python"}
    exactly = [a for a in calls if exact_aggregate(a, column_names(), SPARK) is not None]
    assert {a.fn for a in exactly} >= {
        "count",
        "count_star",
        "min",
        "max",
        "sum",
        "bool_and",
        "bool_or",
    }
    keys = (Col(0, INT),) if grouped else ()
    for some in (exactly, [a for a in calls if a not in exactly]):
        fields = (
            *(Field("g", INT) for _ in keys),
            *(Field(f"a{k}", a.type) for k, a in enumerate(some)),
        )
        node = p.output(lp.GroupBy(left, keys, tuple(some), fields), "rstream")
        want = [canons(v) for v in values(oneshot_runs.run(node, {"s": rows}, {}, 10 * S))]
        got = [canons(v) for v in values(run(spark, tmp_path, node, {"s": rows}, {}, 10 * S))]
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            assert not (
                bad := [
                    (some[k - len(keys)], x, y)
                    for k, (x, y) in enumerate(zip(a, b, strict=True))
                    if x != y
                ]
            ), bad


def test_a_global_aggregate_over_nothing_answers(spark, tmp_path: Path) -> None:  # noqa: F811
    left = p.window(p.stream("s", x=INT, y=FLOAT), "time", S)
    calls = (
        AggCall("count_star", (), INT),
        AggCall("avg", (Col(1, FLOAT),), FLOAT),
        AggCall("sum", (Col(0, INT),), INT),
    )
    node = p.output(
        lp.GroupBy(left, (), calls, tuple(Field(c.fn, c.type) for c in calls)), "rstream"
    )
    assert values(run(spark, tmp_path, node, {"s": [Row(0, 0, (1, 1.0))]}, {}, 10 * S)) == [
        (0, None, None)
    ]
    assert values(run(spark, tmp_path / "empty", node, {"s": []}, {}, 10 * S)) == [(0, None, None)]


# ---------------------------------------------------------------- constructs


def _only_here(node: lp.Node) -> bool:
    """Whether Spark refuses it (DS557), or no archive is read through it."""
    windows = Latest | Session | When | Lasting | Throttled | First
    own = isinstance(node, lp.Window) and isinstance(node.spec, windows)
    return own or isinstance(node, lp.AsofJoin | lp.Match | lp.Over)


@settings(max_examples=examples(6), deadline=None, suppress_health_check=list(HealthCheck))
@given(story=stories(), seed=st.integers(0, 9999))
def test_any_query_over_archives_answers_as_the_oracle_does(
    spark,  # noqa: F811
    tmp_path_factory,
    story: Story,
    seed: int,
) -> None:
    declared = text.resolve(story)
    output, came = declared.queries["q"], take_in(declared, story)
    why = from_past(output)
    if why is not None and "INTERNAL" not in why:
        return
    node = plan(output).node
    if any(_only_here(n) for n in lp.nodes_of(node)):
        return
    if not any(r.kind == "archive" for r in reads(from_archives(node)).values()):
        return
    oracle = Oracle(output, came.streams, came.tables)
    at = oracle.instants[seed % len(oracle.instants)]
    want = [canons(f.values) for f in oracle.answer(at)]
    got = list(
        map(
            canons,
            values(run(spark, tmp_path_factory.mktemp("a"), node, came.streams, came.tables, at)),
        )
    )
    shown = text.render(story, declared)
    assert Counter(got) == Counter(want), f"at {at}: {got}\nnot {want}\n{shown}"
    if not by_value(output.child):
        assert got == want, f"order at {at}: {got}\nnot {want}\n{shown}"
