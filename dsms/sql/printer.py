"""AST to text: ``parse_one(to_sql(statement)) == statement`` for every statement the parser can
make.

One line, keywords in capitals, names as written.  `to_sql` takes any node, so that plans and
messages can quote parts.
"""

from __future__ import annotations

from dsms.sql import ast, print_connectors, print_match, print_rights, print_small, print_windows
from dsms.sql.literals import duration_text
from dsms.sql.print_expressions import (
    Expressions,
    boundaries,
    frame,
    frame_bound,
    instant,
    name,
    names,
    type_name,
)


def to_sql(node: ast.Node) -> str:
    """The text of a statement, query, expression, window, or any other node."""
    match node:
        case ast.Statement():
            return _statement(node)
        case ast.Query():
            return query(node)
        case ast.Select() | ast.SetOp():
            return _body(node)
        case ast.Expr():
            return _expressions.text(node)
        case ast.Window():
            return window(node)
        case ast.FromItem():
            return _from_item(node)
        case _:
            return _part(node)


def _part(node: ast.Node) -> str:
    match node:
        case ast.Ident():
            return name(node)
        case ast.TypeName():
            return type_name(node)
        case ast.Duration():
            return duration_text(node)
        case ast.Instant():
            return instant(node)
        case ast.SelectItem() | ast.StarItem():
            return _item(node)
        case ast.OrderItem():
            return _expressions.order((node,))
        case ast.Per():
            return _per(node)
        case ast.Frame():
            return frame(node)
        case ast.FrameBound():
            return frame_bound(node)
        case ast.Slide():
            return boundaries(node)
        case ast.Option() | ast.SecretOption():
            return print_connectors.option(node)
        case ast.ColumnDef(column, type_, not_null, made, default):
            behind = f"{' NOT NULL' if not_null else ''}{_made(made)}"
            behind += f" DEFAULT ({_expressions.text(default)})" if default is not None else ""
            return f"{name(column)} {type_name(type_)}{behind}"
        case ast.Assignment(column, value):
            return f"{name(column)} = {_expressions.text(value)}"
        case ast.Archive():
            return _archive(node)
        case ast.TimestampBy(column, unit, made):
            by = name(column) if made is None else f"{_made(made)[4:]} AS {name(column)}"
            return f"TIMESTAMP BY {by}{f' UNIT {unit}' if unit else ''}"
        case ast.MatchStep():
            return print_match.step(node, _from_item)
        case ast.Late(into):
            return f"LATE INTO {name(into)}" if into is not None else "LATE DROP"
        case ast.When(condition, result):
            return f"WHEN {_expressions.text(condition)} THEN {_expressions.text(result)}"
        case _:
            raise TypeError(f"{type(node).__name__} has no text of its own")


# ---------------------------------------------------------------- windows


def _made(expr: ast.Expr | None) -> str:
    return "" if expr is None else f" AS ({_expressions.text(expr)})"


def window(node: ast.Window) -> str:
    """What stands between the brackets."""
    parts = [print_windows.core(node, _expressions.text)]
    parts += ["INTERNAL"] if node.internal else []
    parts += ["ARCHIVE"] if node.archive else []
    unit = "" if isinstance(node, ast.RowsWindow) else " ROWS"
    parts += [boundaries(node.slide, unit=unit)] if node.slide is not None else []
    return " ".join(parts)


# ---------------------------------------------------------------- queries


def query(node: ast.Query) -> str:
    """A whole query, without parentheses around it."""
    parts = [_operand(node.body, 0)]
    parts += [f"ORDER BY {_expressions.order(node.order_by)}"] if node.order_by else []
    parts += [f"LIMIT {node.limit}"] if node.limit is not None else []
    parts += [f"OFFSET {node.offset}"] if node.offset is not None else []
    parts += [_per(node.per)] if node.per is not None else []
    parts += [boundaries(node.every, "EVERY")] if node.every is not None else []
    return " ".join(parts)


def _per(per: ast.Per) -> str:
    return f"PER {', '.join(map(_expressions.text, per.keys)) or '()'}"


def _operand(node: ast.Select | ast.SetOp | ast.Query, level: int) -> str:
    """An operand of a set operation: in parentheses if it binds looser than `level` (UNION 1,
    INTERSECT 2)."""
    match node:
        case ast.Query():
            return f"({query(node)})"
        case ast.SetOp(kind) if (2 if kind is ast.SetOpKind.INTERSECT else 1) < level:
            return f"({_body(node)})"
        case _:
            return _body(node)


def _body(node: ast.Select | ast.SetOp) -> str:
    match node:
        case ast.SetOp(kind, left, right, keep_duplicates):
            level = 2 if kind is ast.SetOpKind.INTERSECT else 1
            return (
                f"{_operand(left, level)} {kind}{' ALL' if keep_duplicates else ''} "
                f"{_operand(right, level + 1)}"
            )
        case ast.Select():
            return _select(node)


