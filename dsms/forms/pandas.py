"""Columns of pandas -> Arrow arrays or lists.  Imported only where a column of pandas has come."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dsms.forms.arrays import Unreadable, Values, from_numpy, inferred


def from_pandas(column: Any) -> Values:
    """A Series, an Index or an array of pandas.  Raises Unreadable."""
    column = pd.Series(column)
    dtype = column.dtype
    if isinstance(dtype, pd.SparseDtype):
        return from_pandas(column.sparse.to_dense())
    if isinstance(dtype, pd.PeriodDtype):
        return from_pandas(column.dt.to_timestamp(how="start"))
    if isinstance(dtype, pd.IntervalDtype):
        raise Unreadable(
            f"a Series of {dtype}", "an interval has two ends: send them as two columns"
        )
    if isinstance(dtype, pd.CategoricalDtype) and not _is_plain(dtype.categories.dtype):
        return from_pandas(column.astype(dtype.categories.dtype))
    if pd.api.types.is_object_dtype(dtype):
        return _objects(column)
    if isinstance(dtype, np.dtype):
        return _from_numpy(column)
    return pa.Array.from_pandas(column)


def _is_plain(dtype: Any) -> bool:
    """Whether Arrow's dictionary of such categories holds their values."""
    return isinstance(dtype, (np.dtype, pd.StringDtype)) and not pd.api.types.is_object_dtype(dtype)


def _objects(column: pd.Series) -> Values:
    try:
        missing = column.isna().to_numpy()
    except ArithmeticError:  # a signaling NaN among Decimals, which is no gap
        missing = np.array([not _signals(v) and bool(pd.isna(v)) for v in column], bool)
    values = [None if gone else value for value, gone in zip(column.tolist(), missing, strict=True)]
    array = inferred(values)
    return values if array is None else array


def _signals(value: Any) -> bool:
    return isinstance(value, Decimal) and value.is_snan()


def _from_numpy(column: pd.Series) -> Values:
    values = column.to_numpy()
    if values.dtype.isnative and (
        values.dtype.kind in "biumM" or (values.dtype.kind == "f" and values.itemsize <= 8)
    ):
        return pa.Array.from_pandas(column)
    if values.dtype.kind == "f":
        values = np.ma.masked_where(np.isnan(values), values)
    return from_numpy(values)
