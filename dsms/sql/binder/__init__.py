"""The binder: from the syntax tree to the typed logical plan, definitions, and changes of tables."""

from dsms.sql.binder.options import OPTIONS, check_options
from dsms.sql.binder.query import bind_query

__all__ = ["OPTIONS", "bind_query", "check_options"]