def _select(node: ast.Select) -> str:
    on = [f"DISTINCT ON ({_expressions.list(node.distinct_on)})"] if node.distinct_on else []
    parts = ["SELECT", *on, _select_list(node)]
    parts += [f"FROM {', '.join(map(_from_item, node.from_))}"] if node.from_ else []
    parts += [f"WHERE {_expressions.text(node.where)}"] if node.where is not None else []
    parts += [f"GROUP BY {_expressions.list(node.group_by)}"] if node.group_by else []
    parts += [f"HAVING {_expressions.text(node.having)}"] if node.having is not None else []
    parts += [window(node.window).replace("RANGE", "WINDOW", 1)] if node.window is not None else []
    parts += [f"WINDOW {', '.join(map(_named_window, node.windows))}"] if node.windows else []
    parts += [f"QUALIFY {_expressions.text(node.qualify)}"] if node.qualify is not None else []
    return " ".join(parts)


def _named_window(node: ast.NamedWindow) -> str:
    return f"{name(node.name)} AS {_expressions.rows(node)}"


def _select_list(node: ast.Select) -> str:
    items = ("DISTINCT " if node.distinct else "") + ", ".join(map(_item, node.items))
    if node.output is None:
        return items
    restore = "-restore" if node.output.restore else ""
    tail = f"[{window(node.output.window)}]" if node.output.window is not None else ""
    return f"{node.output.kind}{restore}({items}){tail}"


def _item(item: ast.SelectItem | ast.StarItem) -> str:
    match item:
        case ast.SelectItem(expr, alias):
            return _expressions.text(expr) + _alias(alias)
        case ast.StarItem(table):
            return f"{name(table)}.*" if table is not None else "*"


def _alias(alias: ast.Ident | None) -> str:
    return f" AS {name(alias)}" if alias is not None else ""


def _from_item(item: ast.FromItem) -> str:
    match item:
        case ast.TableRef(table, alias, its_window, archive, sample):
            return (
                f"{'ARCHIVE ' if archive else ''}{name(table)}{_bracketed(its_window)}"
                f"{_alias(alias)}{_sample(sample)}"
            )
        case ast.SubqueryRef(subquery, alias, lateral=True, columns=columns):
            shown = f" ({names(columns)})" if columns else ""
            return f"LATERAL ({query(subquery)}){_alias(alias)}{shown}"
        case ast.SubqueryRef(subquery, alias, its_window, sample):
            return f"({query(subquery)}){_bracketed(its_window)}{_alias(alias)}{_sample(sample)}"
        case ast.UnnestRef(items, ordinality, alias, columns):
            counted = " WITH ORDINALITY" if ordinality else ""
            shown = f" ({names(columns)})" if columns else ""
            return f"UNNEST({_expressions.text(items)}){counted}{_alias(alias)}{shown}"
        case ast.Join():
            return _join(item)
        case ast.Match():
            return print_match.text(item, _from_item, _bracketed)
        case _:
            raise TypeError(f"unknown FROM item {type(item).__name__}")


def _bracketed(node: ast.Window | None) -> str:
    return f" [{window(node)}]" if node is not None else ""


def _sample(sample: ast.Sample | None) -> str:
    if sample is None:
        return ""
    by = ", ".join(map(_expressions.text, sample.by))
    keys = f" BY ({by})" if len(sample.by) > 1 else f" BY {by}" if by else ""
    return f" SAMPLE {sample.percent:f} PERCENT{keys}"


def _join(join: ast.Join) -> str:
    right = f"({_join(join.right)})" if isinstance(join.right, ast.Join) else _from_item(join.right)
    kind = "NATURAL " if join.natural else ""
    kind += "" if join.kind is ast.JoinKind.INNER else f"{join.kind} "
    condition = f" ON {_expressions.text(join.on)}" if join.on is not None else ""
    condition += f" USING ({names(join.using)})" if join.using else ""
    condition += f" WITHIN {duration_text(join.within)}" if join.within is not None else ""
    return f"{_from_item(join.left)} {kind}JOIN {right}{condition}"


_expressions = Expressions(query, window)


# ---------------------------------------------------------------- statements


def _statement(node: ast.Statement) -> str:
    match node:
        case ast.SelectStatement(its_query, options):
            return _joined(query(its_query), _with(options))
        case ast.CreateStream() | ast.CreateTable() | ast.CreateQuery():
            return _create(node)
        case ast.Drop(kind, what, if_exists, cascade):
            absent, readers = " IF EXISTS" if if_exists else "", " CASCADE" if cascade else ""
            return f"DROP {kind}{absent} {name(what)}{readers}"
        case ast.Explain():
            return _explain(node)
        case _:
            small = print_small.text(node, to_sql)
            return _change(node) if small is None else small


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _with(options: tuple[ast.Option, ...]) -> str:
    return f"WITH ({', '.join(map(_part, options))})" if options else ""


