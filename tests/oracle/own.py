"""Functions and aggregates in Python, from what their contract says: a function is called for each
row by itself; of an aggregate each row is lifted by itself, the states are combined from the
oldest on, one after the other, and the last one is lowered.

What a place names is loaded from the folder that `define` was told, into this process.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pyarrow as pa

from dsms.sql.expr import AggCall, Call
from dsms.sql.types import Kind, Type
from tests.oracle.lists import packed, unpacked
from tests.oracle.values import Value

_folders: list[Path] = []


def define(folder: Path) -> None:
    """From now on modules of that folder are what statements name."""
    if folder not in _folders:
        _folders.insert(0, folder)
        _module.cache_clear()


@cache
def _module(name: str) -> Any:
    for folder in _folders:
        spec = spec_from_file_location(f"{name} of the oracle", folder / f"{name}.py")
        assert spec is not None and spec.loader is not None
        if Path(str(spec.origin)).is_file():
            made = module_from_spec(spec)
            spec.loader.exec_module(made)
            return made
    raise LookupError(f"no folder has {name}.py")


def _found(call: AggCall | Call) -> Any:
    """What it names."""
    module, _, name = str(call.params[0]).partition(":")
    return getattr(_module(module), name)


def _seen(type_: Type) -> pa.DataType:
    match type_.kind:
        case Kind.TIMESTAMP:
            return pa.timestamp("us", "UTC")
        case Kind.INTERVAL:
            return pa.duration("us")
        case Kind.DECIMAL:
            return pa.decimal128(type_.precision, type_.scale)
    return {
        Kind.INT: pa.int64(),
        Kind.FLOAT: pa.float64(),
        Kind.BOOL: pa.bool_(),
        Kind.BYTES: pa.binary(),
    }.get(type_.kind, pa.string())


def _one(value: Value, type_: Type) -> pa.Array:
    return pa.array([value], _seen(type_))


def _value(made: Any, type_: Type) -> Value:
    """The only one of what was given, as a value of the type."""
    array = made if isinstance(made, pa.Array) else pa.array(made)
    found = array.cast(_seen(type_))
    if type_.kind in (Kind.TIMESTAMP, Kind.INTERVAL):
        found = found.cast(pa.int64())
    (value,) = found.to_pylist()
    if type_.kind is Kind.LIST and value is not None:
        return packed(unpacked(value, type_), type_)
    return value


def function(call: Call, evaluate: Any) -> Value:
    """A call in an expression; NULLs go in as they are."""
    args = [_one(evaluate(a), a.type) for a in call.args]
    return _value(_found(call)(*args), call.type)


def aggregate(args: Sequence[tuple[Value, ...]], call: AggCall) -> Value:
    """Over the rows of a group, the oldest first; rows with a NULL don't take part."""
    how, state = _found(call)(), None
    for row in args:
        if any(v is None for v in row):
            continue
        given = [_one(v, a.type) for v, a in zip(row, call.args, strict=True)]
        lifted = how.lift(*given)
        state = lifted if state is None else how.combine(state, lifted)
    return None if state is None else _value(how.lower(state), call.type)
