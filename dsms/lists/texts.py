"""Values put together to texts of lists."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsms import spelled
from dsms.lists.values import ODD_FLOATS
from dsms.typed_texts import texts_of

_TEXT = pa.string()


def written(lists: pa.Array, sql: str) -> pa.Array:
    """Arrow's lists (list<T>, T the physical type) as they are kept."""
    starts = lists.offsets.to_numpy().astype(np.int64)
    values = lists.values.slice(starts[0], starts[-1] - starts[0])
    found = made(starts - starts[0], values, sql)
    return pc.if_else(lists.is_valid(), found, pa.nulls(len(lists), _TEXT))


def made(starts: np.ndarray, values: pa.Array, sql: str) -> pa.Array:
    """The lists of values (in their physical type) from starts[i] to starts[i + 1] as they are
    kept."""
    if len(values) and values.null_count == len(values):
        return _of_nulls(np.diff(starts))
    return joined(starts, spelled_items(values, sql))


def _of_nulls(counts: np.ndarray) -> pa.Array:
    """Lists of so many NULLs and of nothing else."""
    sizes, which = np.unique(counts, return_inverse=True)
    texts = (f"[{', '.join(['null'] * n)}]" for n in sizes.tolist())
    return pa.array(texts, _TEXT).take(pa.array(which))


def joined(starts: np.ndarray, texts: pa.Array) -> pa.Array:
    """Lists of items that are spelled already."""
    lists = pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), texts)
    return pc.binary_join_element_wise("[", pc.binary_join(lists, ", "), "]", "")


def spelled_items(values: pa.Array, sql: str) -> pa.Array:
    """Each value as it stands in a list, `null` for NULL."""
    name = sql.partition("(")[0]
    texts = plain_items(values, sql)
    if name == "STRING":
        texts = quoted_texts(texts)
    elif name in ("BYTES", "TIMESTAMP", "INTERVAL", "DATE", "TIME", "UUID"):
        texts = pc.binary_join_element_wise('"', texts, '"', "")
    elif (
        name == "FLOAT" and pc.any(odd := pc.is_in(texts, pa.array([*ODD_FLOATS.values()]))).as_py()
    ):
        texts = pc.if_else(odd, pc.binary_join_element_wise('"', texts, '"', ""), texts)
    return texts.fill_null("null")


def plain_items(values: pa.Array, sql: str) -> pa.Array:
    """Each value as its text, without quotes: two of a type are equal where their texts are."""
    match sql.partition("(")[0]:
        case "FLOAT":
            values = pc.if_else(pc.equal(values, 0.0), 0.0, values)
            texts = spelled.floats(values)
            for text, name in ODD_FLOATS.items():
                texts = pc.if_else(pc.equal(texts, text), name, texts)
            return texts
        case "DECIMAL":
            return spelled.decimals(values)
        case "TIMESTAMP":
            return spelled.instants(values)
        case "INTERVAL":
            return spelled.lengths(values)
        case "DATE" | "TIME" | "UUID":
            return texts_of(values, sql)
        case "BYTES":
            return pa.array([None if v is None else v.hex() for v in values.to_pylist()], _TEXT)
        case _:
            return values.cast(_TEXT)


def quoted_texts(texts: pa.Array) -> pa.Array:
    """Texts as JSON has them."""
    odd = pc.match_substring_regex(texts, r'["\\\x00-\x1f]').fill_null(False)
    found = pc.binary_join_element_wise('"', texts, '"', "")
    if not pc.any(odd, min_count=0).as_py():
        return found
    some = [json.dumps(t, ensure_ascii=False) for t in texts.filter(odd).to_pylist()]
    return pc.replace_with_mask(found, odd, pa.array(some, _TEXT))
