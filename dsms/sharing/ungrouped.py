"""Global aggregates of many queries at once: one answer per boundary and query, computed for all of
them together.

Members that ask for the same aggregates over windows of different lengths are probed, lowered and
made into rows together; each query is handed its slice of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from dsms.sharing.member import Answering, Due, Kind, Member
from dsms.sql.types import arrow_schema


def kind(member: Member) -> Kind | None:
    """What members have in common that are answered so; None if the member is not."""
    query = member.query
    if (
        query is None
        or member.request.keys
        or not member.request.aggs
        or member.kept is not None
        or query.sort
    ):
        return None
    above = member.above
    eligible = query.output.kind == "rstream" and query.numbers is None and not query.elastic
    if not eligible or (above.nodes and above.picks is None):
        return None
    found = member.request.aggs, above.picks, query.output.schema, member.view
    return member.group.kinds.setdefault(found, found)


def answer(group: Answering, due: Sequence[Due]) -> None:
    """Answer and report members of one kind.  Raises DsmsError before anything is reported."""
    assert due[0][0].plain is not None
    _, picks, schema, _ = due[0][0].plain
    aggs = due[0][0].request.aggs
    asked = group.asks(due)
    cols = [group.lowered(agg, asked, due[0][0].view) for agg in aggs]
    if picks is not None:
        cols = [cols[i] for i in picks]
    rows = pa.RecordBatch.from_arrays(cols, schema=arrow_schema(schema))
    at, sign = np.concatenate([b for _, b in due]), np.zeros(len(asked[0]), np.int8)
    each = 9 + rows.nbytes // max(1, rows.num_rows)
    start = 0
    for member, b in due:
        stop = start + len(b)
        query = member.sliding
        assert query is not None
        query.take(rows.slice(start, stop - start), at[start:stop], sign[start:stop], each)
        start = stop
