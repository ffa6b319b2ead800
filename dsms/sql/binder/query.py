"""The root: what of a query's answer is reported, its SLIDE, its order."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from dsms.errors import QueryError
from dsms.sql import ast
from dsms.sql.binder import (
    asof,
    boundaries,
    first_rows,
    lateral,
    letting_go,
    lookups,
    match,
    over,
    over_names,
    ranking,
    stamps,
    temporal,
    wstream,
)
from dsms.sql.binder.context import Context
from dsms.sql.binder.correlated import bind_value
from dsms.sql.binder.now import called
from dsms.sql.binder.options import check_options
from dsms.sql.binder.ordering import ordering_of
from dsms.sql.binder.outputs import output_of
from dsms.sql.binder.properties import reads_stream
from dsms.sql.binder.scaled import check_summed, scaled
from dsms.sql.binder.select import bind_body, bind_nested
from dsms.sql.catalog import Catalog
from dsms.sql.codes import error
from dsms.sql.logical import Node, Output
from dsms.sql.parser import parse_one
from dsms.sql.printer import to_sql
from dsms.sql.translated import beside, of_others, translated

KINDS: dict[ast.OutputKind, Literal["istream", "dstream", "rstream"]] = {
    ast.OutputKind.ISTREAM: "istream",
    ast.OutputKind.DSTREAM: "dstream",
    ast.OutputKind.RSTREAM: "rstream",
}


def bind_query(
    query: ast.Query | ast.Select | ast.SetOp | ast.SelectStatement | ast.CreateQuery,
    catalog: Catalog,
    options: Sequence[ast.Option] = (),
    *,
    persistent: bool = True,
    now: bool = False,
) -> Output:
    """The typed logical plan of a query.

    `options` are those of its WITH clause (checked here; `check_options` gives their values).
    `persistent` is False for one-time queries; `now`: NOW() may stand in it all the same.  Raises
    QueryError, codes in `dsms.sql.codes`.
    """
    try:
        return _bound(query, catalog, options, persistent, now)
    except QueryError as failure:
        if of_others(failure) and (shown := translated(to_sql(query))) is not None:
            with suppress(QueryError):
                _bound(parse_one(shown), catalog, (), True)  # type: ignore[arg-type]
                failure.hint = beside(failure.hint, shown)
        raise


def _timed(whole: ast.Query, catalog: Catalog, now: bool) -> ast.Query:
    """Conditions on NOW() as windows; where NOW() may stand itself, others stay."""
    try:
        return temporal.timed(whole, catalog)
    except QueryError as refused:
        if not now or refused.code != "DS337":
            raise
        return whole


def _bound(
    query: ast.Query | ast.Select | ast.SetOp | ast.SelectStatement | ast.CreateQuery,
    catalog: Catalog,
    options: Sequence[ast.Option],
    persistent: bool,
    now: bool = False,
) -> Output:
    on_lookup, once = False, isinstance(query, ast.SelectStatement)
    if isinstance(query, ast.SelectStatement | ast.CreateQuery):
        options = options or query.options
        on_lookup = isinstance(query, ast.CreateQuery) and query.on_lookup
        query = query.query
    said = dict(check_options(options, "select" if once else "query"))
    whole = _unwrapped(query if isinstance(query, ast.Query) else ast.Query(query, pos=query.pos))
    whole = called(whole, catalog)
    if persistent:
        whole = _timed(whole, catalog, now)
    whole = first_rows.ranked(over_names.named(whole), catalog)
    now = now or not persistent
    if "scale" in (said.get("shed"), said.get("sample")):
        made = scaled(whole, options, catalog)
        plain = _context(catalog, persistent, whole, now)
        check_summed(bind_body(plain, whole.body, ordering=ordering_of(whole)).node, options)
        whole = made
    ctx = _context(catalog, persistent, whole, now)
    body = wstream.rewrite_body(whole.body)
    output = output_of(body)
    if not persistent:
        _check_left(output)
    ordering = ordering_of(whole)
    bound = bind_body(ctx, body, ordering=ordering)
    slide = boundaries.governing_slide(ctx, whole, output is not None and output.restore)
    if slide is not None and slide.by_rows:
        _check_counted(ctx)
    continuous = persistent and slide is None and not on_lookup
    node = ranking.answered(bound, ordering, whole, continuous)
    if persistent:
        asof.check_slides(ctx.windows, node)
        match.check_slides(ctx.windows, node)
        over.check_slides(ctx.windows, node)
        letting_go.check(options, said, node, continuous)
    if continuous:
        _check_exact(options)
        _check_sampled(ctx)
    if persistent and whole.every is not None:
        _check_every(node, whole.every)
    if on_lookup:
        lookups.check(ctx, node, output, whole)
    if output is not None and output.restore:
        boundaries.check_restore(ctx, output, slide)
    kind = "rstream" if output is None else KINDS[output.kind]
    restore = output is not None and output.restore
    put = stamps.stamps(ctx, whole, node, slide, on_lookup)
    return Output(node, kind, output is not None, restore, slide, bound.schema(), put)


def _context(catalog: Catalog, persistent: bool, whole: ast.Query, now: bool) -> Context:
    return Context(
        catalog,
        persistent,
        bind_nested,
        bind_query,
        bind_value,
        lateral.of_rows,
        every=whole.every,
        now=now,
    )


def _check_exact(options: Sequence[ast.Option]) -> None:
    """Answers that follow each row are exact; DS364."""
    for option in options:
        if option.name.text.casefold() == "approximate":
            message = "an answer that follows each row looks at its groups, and is exact"
            raise error("DS364", message, option, "give it a SLIDE, or ON LOOKUP")


def _check_every(node: Node, every: ast.Slide) -> None:
    """Boundaries pass as the streams of a query go on; DS344."""
    if not reads_stream(node):
        message = "EVERY answers a query as its streams go on, and this one reads none"
        raise error("DS344", message, every, "leave EVERY out: each change of its tables is told")


def _check_left(output: ast.Output | None) -> None:
    """Nothing has left an answer that is given once; DS328."""
    if output is not None and output.kind is ast.OutputKind.DSTREAM:
        message = (
            "Dstream tells what leaves the answer, and a query that runs once has only the one"
        )
        raise error(
            "DS328",
            message,
            output,
            "register it with CREATE QUERY, or leave Dstream out to have what is there",
        )


def _check_sampled(ctx: Context) -> None:
    """Aggregates that are made of sub-windows need some; DS331."""
    for name, at in ctx.by_subwindow:
        hint = (
            "add SLIDE to the window, such as [RANGE 10 min SLIDE 1 min], or ask once (without "
            "CREATE QUERY)"
        )
        raise error(
            "DS331",
            f"{name.upper()} is put together from sub-windows, which this query has not",
            at,
            hint,
        )


def _check_counted(ctx: Context) -> None:
    """A SLIDE of rows answers after so many rows, those that are hidden among them; DS308."""
    for name, at in ctx.filtered:
        message = f"SLIDE in rows counts all rows of {name}, of which {ctx.catalog.user} sees some"
        hint = "leave SLIDE out, and end the query with EVERY 10 s"
        raise error("DS308", message, at, hint)


def _unwrapped(query: ast.Query) -> ast.Query:
    """A query that is nothing but a query in parentheses is that query."""
    while isinstance(query.body, ast.Query) and query.plain:
        query = query.body
    return query
