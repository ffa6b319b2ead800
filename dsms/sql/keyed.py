"""Streams with KEY: a row takes the place of the one with its key, or deletes it.

Such a stream has a column more, `_op`, which says what a row does; rows may leave it out.  What it
holds at an instant is, of each key, the last row up to then, by (ts, arrival), unless that deletes;
with a window: of the rows in the window.  A query of its own keeps what it holds, for good.
"""

from __future__ import annotations

from dsms.sql.types import STRING, Default, Field

OPERATION = "_op"
UPSERT, DELETE = "U", "D"
# what rows may say, in any case: insert, update, delete; Debezium's create, read, update, delete
WORDS = {"I": UPSERT, "U": UPSERT, "C": UPSERT, "R": UPSERT, "+": UPSERT, "D": DELETE, "-": DELETE}
SUFFIX = "_current"  # behind the name of the stream: the name of its query

COLUMN = Field(OPERATION, STRING, None, False, Default(UPSERT))
