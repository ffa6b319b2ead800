"""Streams of subqueries that a WINDOW at the end of the SELECT around them does not reach."""

from __future__ import annotations

from collections.abc import Iterator

from dsms.sql import ast
from dsms.sql.catalog import Catalog, StreamDef
from dsms.sql.printer import to_sql


def without_window(query: ast.Query, catalog: Catalog) -> tuple[str, ...]:
    """A sentence for each stream that stands without a window inside of a SELECT with WINDOW."""
    found = [
        (select.window, ref)
        for select in ast.walk(query)
        if isinstance(select, ast.Select) and select.window is not None
        for ref in _inside(select, catalog)
    ]
    return tuple(dict.fromkeys(_sentence(window, ref) for window, ref in found))


def _inside(select: ast.Select, catalog: Catalog) -> Iterator[ast.TableRef]:
    """Of the subqueries of a block, but for those that have a WINDOW of their own."""
    for part in ast.children(select):
        for inner in _blocks(part):
            for item in inner.from_:
                yield from _streams(item, catalog)
            yield from _inside(inner, catalog)


def _blocks(node: ast.Node) -> Iterator[ast.Select]:
    """The outermost blocks below a node; none below one that has a WINDOW."""
    if isinstance(node, ast.Select):
        if node.window is None:
            yield node
        return
    for child in ast.children(node):
        yield from _blocks(child)


def _streams(item: ast.FromItem, catalog: Catalog) -> Iterator[ast.TableRef]:
    match item:
        case ast.TableRef(name=name, window=None):
            if isinstance(catalog.find(name.text, name.quoted), StreamDef):
                yield item
        case ast.Join(left=left, right=right):
            yield from _streams(left, catalog)
            yield from _streams(right, catalog)


def _sentence(window: ast.Window, ref: ast.TableRef) -> str:
    name = ref.name.text
    return (
        f"WINDOW stands over the streams of its own FROM, and {name} in a subquery has no window: "
        f"write {name} [{to_sql(window)}] there"
    )
