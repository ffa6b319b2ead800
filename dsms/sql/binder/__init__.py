"""The binder: from the syntax tree to the typed logical plan, definitions, and changes of
tables."""

from dsms.sql.binder.changes import Change, Delete, Insert, Merge, Update, bind_table_statement
from dsms.sql.binder.definitions import (
    bind_create_query,
    bind_create_stream,
    bind_create_table,
    check_late_places,
    taken_by,
)
from dsms.sql.binder.derived import bind_derived_stream
from dsms.sql.binder.expansion import expanded
from dsms.sql.binder.lookups import bind_lookup
from dsms.sql.binder.options import OPTIONS, check_options
from dsms.sql.binder.own_functions import bind_create_function
from dsms.sql.binder.promises import Promise, bind_promise
from dsms.sql.binder.query import bind_query
from dsms.sql.binder.shown import bind_shown

__all__ = [
    "OPTIONS",
    "Change",
    "Delete",
    "Insert",
    "Merge",
    "Promise",
    "Update",
    "bind_create_function",
    "bind_create_query",
    "bind_create_stream",
    "bind_create_table",
    "bind_derived_stream",
    "bind_lookup",
    "bind_promise",
    "bind_query",
    "bind_shown",
    "bind_table_statement",
    "check_late_places",
    "check_options",
    "expanded",
    "taken_by",
]
