"""A query in a notebook, as it changes: a table of its answer and a line for each number.

    from dsms_client.notebook import Live

    Live(engine, "q")             # an engine in this process
    Live(connect(...), "q")       # a server

Needs anywidget: ``pip install 'dsms[notebook]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsms_client.notebook.widget import Live

__all__ = ["Live"]


def __getattr__(name: str) -> Any:
    if name != "Live":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    try:
        import anywidget  # noqa: F401
    except ImportError:
        raise ImportError("live widgets need anywidget: pip install 'dsms[notebook]'") from None
    from dsms_client.notebook.widget import Live

    return Live
