"""SESSION and WHEN: windows of episodes, which look at the columns of rows."""

from __future__ import annotations

from dataclasses import replace

from dsms.sql import ast
from dsms.sql.binder import durations
from dsms.sql.binder.context import Context
from dsms.sql.binder.expressions import Env, bind, bind_condition
from dsms.sql.binder.scope import Scope
from dsms.sql.binder.windows import keys_of
from dsms.sql.codes import error
from dsms.sql.expr import NOW, Call, Expr, Lit, walk
from dsms.sql.types import INTERVAL, NULL
from dsms.sql.window import Session, When


def extent(ctx: Context, window: ast.Window, scope: Scope) -> Session | When | None:
    """What such a window is, but for its options; None: it is another one."""
    scope = replace(scope, parent=None)
    match window:
        case ast.SessionWindow():
            return _session(ctx, window, scope)
        case ast.WhenWindow():
            return _when(ctx, window, scope)
        case _:
            return None


def _session(ctx: Context, window: ast.SessionWindow, scope: Scope) -> Session:
    """Raises DS227, DS307, DS338 for a gap that is no length."""
    by = keys_of(window.by, scope)
    if isinstance(window.gap, ast.Duration):
        return Session(durations.fixed(window.gap, "the gap of SESSION"), by)
    gap = _of_row(bind(Env(ctx, scope, "SESSION"), window.gap), window.gap)
    if gap.type not in (INTERVAL, NULL):
        hint = "write SESSION 10 s, or an INTERVAL such as SESSION (n * INTERVAL '1' SECOND)"
        message = f"the gap of SESSION is an INTERVAL, and this is {gap.type}"
        raise error("DS338", message, window.gap, hint)
    if not isinstance(gap, Lit):
        return Session(gap, by)
    if not isinstance(gap.value, int) or gap.value <= 0:
        hint = "write a length such as SESSION 10 s"
        raise error("DS307", "sessions of that gap hold nothing", window.gap, hint)
    return Session(gap.value, by)


def _when(ctx: Context, window: ast.WhenWindow, scope: Scope) -> When:
    start = bind_condition(Env(ctx, scope, "WHEN"), window.start)
    stop = bind_condition(Env(ctx, scope, "UNTIL"), window.stop)
    return When(_of_row(start, window.start), _of_row(stop, window.stop), keys_of(window.by, scope))


def _of_row(expr: Expr, at: ast.Node) -> Expr:
    """DS338 for what is no function of the row."""
    if any(isinstance(e, Call) and e.fn == NOW for e in walk(expr)):
        message = "SESSION and WHEN look at each row as it comes, and NOW() is of the answer"
        raise error("DS338", message, at, "compare with a column of the row")
    return expr
