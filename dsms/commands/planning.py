"""Planning apart: a big statement is bound and rewritten in another thread, over the catalog as it
was when that began; where the catalog has changed meanwhile, once more.

A plan is a function of the statement, the catalog and the measured figures.  All three are at hand
when it begins, so nothing of the engine is touched until it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from dsms.api import Cancel
from dsms.commands.slices import Apart, Free
from dsms.operators.expressions import foresee
from dsms.plan.parts import expressions_of, keys_of
from dsms.plan.physical import Phys
from dsms.running.runtime import Runtime
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.catalog import Catalog, Option
from dsms.sql.looking import looking

T = TypeVar("T")
Planner = Callable[[lp.Output, Iterable[tuple[str, Option]]], Phys]
See = Callable[[], Catalog]
LONG = 2000  # characters from which a statement is planned apart,
MANY = 4  # ... or relations in FROM: orders of joins are searched
TRIES = 3  # after which the catalog is not left alone any more


def is_big(statement: ast.Node, text: str) -> bool:
    """Whether planning it may take long."""
    if len(text) > LONG:
        return True
    return sum(isinstance(part, ast.TableRef) for part in ast.walk(statement)) > MANY


def planned(
    runtime: Runtime,
    see: See,
    work: Callable[[Catalog, Planner], T],
    cancel: Cancel | None,
    apart: bool,
    shared: bool = False,
) -> Free[T]:
    """What `work` makes of the catalog and of a planner, made `apart` if it is big.

    work    touches nothing but what it is given
    see     gives the catalog as who asks sees it now
    shared  of a query that may have parts of its plan in common with others"""
    ask = None if cancel is None else cancel.check
    for _ in range(TRIES if apart else 0):
        there, catalog, planner = _There.now(runtime), _copied(see()), runtime.planner(shared)

        def do(catalog: Catalog = catalog, planner: Planner = planner) -> T:
            with looking(ask):
                return work(catalog, planner)

        task = Apart(do)
        yield task
        found = task.result()
        if there.still(runtime):
            return found
    return work(see(), runtime.planner(shared))


def foreseen(node: lp.Node, phys: Phys | None = None) -> None:
    """Have at hand what is asked of a big plan when it begins to work: in the thread in which it is
    planned."""
    for expr in expressions_of(node if phys is None else phys.node):
        foresee(expr)
    if phys is not None:
        keys_of(phys, answers=False)


def _copied(catalog: Catalog) -> Catalog:
    """The catalog as it is now."""
    return replace(
        catalog,
        streams=dict(catalog.streams),
        tables=dict(catalog.tables),
        queries=dict(catalog.queries),
        plans=dict(catalog.plans),
    )


@dataclass(frozen=True, slots=True)
class _There:
    """What was declared, and who might do what."""

    objects: tuple[Mapping[str, Any], ...]
    rights: object

    @staticmethod
    def now(runtime: Runtime) -> _There:
        kinds: tuple[Mapping[str, Any], ...] = (
            runtime.inputs,
            runtime.catalog.streams,
            runtime.catalog.tables,
            runtime.tables,
            runtime.queries,
        )
        return _There(tuple(dict(kind) for kind in kinds), runtime.rights)

    def still(self, runtime: Runtime) -> bool:
        """Whether all is as it was."""
        now = _There.now(runtime)
        return now.rights is self.rights and all(
            a.keys() == b.keys() and all(a[k] is b[k] for k in a)
            for a, b in zip(self.objects, now.objects, strict=True)
        )
