"""Functions that queries in data folders of tests call, and so may not change what they answer."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def doubled(x: pa.Array) -> pa.Array:
    """Twice the number."""
    return pc.multiply(x, 2.0)


class Middle:
    """The mean, with what leaves taken out."""

    def lift(self, x: pa.Array) -> pa.Array:
        """A sum and a count of each number."""
        return _pairs(x, pa.array([1] * len(x), pa.int64()))

    def combine(self, a: pa.Array, b: pa.Array) -> pa.Array:
        """Of both together."""
        return _pairs(pc.add(a.field(0), b.field(0)), pc.add(a.field(1), b.field(1)))

    def subtract(self, a: pa.Array, b: pa.Array) -> pa.Array:
        """What is left."""
        return _pairs(pc.subtract(a.field(0), b.field(0)), pc.subtract(a.field(1), b.field(1)))

    def lower(self, s: pa.Array) -> pa.Array:
        """The mean."""
        return pc.divide(s.field(0), pc.cast(s.field(1), pa.float64()))


class Chain:
    """Texts in the order of their rows."""

    def lift(self, k: pa.Array) -> pa.Array:
        """Each by itself."""
        return k

    def combine(self, a: pa.Array, b: pa.Array) -> pa.Array:
        """The older one first."""
        return pc.binary_join_element_wise(a, b, "")

    def lower(self, s: pa.Array) -> pa.Array:
        """The text."""
        return s


def _pairs(total: pa.Array, count: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([total, count], ["total", "count"])
