"""The relations of one run: what Spark holds as data frames, and what is here as Arrow; from one to
the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dsms.oneshot.limits import Room
from dsms.oneshot.parts import AgedRows, bound_names, to_table
from dsms.oneshot.relation import Bound
from dsms.sql.types import FLOAT, Kind, Type
from dsms_spark.mapped import part_of, spelled
from dsms_spark.rendering import RelationShape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SMALL = 8 << 20  # bytes of rows from here that every executor gets for a join


@dataclass(slots=True)
class Relations:
    """frames  of relations that Spark holds, with columns as `bound_names` says, or more
    local   the rows of others
    """

    spark: SparkSession
    shapes: dict[str, RelationShape]
    room: Room
    look: Callable[[], None]
    frames: dict[str, DataFrame] = field(default_factory=dict)
    local: dict[str, list[AgedRows]] = field(default_factory=dict)
    views: set[str] = field(default_factory=set)

    def here(self, names: Sequence[str]) -> bool:
        """Whether all of them are here."""
        return all(n in self.local for n in names)

    def frame(self, name: str) -> DataFrame:
        """The relation as Spark has it; one that is here is sent."""
        if name not in self.frames:
            shape = self.shapes[name]
            self.frames[name] = self._sent(self.local[name], shape, False)
        return self.frames[name]

    def narrowed(self, name: str) -> DataFrame:
        """The relation with the columns of its shape alone, in their order."""
        shape = self.shapes[name]
        return self.frame(name).select(*names_of(shape))

    def rows(self, name: str) -> list[AgedRows]:
        """The relation's rows, got from Spark if they are not here.  Raises DS633."""
        if name not in self.local:
            self.local[name] = self.collected(self.narrowed(name), self.shapes[name])
        return self.local[name]

    def collected(self, frame: DataFrame, shape: RelationShape) -> list[AgedRows]:
        """The rows of a data frame of that shape."""
        self.look()
        out = []
        for batch in frame.toArrow().to_batches():
            part = part_of(batch, shape)
            self.room.take(part.nbytes)
            out += [part] if part.n else []
        return out

    def view(self, bound: Bound) -> None:
        """Let SQL know the relation under the name that texts have for it."""
        if bound.table in self.views:
            return
        frame = self.frame(bound.relation) if not bound.versions else self._versions(bound)
        frame.createOrReplaceTempView(bound.table)
        self.views.add(bound.table)

    def _versions(self, bound: Bound) -> DataFrame:
        shape = RelationShape(bound.schema, bound.width, bound.aged)
        return self._sent(self.local[bound.relation], shape, True)

    def _sent(self, parts: list[AgedRows], shape: RelationShape, versions: bool) -> DataFrame:
        from pyspark.sql import functions as f

        table = spelled(to_table(parts, shape.schema, shape.width, shape.aged, versions))
        made = self.spark.createDataFrame(table)
        return f.broadcast(made) if table.nbytes <= SMALL else made

    def close(self) -> None:
        """Forget the views."""
        for name in self.views:
            self.spark.catalog.dropTempView(name)


def names_of(shape: RelationShape) -> list[str]:
    """The columns of a relation."""
    return bound_names(len(shape.schema), shape.width, shape.aged)


def spark_type(shape: RelationShape) -> Any:
    """The columns of a relation as Spark's type."""
    from pyspark.sql import types as t

    types: list[Type | None] = [f.type for f in shape.schema]
    names = names_of(shape)
    types += [None] * (len(names) - len(types))
    return t.StructType([t.StructField(n, _type(x)) for n, x in zip(names, types, strict=True)])


def _type(type_: Type | None) -> Any:
    from pyspark.sql import types as t

    kinds = {
        Kind.BOOL: t.BooleanType,
        Kind.FLOAT: t.DoubleType,
        Kind.STRING: t.StringType,
        Kind.BYTES: t.BinaryType,
        Kind.UUID: t.StringType,
        Kind.LIST: t.StringType,
        Kind.STRUCT: t.StringType,
        Kind.NULL: t.IntegerType,
    }
    if type_ is None:
        return t.LongType()
    if type_.kind is Kind.DECIMAL:
        return t.DecimalType(type_.precision, type_.scale)
    return kinds.get(type_.kind, t.LongType)()


def zeroless(text: str, type_: Type) -> str:
    """A column whose equal values are spelled alike: -0.0 as 0.0."""
    return (
        f"CASE WHEN {text} = CAST(0 AS DOUBLE) THEN CAST(0 AS DOUBLE) ELSE {text} END"
        if type_ == FLOAT
        else text
    )
