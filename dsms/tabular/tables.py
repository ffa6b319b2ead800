"""Rows as an Arrow table, and from there as DataFrames and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dsms.tabular.names import unique

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

SIGN, AT = "$sign", "$at"  # columns beside those of the query


class Tabular:
    """What can be had as a table."""

    __slots__ = ()

    def arrow(self) -> pa.Table:
        """An Arrow table: TIMESTAMP is ``timestamp[us]`` (UTC, naive), INTERVAL ``duration[us]``,
        DATE ``date32``, TIME ``time64[us]``, UUID text, LIST(T) ``list<T>``,
        STRUCT(a T) ``struct<a: T>``;
        of two columns called k the second is ``k_1``."""
        raise NotImplementedError

    def pandas(self) -> pandas.DataFrame:
        return self.arrow().to_pandas()

    def polars(self) -> polars.DataFrame:
        import polars

        frame = polars.from_arrow(self.arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def _repr_html_(self) -> str:
        from dsms.tabular.html import table_html

        return table_html(self.arrow())


def to_edge(batch: pa.RecordBatch | pa.Table, types: Sequence[str]) -> pa.Table:
    """Physical int64 instants and lengths as Arrow timestamps, durations, dates and times, texts of
    lists and structs as these, for people and DataFrames."""
    import pyarrow as pa

    columns = [_at_edge(column, sql) for column, sql in zip(batch.columns, types, strict=True)]
    return pa.table(columns, names=batch.schema.names)


def _at_edge(column: pa.Array | pa.ChunkedArray, sql: str) -> pa.Array | pa.ChunkedArray:
    import pyarrow as pa

    from dsms import lists, structs, typed_texts

    edge = {"TIMESTAMP": pa.timestamp("us"), "INTERVAL": pa.duration("us")}
    if sql.upper() in edge:
        return column.cast(edge[sql.upper()])
    if sql.upper() in typed_texts.EDGE:
        return typed_texts.to_edge(column, sql.upper())
    item, fields = lists.item_of(sql), structs.fields_of(sql)
    if item is None and fields is None:
        return column
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if fields is not None:
        return structs.at_edge(column, fields)
    return lists.at_edge(column, item or "NULL")


def own_names(table: pa.Table) -> pa.Table:
    """The table with a name of its own for each column."""
    return table.rename_columns(list(unique(table.column_names)))


def signed(table: pa.Table, sign: Any, ats: Any) -> pa.Table:
    """Rows with two more columns: `$sign` (int8) and `$at` (each row's instant)."""
    import pyarrow as pa

    table = table.append_column(SIGN, pa.array(sign, pa.int8()))
    return table.append_column(AT, pa.array(ats, pa.int64()).cast(pa.timestamp("us")))
