"""Functions in Python that statements may name: `dsms serve --functions examples/functions`.

CREATE FUNCTION celsius(f FLOAT) RETURNS FLOAT AS PYTHON 'weather:celsius';
CREATE AGGREGATE direction(degrees FLOAT) RETURNS FLOAT AS PYTHON 'weather:MeanDirection';
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

DEGREE = 0.017453292519943295  # in radians


def celsius(fahrenheit: pa.Array) -> pa.Array:
    """Temperatures of another scale."""
    return pc.divide(pc.multiply(pc.subtract(fahrenheit, 32.0), 5.0), 9.0)


class MeanDirection:
    """Where the wind comes from on average, in degrees: north is between 350 and 10."""

    def lift(self, degrees: pa.Array) -> pa.Array:
        """Of each value the point on a circle."""
        angle = pc.multiply(degrees, DEGREE)
        return _points(pc.sin(angle), pc.cos(angle))

    def combine(self, a: pa.Array, b: pa.Array) -> pa.Array:
        """Sums of points."""
        return _points(pc.add(a.field(0), b.field(0)), pc.add(a.field(1), b.field(1)))

    def lower(self, sums: pa.Array) -> pa.Array:
        """The directions of the sums, from 0 to 360."""
        found = pc.divide(pc.atan2(sums.field(0), sums.field(1)), DEGREE)
        return pc.if_else(pc.less(found, 0.0), pc.add(found, 360.0), found)


def _points(east: pa.Array, north: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([east, north], ["east", "north"])
