"""Structs made, taken apart and converted, a whole column at a time (`dsms.structs`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from dsms import lists, structs
from dsms.operators.expressions.arithmetic import refuse
from dsms.operators.expressions.arrays import Value, blank, spread
from dsms.operators.expressions.errors import CAST, ErrorCounter
from dsms.operators.expressions.growth import admitted, sizes_of
from dsms.operators.expressions.node import Builder, Built, Node, length
from dsms.sql.expr import Call
from dsms.sql.types import Kind, Type


def parsed(to: Type) -> Built:
    """The kernel from STRING to a STRUCT."""
    fields = to.spelled_fields

    def kernel(errors: ErrorCounter, x: pa.Array) -> pa.Array:
        found, bad = structs.canonical(x, fields)
        if bad.any():
            sample = x[int(np.flatnonzero(bad)[0])].as_py()
            errors.add(int(bad.sum()), CAST, f"'{sample[:40]}' is no {to}")
        return found

    return Built(kernel, True, True)


def converted(source: Type, to: Type, casts: Sequence[Built]) -> Built:
    """The kernel from one STRUCT to another, whose fields are cast one by one."""
    fallible = any(cast.fallible for cast in casts)

    def kernel(errors: ErrorCounter, x: pa.Array) -> pa.Array:
        columns = structs.values(x, source.spelled_fields)
        made, bad = [], np.zeros(len(x), np.bool_)
        for column, cast, (_, type_) in zip(columns, casts, to.fields, strict=True):
            out = cast.kernel(errors.probe(), column)
            bad |= _nulls(out) & ~_nulls(column)
            made.append(out if out.type == type_.arrow else out.cast(type_.arrow))
        found = structs.made(made, to.spelled_fields, x.is_valid() if x.null_count else None)
        return refuse(errors, found, bad, [x], CAST, f"a field of a {source} is none of {to}")

    return Built(kernel, fallible, True)


def _nulls(x: pa.Array) -> np.ndarray:
    return x.is_null().to_numpy(zero_copy_only=False)


def _named_struct(call: Call, args: Sequence[Node]) -> Built:
    types = [str(t) for _, t in call.type.fields]
    names = [name for name, _ in call.type.fields]
    around = sum(len(key.encode()) + 4 for key in structs.keys_of(names))

    def kernel(errors: ErrorCounter, *xs: Value) -> pa.Array:
        n = length(*xs)
        pairs = zip(xs, types, strict=True)
        parts = [lists.spelled_items(spread(x, n), sql) for x, sql in pairs]
        sizes = sum((sizes_of(p) for p in parts), np.full(1, around))
        first = admitted(errors, parts[0], sizes, (), "a struct")
        found = structs.joined([first, *parts[1:]], names)
        return blank(found, _nulls(first)) if first.null_count else found

    return Built(kernel, True, True)


def _struct_extract(call: Call, args: Sequence[Node]) -> Built:
    fields = args[0].type.spelled_fields
    at = [name for name, _ in fields].index(str(call.params[0]))

    def kernel(errors: ErrorCounter, x: pa.Array) -> pa.Array:
        return structs.value(x, fields, at)

    return Built(kernel, False, call.type.kind is Kind.STRING)


BUILDERS: dict[str, Builder] = {"named_struct": _named_struct, "struct_extract": _struct_extract}
