"""Answers that are texts: values as CAST to STRING writes them, and lists of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms.aggregates.parts.words import Codes
from dsms.operators.expressions.errors import ErrorCounter
from dsms.operators.expressions.show import show
from dsms.sql.types import Kind, Type


class OwnTexts:
    """What follows rows and answers with texts that it makes: `texts` says what its words mean."""

    texts: Codes

    def forget(self, reported: np.ndarray) -> None:
        """Only these words of answers are needed any more."""
        if self.texts.crowded(len(reported)):
            self.texts.purge([reported])


def shown(column: pa.Array, type_: Type) -> pa.Array:
    """A column as CAST to STRING writes it (BYTES that are no text: in hex)."""
    if type_.kind is Kind.BYTES:
        return pa.array([_text(v) for v in column.to_pylist()], pa.string())
    return show(type_).kernel(ErrorCounter(), column)


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.hex()


def joined(parts: pa.Array, starts: np.ndarray, separator: str) -> pa.Array:
    """The texts of each cell, joined: string[cells]."""
    lists = pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), parts)
    return pc.binary_join(lists, separator)
