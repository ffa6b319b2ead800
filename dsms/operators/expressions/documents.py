"""JSON_VALUE, JSON_EXISTS and JSON_ITEMS: values out of texts of JSON (`json_walk`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from dsms import lists
from dsms.operators.expressions import json_items, json_walk
from dsms.operators.expressions.arithmetic import refuse
from dsms.operators.expressions.arrays import Value, blank, from_bits, spread
from dsms.operators.expressions.errors import ARGUMENT, ErrorCounter
from dsms.operators.expressions.growth import sizes_of
from dsms.operators.expressions.json_walk import Steps, steps_of
from dsms.operators.expressions.node import Builder, Built, Node, length
from dsms.operators.expressions.slices import data_of, offsets_of
from dsms.sql.expr import Call
from dsms.sql.functions.paths import path_of

LONGEST = 1 << 20  # bytes of one document
Of = Callable[[pa.Array, Steps], pa.Array]  # what is answered of what the path leads to


def _value(x: pa.Array, steps: Steps) -> pa.Array:
    """Of a scalar; None for others, for null, and for halves of characters."""
    octets, offsets, there = json_walk.texts(data_of(x), offsets_of(x), steps)
    parts = [None if there.all() else from_bits(there).buffers()[1], pa.py_buffer(offsets)]
    return pa.Array.from_buffers(pa.string(), len(x), [*parts, pa.py_buffer(octets)])


def _exists(x: pa.Array, steps: Steps) -> pa.Array:
    return from_bits(json_walk.exist(data_of(x), offsets_of(x), steps))


def _items(x: pa.Array, steps: Steps) -> pa.Array:
    """Of a list; longer ones than a list may be are None."""
    starts, there, (octets, offsets, some) = json_items.items(data_of(x), offsets_of(x), steps)
    parts = [None if some.all() else from_bits(some).buffers()[1], pa.py_buffer(offsets)]
    texts = pa.Array.from_buffers(pa.string(), len(some), [*parts, pa.py_buffer(octets)])
    made = lists.made(starts, texts, "STRING")
    return blank(made, ~there | (np.diff(starts) > lists.MOST))


def _asking(of: Of) -> Builder:
    def build(call: Call, args: Sequence[Node]) -> Built:
        const = args[1].const
        path = path_of(str(const.as_py())) if const is not None else None
        assert path is not None  # the binder has checked it
        steps = steps_of(path)

        def kernel(errors: ErrorCounter, x: Value, _: Value) -> pa.Array:
            x = spread(x, length(x, _))
            long = sizes_of(x) > LONGEST
            shorter = blank(x, long) if long.any() else x
            found = of(shorter, steps)
            found = blank(found, np.asarray(shorter.is_null())) if shorter.null_count else found
            why = f"a document of JSON has at most {LONGEST} bytes"
            return refuse(errors, found, long, [x], ARGUMENT, why)

        return Built(kernel, True)

    return build


BUILDERS: dict[str, Builder] = {
    "json_value": _asking(_value),
    "json_exists": _asking(_exists),
    "json_items": _asking(_items),
}
