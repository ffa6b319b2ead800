"""Hypothesis strategies for random syntax trees: every tree the parser can make, and no other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from dsms.sql import ast, literals
from dsms.sql.ast import Duration, Ident, Unit
from dsms.typed_texts import DAY
from tests.connectors.trees import connectors

_plain = st.sampled_from(["a", "b", "Total", "x1", "_u", "größe", "min", "hour", "value", "Name2"])
_soft = st.sampled_from(
    ["slide", "rows", "range", "now", "unit", "since", "interval", "timestamp", "date", "key"]
)
_quoted = st.text(min_size=1, max_size=5).filter(lambda t: t.isprintable() or t.isspace())
_quoted_idents = st.builds(Ident, _quoted, st.just(True))
idents = st.one_of(st.builds(Ident, _plain), _quoted_idents)
column_idents = st.one_of(idents, st.builds(Ident, _soft))

_texts = st.text(max_size=8).filter(lambda t: "\x00" not in t)
_micros = st.integers(
    literals.instant("0001-01-01", ast.NOWHERE), literals.instant("9999-12-31", ast.NOWHERE)
)
instants = st.builds(ast.Instant, _micros)


@st.composite
def durations(draw: st.DrawFn, *, calendar: bool = False, negative: bool = False) -> Duration:
    """Normal form: the unit divides the length, as the parser leaves it."""
    unit = draw(st.sampled_from(list(Unit) if calendar else list(literals.MICROS)))
    count = draw(st.integers(-1000 if negative else 0, 10_000))
    if unit in literals.MONTHS:
        return Duration(0, unit, count * literals.MONTHS[unit])
    return Duration(count * literals.MICROS[unit], unit)


# ---------------------------------------------------------------- expressions

type_names = st.one_of(
    st.sampled_from(
        ["INT", "FLOAT", "BOOL", "STRING", "BYTES", "TIMESTAMP", "DATE", "TIME", "UUID"]
    ).map(ast.TypeName),
    st.builds(lambda p, s: ast.TypeName("DECIMAL", (p, s)), st.integers(1, 38), st.integers(0, 38)),
)
columns = st.one_of(
    st.builds(ast.ColumnRef, column_idents), st.builds(ast.ColumnRef, idents, column_idents)
)
_decimals = st.decimals(
    allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9
)
literal_nodes = st.one_of(
    st.builds(ast.IntLit, st.integers(literals.INT_MIN, literals.INT_MAX)),
    st.builds(ast.FloatLit, st.floats(allow_nan=False, allow_infinity=False)),
    st.builds(
        ast.DecimalLit, _decimals.map(lambda d: literals.decimal_text(f"{d:f}", ast.NOWHERE))
    ),
    st.builds(ast.StringLit, _texts),
    st.builds(ast.BytesLit, st.binary(max_size=4)),
    st.builds(ast.BoolLit, st.booleans()),
    st.just(ast.NullLit()),
    st.builds(ast.IntervalLit, durations(negative=True)),
    st.builds(ast.TimestampLit, _micros),
    st.builds(ast.TypedLit, st.just("DATE"), _micros.map(lambda t: t // DAY * DAY)),
    st.builds(ast.TypedLit, st.just("TIME"), _micros.map(lambda t: t % DAY)),
    st.builds(ast.TypedLit, st.just("UUID"), st.uuids().map(str)),
)
_leaves = st.one_of(literal_nodes, columns)
_bool = st.booleans()


def _optional(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), strategy)


def _some(
    strategy: st.SearchStrategy[Any], low: int = 1, high: int = 3
) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, min_size=low, max_size=high).map(tuple)


def _not_number(expr: ast.Expr) -> bool:
    """A minus before a number that has none makes a literal, not a Negate."""
    return not (
        isinstance(expr, ast.IntLit | ast.FloatLit) and not repr(expr.value).startswith("-")
    )


def _no_lone_query(items: tuple[ast.Expr, ...]) -> bool:
    return not (len(items) == 1 and isinstance(items[0], ast.ScalarQuery))


def _calls(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    functions = st.one_of(idents, st.sampled_from(["SUM", "LEFT", "right", "date"]).map(Ident))
    wstream = st.builds(ast.WstreamArg, inner, st.deferred(lambda: windows))
    args = _some(st.one_of(inner, inner, wstream))
    whole = (functions, args, _bool, _optional(inner), _some(_orders_of(inner), 0, 2))
    return st.one_of(
        st.builds(lambda n, a, d, f, o: ast.FuncCall(n, a, d, filter=f, order_by=o), *whole),
        st.builds(lambda n, f: ast.FuncCall(n, star=True, filter=f), functions, _optional(inner)),
        st.builds(lambda n, f: ast.FuncCall(n, filter=f), functions, _optional(inner)),
    )


def _orders_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(ast.OrderItem, inner, _bool, st.sampled_from([None, True, False]))


def _frames(inner: st.SearchStrategy[Any]) -> tuple[st.SearchStrategy[Any], ...]:
    """What stands in the parentheses behind OVER."""
    counts, lengths = st.integers(0, 10**6), durations()

    def bounds(sizes: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(
            st.builds(ast.FrameBound, _optional(sizes), st.just(False), _bool),
            st.just(ast.FrameBound(current=True)),
        )

    frames = st.one_of(
        st.builds(ast.Frame, st.just(True), bounds(counts), _optional(bounds(counts))),
        st.builds(ast.Frame, st.just(False), bounds(lengths), _optional(bounds(lengths))),
    )
    orders = _some(_orders_of(inner), 0, 2)
    return (_some(inner, 0, 2), orders, _optional(frames), _optional(idents))


def _larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    whens = _some(st.builds(ast.When, inner, inner), 1, 2)
    return st.one_of(
        st.builds(ast.Negate, inner.filter(_not_number)),
        st.builds(ast.Binary, st.sampled_from(["+", "-", "*", "/", "%", "||"]), inner, inner),
        st.builds(ast.Comparison, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), inner, inner),
        st.builds(ast.And, _some(inner, 2)),
        st.builds(ast.Or, _some(inner, 2)),
        st.builds(ast.Not, inner),
        st.builds(ast.IsNull, inner, _bool),
        st.builds(ast.IsBool, inner, st.none() | _bool, _bool),
        st.builds(ast.IsDistinct, inner, inner, _bool),
        st.builds(ast.Between, inner, inner, inner, _bool),
        st.builds(ast.InList, inner, _some(inner).filter(_no_lone_query), _bool),
        st.builds(ast.Like, inner, inner, _optional(inner), _bool),
        st.builds(ast.Case, whens, _optional(inner), _optional(inner)),
        st.builds(ast.Cast, inner, type_names),
        st.builds(ast.RowExpr, _some(inner, 2)),
        _calls(inner),
        st.builds(ast.Over, _calls(inner), *_frames(inner)),
        st.builds(ast.InQuery, inner, st.deferred(lambda: bare_queries), _bool),
        st.builds(
            ast.Quantified,
            st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
            inner,
            _bool,
            st.deferred(lambda: bare_queries),
        ),
        st.builds(ast.Exists, st.deferred(lambda: queries)),
        st.builds(ast.ScalarQuery, st.deferred(lambda: bare_queries)),
    )


expressions: st.SearchStrategy[Any] = st.recursive(_leaves, _larger, max_leaves=6)

# ---------------------------------------------------------------- windows

_zones = _optional(st.sampled_from(["UTC", "Europe/Berlin", "it's"]))
_time_slides = st.builds(ast.Slide, durations(calendar=True), _optional(instants), _zones)
_row_slides = st.builds(ast.Slide, st.integers(0, 1000), _optional(instants), _zones)
_flags = {"internal": _bool, "archive": _bool, "slide": _optional(_time_slides)}
_row_flags = {
    "internal": _bool,
    "archive": _bool,
    "slide": _optional(st.one_of(_time_slides, _row_slides)),
}
_lengths = durations(calendar=True)
range_windows = st.builds(ast.RangeWindow, _lengths, _optional(_lengths), **_flags)
windows: st.SearchStrategy[Any] = st.one_of(
    range_windows,
    st.builds(ast.RangeWindow, _lengths, _optional(_lengths), slide=_row_slides),
    st.builds(
        ast.RowsWindow,
        st.integers(0, 10**6),
        _optional(st.integers(0, 9)),
        _some(columns, 0),
        **_row_flags,
    ),
    st.builds(
        ast.RowsWindow,
        st.integers(0, 10**6),
        _optional(st.integers(0, 9)),
        _some(columns, 1),
        _lengths,
        **_row_flags,
    ),
    st.builds(ast.FirstWindow, st.integers(0, 10**6), _some(columns, 1), **_flags),
    st.builds(ast.ThrottledWindow, _lengths, _optional(_lengths), _some(columns, 1), **_flags),
    st.builds(ast.NowWindow, **_flags),
    st.builds(ast.UnboundedWindow, _optional(_lengths), **_flags),
    st.builds(ast.LandmarkWindow, instants, _optional(_lengths), **_flags),
    st.builds(ast.SessionWindow, _lengths | expressions, _some(columns, 0), **_flags),
    st.builds(ast.WhenWindow, expressions, expressions, _some(columns, 0), **_flags),
    st.builds(
        ast.LastingWindow,
        st.deferred(lambda: expressions),
        st.just(True),
        _optional(_lengths),
        **_flags,
    ),
    st.builds(ast.LastingWindow, columns, st.just(False), _optional(_lengths), **_flags),
)
_closing_windows = st.builds(
    ast.RangeWindow, _lengths, _optional(_lengths), internal=_bool, slide=_optional(_time_slides)
)

# ---------------------------------------------------------------- queries

_tables = st.builds(ast.TableRef, idents, _optional(column_idents), _optional(windows), _bool)
_subqueries = st.builds(
    ast.SubqueryRef, st.deferred(lambda: queries), _optional(column_idents), _optional(windows)
)
_unnests = st.one_of(
    st.builds(ast.UnnestRef, _leaves, _bool, _optional(column_idents)),
    st.builds(ast.UnnestRef, _leaves, _bool, column_idents, _some(idents)),
)
_sees = (st.none(), st.none(), st.just(True), _some(idents, 0, 2))
_laterals = st.builds(ast.SubqueryRef, st.deferred(lambda: queries), column_idents, *_sees)
_from_leaves = st.one_of(_tables, _tables, _tables, _subqueries, _unnests, _laterals)


def _joins(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    kinds = st.sampled_from([k for k in ast.JoinKind if k is not ast.JoinKind.CROSS])
    return st.one_of(
        st.builds(ast.Join, kinds, inner, inner, _leaves),
        st.builds(ast.Join, kinds, inner, inner, st.none(), _some(idents)),
        st.builds(ast.Join, kinds, inner, inner, natural=st.just(True)),
        st.builds(ast.Join, st.just(ast.JoinKind.CROSS), inner, inner),
    )


from_items = st.recursive(_from_leaves, _joins, max_leaves=3)
_items = st.one_of(
    st.builds(ast.SelectItem, expressions, _optional(column_idents)),
    st.builds(ast.StarItem, _optional(column_idents)),
)
_plain_outputs = st.sampled_from(
    [
        ast.Output(ast.OutputKind.ISTREAM),
        ast.Output(ast.OutputKind.DSTREAM),
        ast.Output(ast.OutputKind.RSTREAM),
        ast.Output(ast.OutputKind.ISTREAM, True),
        ast.Output(ast.OutputKind.RSTREAM, True),
        ast.Output(ast.OutputKind.WSTREAM, True),
    ]
)
_outputs = st.one_of(
    _plain_outputs, st.builds(ast.Output, st.just(ast.OutputKind.WSTREAM), _bool, windows)
)
_sets = _some(_some(columns, 0, 2), 1, 2)
_keys = st.one_of(
    expressions.filter(lambda e: not _is_short(e)), st.builds(ast.GroupingSets, _sets)
)
selects = st.builds(
    ast.Select,
    _some(_items, 1, 2),
    _some(from_items, 0, 2),
    _optional(expressions),
    _some(_keys, 0, 2),
    _optional(expressions),
    _bool,
    _optional(_outputs),
    _optional(_closing_windows),
    _optional(expressions),
    _some(expressions, 0, 2),
    _some(st.builds(ast.NamedWindow, idents, *_frames(expressions)), 0, 2),
).map(lambda s: replace(s, distinct_on=()) if s.distinct else s)
_orders = _some(_orders_of(expressions), 0, 2)
_counts = _optional(st.integers(0, 10**6))


def _is_short(expr: ast.Expr) -> bool:
    """ROLLUP and CUBE are read as the grouping sets that they are short for."""
    return isinstance(expr, ast.FuncCall) and expr.name.text.upper() in ("ROLLUP", "CUBE")


def _says_something(query: ast.Query) -> bool:
    return not query.plain


_pers = st.builds(ast.Per, _some(expressions, 0, 2))


def _queries(bodies: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """PER stands behind LIMIT alone."""
    every = _optional(_time_slides)
    return st.one_of(
        st.builds(ast.Query, bodies, _orders, _counts, _counts, every),
        st.builds(ast.Query, bodies, _orders, st.integers(0, 10**6), _counts, every, _pers),
    )


def _set_ops(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    operands = st.one_of(inner, inner, _queries(inner).filter(_says_something))
    return st.builds(ast.SetOp, st.sampled_from(list(ast.SetOpKind)), operands, operands, _bool)


_bodies = st.recursive(selects, _set_ops, max_leaves=3)


def _begins_with_select(query: ast.Query) -> bool:
    """In an expression a query may not begin with a parenthesis, so the leftmost operand must print
    without one."""
    node, level = query.body, 0
    while isinstance(node, ast.SetOp):
        binds = 2 if node.kind is ast.SetOpKind.INTERSECT else 1
        if binds < level:
            return False
        node, level = node.left, binds
    return isinstance(node, ast.Select)


queries: st.SearchStrategy[Any] = _queries(
    st.one_of(_bodies, _bodies, _queries(selects).filter(_says_something))
).filter(lambda q: not isinstance(q.body, ast.Query) or _says_something(q))
bare_queries: st.SearchStrategy[Any] = _queries(_bodies).filter(_begins_with_select)

# ---------------------------------------------------------------- statements

_words = st.sampled_from(
    ["upa", "null", "interval", "two words", "TRUE", "true", "Sync", "it's", "", "select"]
)
_numbers = st.one_of(st.integers(-(2**62), 2**62), st.floats(allow_nan=False, allow_infinity=False))
options = _some(
    st.builds(ast.Option, idents, st.one_of(_words, _numbers, _bool, durations())),
    0,
    3,
).filter(lambda found: len({o.name.text.lower() for o in found}) == len(found))
_archives = _optional(
    st.builds(ast.Archive, _optional(durations()), _optional(idents), _optional(durations()))
)
_column_defs = st.builds(
    ast.ColumnDef, column_idents.filter(lambda i: i.text != "primary"), type_names, _bool
)
_made_columns = _column_defs | st.builds(
    ast.ColumnDef,
    column_idents.filter(lambda i: i.text != "primary"),
    type_names,
    _bool,
    _optional(expressions),
)
_streams = st.builds(
    ast.CreateStream,
    idents,
    _some(_made_columns),
    _bool,
    _optional(
        st.builds(
            ast.TimestampBy,
            idents,
            st.sampled_from([None, "s", "ms", "ns"]),
            _optional(expressions),
        )
    ),
    _optional(durations()),
    _optional(st.builds(ast.Late, _optional(idents))),
    *[_optional(durations())] * 4,
    _some(idents, 0),
    _archives,
    _optional(st.builds(ast.Confidential, durations(), idents)),
    options,
)
_creates = st.one_of(
    _streams,
    st.builds(
        ast.CreateTable, idents, _some(_column_defs), _some(idents, 0), _bool, _bool, options
    ),
    st.builds(ast.CreateQuery, idents, queries, _bool, _bool, _archives, options),
    st.builds(ast.CreateQuery, idents, queries, st.just(False), _bool, or_replace=st.just(True)),
)
_selects = st.builds(ast.SelectStatement, queries, options)
_assignments = _some(st.builds(ast.Assignment, column_idents, expressions))
_rows = _some(_some(expressions), 1, 2)
_conflicts = _optional(
    st.builds(ast.Conflict, _some(idents, 0))
    | st.builds(ast.Conflict, _some(idents, 0), _assignments, _optional(expressions))
)
_changes = st.one_of(
    st.builds(
        ast.Insert, idents, _some(idents, 0), _rows, st.none(), _optional(instants), _conflicts
    ),
    st.builds(
        ast.Insert,
        idents,
        _some(idents, 0),
        st.just(()),
        queries,
        _optional(instants),
        _conflicts,
    ),
    st.builds(ast.Update, idents, _assignments, _optional(expressions), _optional(instants)),
    st.builds(ast.Delete, idents, _optional(expressions), _optional(instants)),
)
_queries_by_name = st.one_of(_selects, st.builds(ast.CreateQuery, idents, queries), idents)


_right = st.builds(ast.Privilege, st.sampled_from(list(ast.Right)), _some(idents, 0))
_password = st.builds(
    ast.Credential, st.just(ast.SecretKind.PASSWORD), st.text("aé'\" ", min_size=1)
)
_token = st.builds(
    ast.Credential, st.just(ast.SecretKind.TOKEN), _optional(st.text("aé'\" ", min_size=1))
)
_number = st.builds(ast.Credential, st.just(ast.SecretKind.TOKEN), st.text("ab", min_size=1))
_masks = _some(st.builds(ast.Mask, idents, expressions), 0, 2)
_rights = st.one_of(
    st.builds(ast.CreateUser, idents, _password | _token, _bool, options),
    st.builds(ast.AlterQuota, idents, options.filter(bool), _bool),
    st.builds(ast.AlterUser, idents, _password | _token),
    st.builds(ast.AlterUser, idents, _token, st.just(ast.UserChange.ADD)),
    st.builds(ast.AlterUser, idents, _number, st.just(ast.UserChange.DROP)),
    st.builds(ast.DropUser, idents, _bool),
    st.builds(ast.CreateRole, idents, _bool, options),
    st.builds(ast.DropRole, idents, _bool),
    st.builds(
        ast.Grant, _some(_right), _optional(idents), _some(idents), _masks, _optional(expressions)
    ),
    st.builds(ast.Revoke, _some(_right), _optional(idents), _some(idents)),
    st.builds(ast.GrantRole, _some(idents), _some(idents)),
    st.builds(ast.RevokeRole, _some(idents), _some(idents)),
    st.builds(ast.Show, st.just(ast.ShowKind.GRANTS), _optional(st.just("a%")), _optional(idents)),
)


_function_kinds = st.sampled_from(list(ast.FunctionKind))
_made = (
    _function_kinds,
    idents,
    _some(st.builds(ast.ParameterDef, idents, type_names), 0, 2),
    expressions,
    _optional(type_names),
)
_functions = (
    st.builds(ast.CreateFunction, *_made, _bool),
    st.builds(ast.CreateFunction, *_made, or_replace=st.just(True)),
    st.builds(ast.DropFunction, _function_kinds, idents, _bool),
    st.builds(ast.Describe, idents, _function_kinds),
)
_owned = st.sampled_from([ast.ObjectKind.STREAM, ast.ObjectKind.TABLE])


_connectors = connectors(idents, st.one_of(_words, _numbers, _bool), _texts)


def statements() -> st.SearchStrategy[ast.Statement]:
    """Any statement."""
    return st.one_of(
        _selects,
        _selects,
        _creates,
        _changes,
        _rights,
        st.builds(ast.Explain, _queries_by_name, _bool, st.sampled_from(list(ast.ExplainFormat))),
        st.builds(ast.Drop, st.sampled_from(list(ast.ObjectKind)), idents, _bool),
        st.builds(ast.Describe, idents, _optional(st.sampled_from(list(ast.ObjectKind)))),
        st.builds(ast.Show, st.sampled_from(list(ast.ShowKind))),
        st.builds(
            lambda where: ast.Show(ast.ShowKind.QUERIES, "q%", full=True, where=where),
            _optional(expressions),
        ),
        st.builds(ast.ShowCreate, st.sampled_from(list(ast.MadeKind)), idents),
        st.just(ast.ShowCreate()),
        *_functions,
        st.builds(ast.Set, options.filter(bool).map(lambda found: found[0])),
        st.builds(ast.Lookup, idents, _some(expressions, 0)),
        st.builds(ast.Heartbeat, idents, instants),
        st.builds(ast.EndStream, idents),
        st.builds(ast.Punctuate, idents, expressions, _optional(instants)),
        _connectors,
        st.builds(ast.PauseQuery, idents),
        st.builds(ast.ResumeQuery, idents),
        st.builds(ast.RenameQuery, idents, idents),
        st.builds(ast.SetQuery, idents, options.filter(bool)),
        st.builds(
            ast.Comment,
            st.sampled_from(list(ast.ObjectKind)),
            idents,
            _optional(st.text("aé'\" \n")),
        ),
        st.builds(ast.CancelSession, st.integers(0, 2**63 - 1), _bool),
        st.builds(ast.AlterStream, idents, _optional(instants)),
        st.builds(ast.SetSince, idents, _optional(instants)),
        st.builds(ast.SetStream, idents, options.filter(bool)),
        st.builds(ast.Reopen, idents),
        st.builds(ast.AddColumn, idents, _column_defs),
        st.builds(ast.Rename, _owned, idents, idents),
        st.builds(ast.RenameColumn, _owned, idents, idents, idents),
    )
