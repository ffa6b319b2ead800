"""One column of whatever library -> an Arrow array that loses nothing, or a list of values where
Arrow has no form.

lists, NumPy    see `arrays`
pandas          missing values (NaN, NaT, NA, None) are NULL; sparse, nullable, Arrow-backed and
                categorical columns; a Period is its start; columns of objects as lists
polars, Arrow   as they are
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from dsms.forms.arrays import PROBLEMS, Unreadable, Values, from_numpy, listed, sound


def array_of(column: Any) -> Values:
    """The column of a table, a dict or a frame.  Raises Unreadable."""
    try:
        return sound(_read(column))
    except PROBLEMS as problem:
        lines = str(problem).splitlines()
        why = f" ({lines[0]})" if lines and lines[0] else ""
        raise Unreadable(f"{_named(column)} that can't be read{why}") from None


def _read(column: Any) -> Values:
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return column
    if isinstance(column, np.ndarray):
        return from_numpy(column)
    if is_from(column, "pandas"):
        from dsms.forms.pandas import from_pandas

        return from_pandas(column)
    if is_from(column, "polars"):
        return _from_polars(column)
    for form, read in (("__arrow_c_stream__", pa.chunked_array), ("__arrow_c_array__", pa.array)):
        if hasattr(column, form):
            return read(column)
    if hasattr(column, "__array__"):
        return from_numpy(np.asarray(column))
    return listed(list(column))


def _from_polars(series: Any) -> Values:
    if str(series.dtype) == "Object":  # whose export holds addresses
        return listed(series.to_list())
    try:
        return pa.chunked_array(series)
    except PROBLEMS:
        return listed(series.to_list())


def _named(column: Any) -> str:
    dtype = getattr(column, "dtype", None)
    return f"a {type(column).__name__}" + ("" if dtype is None else f" of {dtype}")


def is_from(thing: Any, package: str) -> bool:
    """Whether the thing's class belongs to the package, without importing it."""
    return type(thing).__module__.partition(".")[0] == package
