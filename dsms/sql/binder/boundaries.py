"""When a query is answered: EVERY at its end, or the SLIDE of its windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dsms.sql import ast
from dsms.sql.binder.context import Context
from dsms.sql.binder.windows import check_measure, check_zone, slide_in_time
from dsms.sql.codes import error
from dsms.sql.print_expressions import boundaries
from dsms.sql.printer import query
from dsms.sql.rewriting import replaced
from dsms.sql.window import Session, Slide, When, counts

TEN_SECONDS = ast.Slide(ast.Duration(10_000_000, ast.Unit.SECOND))
LONGEST = 400  # characters of a query that a hint repeats


def governing_slide(ctx: Context, whole: ast.Query, restore: bool) -> Slide | None:
    """EVERY, or the one SLIDE of its windows; DS309 if two differ, DS310 where a window does not
    fit.  A block that appends may have one of its own, in time, where there is another for the
    query (without `restore`, which looks into blocks at all instants)."""
    inside = {at for block in ctx.blocks for at in block}
    outer = [at for at in range(len(ctx.windows)) if at not in inside]
    said = None if whole.every is None else every_of(whole.every)
    found = _agreed(ctx, whole, outer, said)
    free = found is not None and not restore and not found.by_rows
    for block in ctx.blocks:
        own = _agreed(ctx, whole, block, None if free else found)
        if free and own is not None and own.by_rows:
            raise _two(ctx, whole, _first(ctx, block))
        found = found or own
    if found is not None and found.by_rows:
        _check_counted(ctx)
    if whole.every is not None and found is not None:
        for spec, at in ctx.windows:
            if spec.slide is None:
                check_measure(spec, found, at, word="EVERY")
    return found


def _check_counted(ctx: Context) -> None:
    """DS308 where a SLIDE counts rows beside episodes, which go by instants."""
    for spec, at in ctx.windows:
        if isinstance(spec, Session | When):
            message = "a SLIDE that counts rows can't stand beside SESSION or WHEN"
            raise error("DS308", message, at, "leave it out, and end the query with EVERY 10 s")


def _agreed(ctx: Context, whole: ast.Query, places: list[int], said: Slide | None) -> Slide | None:
    """The SLIDE of these windows, which is to be `said`, if that is given."""
    for spec, at in (ctx.windows[i] for i in places):
        if spec.slide is not None:
            said = said or spec.slide
            if spec.slide != said:
                raise _two(ctx, whole, at)
    return said


def _first(ctx: Context, places: list[int]) -> ast.Node:
    return next(at for spec, at in (ctx.windows[i] for i in places) if spec.slide is not None)


def every_of(slide: ast.Slide) -> Slide:
    """The boundaries that EVERY says.  Raises DS222, DS308, DS310."""
    if slide.time_zone is not None:
        check_zone(slide.time_zone, slide)
    return slide_in_time(slide)


def _two(ctx: Context, whole: ast.Query, at: ast.Node) -> Exception:
    """DS309, with the query as it can be said."""
    if whole.every is None:
        message = "one SLIDE governs a query, and this one differs from an earlier one"
    else:
        message = "EVERY says when the query is answered, and this SLIDE says otherwise"
    if isinstance(at, ast.TableRef):
        name = at.name.text
        message = f"{name} is answered at other boundaries than what reads it would be"
        hint = (
            f"read what enters its answer: FROM Istream({name}); or leave the other SLIDE or EVERY "
            "out"
        )
        return error("DS309", message, at, hint)
    place = (at.slide if isinstance(at, ast.Window) else None) or at
    hint = "leave SLIDE out of the windows, and say once when the query is answered: "
    return error("DS309", message, place, hint + _once(ctx, whole))


def _once(ctx: Context, whole: ast.Query) -> str:
    """The query with EVERY for all SLIDEs but those of blocks that append, if they can stay."""
    said = whole.every or _first_in_time(whole) or TEN_SECONDS
    counted = any(spec.slide is not None and spec.slide.by_rows for spec, _ in ctx.windows)
    inside = [] if counted or _restores(whole) else [at for block in ctx.blocks for at in block]
    kept = [ctx.windows[at][1] for at in inside]
    return _shown(replace(without_slides(whole, kept), every=said))


def _restores(whole: ast.Query) -> bool:
    return any(isinstance(o, ast.Output) and o.restore for o in ast.walk(whole))


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


def without_slides(whole: ast.Query, kept: Sequence[ast.Node] = ()) -> ast.Query:
    """The query with no SLIDE in any window but those that are `kept`, and no EVERY in a subquery
    that is no block which appends."""
    stay = {id(window) for window in kept}

    def _goes(part: ast.Query) -> bool:
        appends = any(isinstance(n, ast.Output) for n in ast.children(part.body))
        return part.every is not None and part is not whole and not (kept and appends)

    def bare(part: ast.Node) -> ast.Node | None:
        if isinstance(part, ast.Query) and _goes(part):
            found: ast.Query = replaced(replace(part, every=None), bare, within_queries=True)
            return found
        if not isinstance(part, ast.Window):
            return None
        return part if id(part) in stay else replace(part, slide=None)

    made: ast.Query = replaced(whole, bare, within_queries=True)
    return made


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
