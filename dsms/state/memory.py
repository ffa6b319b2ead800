"""Memory by its address, for kernels over arrays of many sub-windows: an int64 as a pointer, and an
array that begins there.  Where nothing is compiled (``NUMBA_DISABLE_JIT=1``) it is read as Python
can, value by value."""

from __future__ import annotations

import ctypes
from typing import Any

import numba
import numpy as np
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def _pointer(typing, address):  # type: ignore[no-untyped-def]
    """An int64 as a pointer."""

    def made(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(address), made


class _Memory:
    """What begins at an address, without an end, as numba.carray gives it to what is compiled."""

    def __init__(self, address: int, shape: tuple[int], dtype: Any) -> None:
        self._address, self._dtype = address, np.dtype(dtype)

    def __getitem__(self, at: int) -> Any:
        size = self._dtype.itemsize
        octets = ctypes.string_at(self._address + size * int(at), size)
        return np.frombuffer(octets, self._dtype)[0]


pointer: Any = int if config.DISABLE_JIT else _pointer
carray: Any = _Memory if config.DISABLE_JIT else numba.carray