def _create(node: ast.CreateStream | ast.CreateTable | ast.CreateQuery) -> str:
    absent = "IF NOT EXISTS " if node.if_not_exists else ""
    match node:
        case ast.CreateStream(stream, columns):
            head = f"CREATE STREAM {absent}{name(stream)}"
            if node.query is None:
                head += f" ({', '.join(map(_part, columns))})"
            body = "" if node.query is None else f"AS {query(node.query)}"
            return _joined(head, *_stream_clauses(node), _with(node.options), body)
        case ast.CreateTable(table, columns, key):
            elements = [*map(_part, columns), *([f"PRIMARY KEY ({names(key)})"] if key else [])]
            head = f"CREATE TABLE {absent}{name(table)} ({', '.join(elements)})"
            return _joined(
                head, "NON RETROACTIVE" if node.non_retroactive else "", _with(node.options)
            )
        case ast.CreateQuery(query_name, its_query):
            on_lookup = "ON LOOKUP" if node.on_lookup else ""
            tail = [on_lookup, _archive(node.archive), _with(node.options)]
            into = f"{_into(node.into)} " if node.into is not None else ""
            verb = "CREATE OR REPLACE" if node.or_replace else "CREATE"
            head = f"{verb} QUERY {absent}{name(query_name)} AS {into}{query(its_query)}"
            return _joined(head, *tail)


def _into(into: ast.Into) -> str:
    columns = f" ({names(into.columns)})" if into.columns else ""
    return f"INSERT INTO {name(into.stream)}{columns}"


def _stream_clauses(node: ast.CreateStream) -> list[str]:
    lengths = {
        "SLACK": node.slack,
        "MAX FUTURE": node.max_future,
        "IDLE TIMEOUT": node.idle_timeout,
        "SUBWINDOW": node.subwindow,
        "RETAIN": node.retain,
    }
    clauses = [_part(part) for part in (node.timestamp, node.late) if part is not None]
    if node.key:
        clauses.append(f"KEY ({', '.join(map(name, node.key))})")
    clauses += [
        f"{word} {duration_text(length)}" for word, length in lengths.items() if length is not None
    ]
    if node.index_by:
        clauses.append(f"INDEX BY ({', '.join(map(name, node.index_by))})")
    secret = node.confidential
    if secret is not None:
        text = f"CONFIDENTIAL FOR {duration_text(secret.length)} TO {name(secret.role)}"
        clauses.append(text)
    return [*clauses, _archive(node.archive)]


def _archive(archive: ast.Archive | None) -> str:
    if archive is None:
        return ""
    parts = ["ARCHIVE"]
    parts += [f"FOR {duration_text(archive.keep)}"] if archive.keep is not None else []
    parts += [f"CLUSTER BY {name(archive.cluster_by)}"] if archive.cluster_by is not None else []
    parts += (
        [f"UPDATE EVERY {duration_text(archive.update_every)}"]
        if archive.update_every is not None
        else []
    )
    return " ".join(parts)


def _explain(node: ast.Explain) -> str:
    format_ = "" if node.format is ast.ExplainFormat.TEXT else f"FORMAT {node.format}"
    target = (
        f"QUERY {name(node.target)}"
        if isinstance(node.target, ast.Ident)
        else _statement(node.target)
    )
    return _joined("EXPLAIN", "ANALYZE" if node.analyze else "", format_, target)


def _change(node: ast.Statement) -> str:
    match node:
        case ast.Insert(table, columns, rows, its_query):
            what = (
                query(its_query)
                if its_query is not None
                else f"VALUES {', '.join(map(_row, rows))}"
            )
            return _joined(
                f"INSERT INTO {name(table)}",
                f"({names(columns)})" if columns else "",
                what,
                _conflict(node.conflict),
                _at(node.at),
            )
        case ast.Update(table, assignments, where):
            changes = ", ".join(map(_part, assignments))
            return _joined(f"UPDATE {name(table)} SET {changes}", _where(where), _at(node.at))
        case ast.Delete(table, where):
            return _joined(f"DELETE FROM {name(table)}", _where(where), _at(node.at))
        case _:
            return print_connectors.text(node) or print_rights.text(node, _expressions)


def _conflict(node: ast.Conflict | None) -> str:
    if node is None:
        return ""
    key = f"({names(node.key)})" if node.key else ""
    if not node.assignments:
        return _joined("ON CONFLICT", key, "DO NOTHING")
    changes = ", ".join(map(_part, node.assignments))
    return _joined("ON CONFLICT", key, f"DO UPDATE SET {changes}", _where(node.where))


def _row(row: tuple[ast.Expr, ...]) -> str:
    return f"({_expressions.list(row)})"


def _where(where: ast.Expr | None) -> str:
    return f"WHERE {_expressions.text(where)}" if where is not None else ""


def _at(at: ast.Instant | None) -> str:
    return f"AT {instant(at)}" if at is not None else ""
