"""What may be read of archives: FROM ARCHIVE s [window], and s [window ARCHIVE].

Both are for one-time queries.  The first is a window over what is archived, as far as that goes;
the second is the window itself, live and archived rows together, so it may not reach back further
than the archive keeps rows.
"""

from __future__ import annotations

from math import inf
from typing import assert_never

from dsms.sql import ast
from dsms.sql.binder.context import Context
from dsms.sql.catalog import QueryDef, StreamDef, TableDef
from dsms.sql.codes import error
from dsms.sql.literals import duration_text
from dsms.sql.logical import Archived, Node, Project, Select, StreamScan, children
from dsms.sql.unbind import duration
from dsms.sql.window import (
    First,
    Landmark,
    Lasting,
    Latest,
    Now,
    Partitioned,
    Rows,
    Session,
    Throttled,
    Time,
    Unbounded,
    When,
    WindowSpec,
)


def rows_of(ctx: Context, found: StreamDef | TableDef | QueryDef, ref: ast.TableRef) -> StreamDef:
    """The rows of FROM ARCHIVE, as a stream's.  Raises DS390, DS391."""
    if isinstance(found, TableDef):
        message = f"{found.name} is a table, and tables have no archive"
        raise error("DS390", message, ref.name, "leave ARCHIVE out: a table is read as it stands")
    _check_once(ctx, ref)
    _check_declared(found, ref.name)
    if isinstance(found, StreamDef):
        return found
    return StreamDef(
        found.name,
        found.schema,
        archive=True,
        archive_for=found.archive_for,
        archive_cluster=found.archive_cluster,
        archive_every=found.archive_every,
    )


def alone(found: StreamDef | TableDef | QueryDef) -> Archived:
    """The archived part and nothing else."""
    return Archived("query" if isinstance(found, QueryDef) else "stream")


def beside_live(ctx: Context, stream: StreamDef, window: ast.Window) -> Archived:
    """The archived part and the live one.  Raises DS390, DS391."""
    _check_once(ctx, window)
    _check_declared(stream, window)
    return Archived("stream", live=True)


def leaf_of(child: Node) -> StreamScan | None:
    """The stream right below, or below what a user may see of it; None below a subquery."""
    while isinstance(child, Select | Project):
        child = child.child
    return child if isinstance(child, StreamScan) else None


def check_window(child: StreamScan | None, spec: WindowSpec, window: ast.Window) -> None:
    """Whether an archive can answer that window over a leaf.  Raises DS357, DS391, DS392."""
    if child is None or child.archive is None:
        message = (
            "only the window of a stream reaches into an archive: results of a subquery are "
            "not archived"
        )
        raise error(
            "DS391", message, window, "write ARCHIVE into the windows of the streams inside"
        )
    if window.archive and not child.archive.live:
        message = (
            "FROM ARCHIVE reads the archived part alone, and this window asks for the live "
            "part, too"
        )
        raise error("DS391", message, window, "leave one of the two out")
    lookback = _reach(spec, window)
    if child.archive.live:
        _check_reach(child.stream, lookback, window)


def check_appended(node: Node, at: ast.Node) -> None:
    """Results of INTERNAL windows depend on all that ever came, one by one.  Raises DS391."""
    if reads_archive(node):
        message = (
            "what INTERNAL windows, Wstream or Istream append is made as rows come, and an "
            "archive is read as a whole"
        )
        hint = (
            "leave INTERNAL out (or Wstream, or Istream), or read the live stream: leave "
            "ARCHIVE out"
        )
        raise error("DS391", message, at, hint)


def reads_archive(node: Node) -> bool:
    """Whether there is an archive below."""
    return (isinstance(node, StreamScan) and node.archive is not None) or any(
        map(reads_archive, children(node))
    )


def _reach(spec: WindowSpec, window: ast.Window) -> float:
    """How many µs an archive must go back to have all of the window; of ROWS n and SINCE that shows
    when asked."""
    match spec:
        case Time():
            return spec.length
        case Rows() | Landmark():
            return 0
        case Partitioned(age=int(age)):
            return age
        case Partitioned() | Unbounded() | Latest():
            return inf
        case Session() | When():
            message = "episodes begin and end as rows come, and an archive is read as a whole"
            raise error("DS391", message, window, "leave ARCHIVE out, or write a RANGE")
        case Throttled() | First():
            message = "which rows such a window lets in depends on all that came before"
            hint = "leave ARCHIVE out, or ask with GROUP BY over FROM ARCHIVE"
            raise error("DS357", message, window, hint)
        case Lasting():
            message = "rows that say how long they are in a window are not looked for in an archive"
            hint = "leave ARCHIVE out, or say it in WHERE over FROM ARCHIVE"
            raise error("DS357", message, window, hint)
        case Now():
            message = "NOW holds the rows of this very instant, which are not archived yet"
            raise error("DS391", message, window, "leave ARCHIVE out, or write a RANGE")
        case _:
            assert_never(spec)


def _check_reach(stream: StreamDef, lookback: float, window: ast.Window) -> None:
    """A window that can't be whole is an error, never a silent part."""
    keeps = stream.archive_for
    if keeps is None or lookback <= keeps:
        return
    kept = duration_text(duration(keeps))
    message = (
        f"the archive of {stream.name} keeps rows for {kept}, and this window reaches back further"
    )
    hint = f"write [RANGE {kept} ARCHIVE], or FROM ARCHIVE {stream.name} for whatever is archived"
    raise error("DS392", message, window, hint)


def _check_once(ctx: Context, at: ast.Node) -> None:
    if ctx.persistent:
        message = (
            "a persistent query follows what comes, and nothing comes to an archive that it "
            "has not seen live"
        )
        raise error("DS391", message, at, "ask once (without CREATE QUERY), or widen the windows")


def _check_declared(found: StreamDef | QueryDef, at: ast.Node) -> None:
    if not found.archive:
        what = "STREAM" if isinstance(found, StreamDef) else "QUERY"
        message = f"{what.lower()} {found.name} has no archive"
        raise error(
            "DS390",
            message,
            at,
            f"declare it with one: CREATE {what} {found.name} ... ARCHIVE FOR 30 DAYS",
        )
