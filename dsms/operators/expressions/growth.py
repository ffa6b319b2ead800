"""Text that functions make: its size is computed before it is made, and large batches are worked on
in parts.

    MOST     bytes of one text: past it the function fails for that row (DS705), whatever the other
             rows are
    AT_ONCE  bytes that one evaluation makes: past it the rows are cut in parts that take turns
             (`made`)

What an expression gives for a whole batch is held against the room of its query or statement
(`ErrorCounter.room`).  Kernels of functions whose result may be longer than their arguments call
`admitted` first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from dsms.errors import UsageError
from dsms.operators.expressions.arrays import Value, blank, present
from dsms.operators.expressions.errors import ARGUMENT, ErrorCounter
from dsms.operators.expressions.made import InParts, Texts
from dsms.operators.expressions.slices import offsets_of

MOST = 1 << 24
CELLS = 1 << 23  # rows times nodes of an expression, at once
SHORT = 256  # bytes of a constant that is copied for each row without being counted

Run = Callable[[Sequence[pa.Array], int, ErrorCounter], pa.Array]


def bytes_of(x: pa.Array) -> int:
    """Bytes of all texts of a STRING or BYTES array."""
    if len(x) == 0:
        return 0
    ends = np.frombuffer(x.buffers()[1], np.int32)
    return int(ends[x.offset + len(x)]) - int(ends[x.offset])


def sizes_of(x: Value) -> np.ndarray:
    """int64 bytes of each text, 0 for NULL; of a constant, one number."""
    if isinstance(x, pa.Scalar):
        return np.array([x.as_buffer().size if x.is_valid else 0], np.int64)
    sizes = np.diff(offsets_of(x))
    here = present(x)
    return sizes if here is None else np.where(here, sizes, 0)


def admitted(
    errors: ErrorCounter, x: pa.Array, sizes: np.ndarray, others: Sequence[Value], what: str
) -> pa.Array:
    """`x`, the first argument of a function, with NULL where its result would be too long (which is
    counted).

    sizes   int64: bytes of each row's result, or more
    others  the other arguments: a row in which one is NULL makes nothing
    """
    for arg in (x, *others):
        here = present(arg)
        sizes = sizes if here is None else np.where(here, sizes, 0)
    sizes = np.broadcast_to(sizes, len(x))
    bad = sizes > MOST
    if errors.texts is not None and not errors.texts.fits(int(sizes.sum(where=~bad))):
        bad = sizes > 0
    if not bad.any():
        return x
    errors.add(int(bad.sum()), ARGUMENT, f"{what} is too long: {MOST} bytes are the most")
    return blank(x, bad)


def measured(run: Run) -> Run:
    """An evaluator of texts whose results are counted."""

    def counted(cols: Sequence[pa.Array], n: int, errors: ErrorCounter) -> pa.Array:
        found = run(cols, n, errors)
        if errors.texts is not None:
            errors.texts.made += bytes_of(found)
        return found

    return counted


def repeated(size: int, n: int, errors: ErrorCounter) -> None:
    """A constant of so many bytes is about to be copied for n rows.  Raises InParts."""
    if errors.texts is not None:
        errors.texts.fits(size * n)


def in_turns(run: Run, nodes: int) -> Run:
    """An evaluator of an expression with so many nodes, by as many rows at a time as may be."""
    most = max(CELLS // nodes, 1)

    def evaluate(cols: Sequence[pa.Array], n: int, errors: ErrorCounter) -> pa.Array:
        done: list[pa.Array] = []
        size = 0
        for part in _parts(run, cols, n, most, errors):
            if pa.types.is_string(part.type) or pa.types.is_binary(part.type):
                size += bytes_of(part)
                if size > errors.room:
                    raise full(errors)
            done.append(part)
        return done[0] if len(done) == 1 else pa.concat_arrays(done)

    return evaluate


def full(errors: ErrorCounter) -> UsageError:
    """DS630 or DS633."""
    return UsageError(
        errors.full,
        f"an expression makes more than {errors.room >> 20} MiB of text for one batch of rows, "
        "which is the limit",
        hint="take fewer rows at once, or shorter texts",
    )


def _parts(
    run: Run, cols: Sequence[pa.Array], n: int, most: int, errors: ErrorCounter
) -> Iterator[pa.Array]:
    todo = [(start, min(most, n - start)) for start in range(0, max(n, 1), most)][::-1]
    while todo:
        start, count = todo.pop()
        attempt = ErrorCounter(errors.mode, texts=Texts(count))
        part = cols if count == n else [c.slice(start, count) for c in cols]
        try:
            found = run(part, count, attempt)
        except InParts as much:
            step = -(-count // min(max(much.parts, 2), count))
            todo += [(k, min(step, start + count - k)) for k in range(start, start + count, step)][
                ::-1
            ]
            continue
        errors.merge(attempt)
        yield found
