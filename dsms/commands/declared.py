"""What is declared, for catalogs of other systems: as one user may know of it."""

from __future__ import annotations

from collections.abc import Iterator

from dsms.rights.seen import seen
from dsms.running.runtime import Runtime
from dsms.sql.catalog import Catalog, FunctionDef, QueryDef
from dsms.sql.listed import Declared
from dsms.sql.types import Field


def declared(runtime: Runtime, user: str | None) -> tuple[Declared, ...]:
    """All that the user may know of."""
    catalog = seen(runtime.catalog, runtime.rights, user)
    return (*_objects(runtime, catalog), *map(_function, catalog.functions.values()))


def _objects(runtime: Runtime, catalog: Catalog) -> Iterator[Declared]:
    kinds = {"stream": catalog.streams, "table": catalog.tables, "query": catalog.queries}
    for kind, objects in kinds.items():
        for one in objects.values():  # type: ignore[attr-defined]
            key = () if isinstance(one, QueryDef) else one.key
            yield Declared(
                kind,
                one.name,
                catalog.columns(one),
                tuple(one.schema[k].name for k in key),
                runtime.comments.get(one.home),
                text=one.sql if catalog.sees_all else "",
            )


def _function(own: FunctionDef) -> Declared:
    takes = tuple(Field(name, type_) for name, type_ in own.parameters)
    return Declared(own.kind, own.name, takes, result=own.type, text=own.body)
