"""When a query is answered: EVERY at its end, or the SLIDE of its windows."""

from __future__ import annotations

from dataclasses import replace

from dsms.sql import ast
from dsms.sql.binder.context import Context
from dsms.sql.binder.windows import check_measure, check_zone, slide_in_time
from dsms.sql.codes import error
from dsms.sql.printer import boundaries, query
from dsms.sql.rewriting import replaced
from dsms.sql.window import Slide, counts

TEN_SECONDS = ast.Slide(ast.Duration(10_000_000, ast.Unit.SECOND))
LONGEST = 400  # characters of a query that a hint repeats


def governing_slide(ctx: Context, whole: ast.Query) -> Slide | None:
    """EVERY, or the one SLIDE of its windows; DS309 if two differ, DS310 where a window does not
    fit."""
    first = None if whole.every is None else _every(whole.every)
    for spec, at in ctx.windows:
        if spec.slide is not None:
            first = first or spec.slide
            if spec.slide != first:
                raise _two(whole, at)
        elif whole.every is not None and first is not None:
            check_measure(spec, first, at, word="EVERY")
    return first


def _every(slide: ast.Slide) -> Slide:
    if slide.time_zone is not None:
        check_zone(slide.time_zone, slide)
    return slide_in_time(slide)


def _two(whole: ast.Query, at: ast.Node) -> Exception:
    """DS309, with the query as it can be said."""
    if whole.every is None:
        message = "one SLIDE governs a query, and this one differs from an earlier one"
    else:
        message = "EVERY says when the query is answered, and this SLIDE says otherwise"
    place = (at.slide if isinstance(at, ast.Window) else None) or at
    hint = "leave SLIDE out of the windows, and say once when the query is answered: "
    return error("DS309", message, place, hint + _once(whole))


def _once(whole: ast.Query) -> str:
    """The query with EVERY for all SLIDEs."""
    said = whole.every or _first_in_time(whole) or TEN_SECONDS
    return _shown(replace(without_slides(whole), every=said))


def at_boundaries(whole: ast.Query) -> str:
    """The query with an EVERY for those who have not thought of one."""
    return _shown(replace(whole, every=TEN_SECONDS))


def _shown(whole: ast.Query) -> str:
    text = query(whole)
    if len(text) <= LONGEST or whole.every is None:
        return text
    return f"... {boundaries(whole.every, 'EVERY')}"


def _first_in_time(whole: ast.Query) -> ast.Slide | None:
    slides = (w.slide for w in ast.walk(whole) if isinstance(w, ast.Window) and w.slide)
    return next((s for s in slides if not isinstance(s.every, int)), None)


def without_slides(whole: ast.Query) -> ast.Query:
    """The query with no SLIDE in any window."""

    def bare(part: ast.Node) -> ast.Node | None:
        return replace(part, slide=None) if isinstance(part, ast.Window) else None

    found: ast.Query = replaced(whole, bare, within_queries=True)
    return found


def check_restore(ctx: Context, output: ast.Output, slide: Slide | None) -> None:
    """Restore reports what lived between two evaluations: EVERY says when these are, or one SLIDE
    that every window shares; DS311.

    Where it counts rows, windows that count none can't say it: they are looked at after the same
    rows."""
    name = f"{output.kind.value}-restore"
    if ctx.every is not None:
        return
    by_rows = slide is not None and slide.by_rows
    for spec, at in ctx.windows:
        if spec.slide is None and (counts(spec) or not by_rows):
            hint = (
                "write [RANGE t SLIDE s] with the same s on every window, or end the query with "
                "EVERY s; or leave -restore out"
            )
            message = f"{name} needs the same SLIDE on all windows, and this one has none"
            raise error("DS311", message, at, hint)
    if not ctx.windows:
        message = f"{name} needs windows with a SLIDE: without one, no result is missed"
        raise error("DS311", message, output, "write [RANGE t SLIDE s], or leave -restore out")
