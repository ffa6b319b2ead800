"""dsms: a data stream management system.  `dsms.Engine` runs it inside this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dsms import kernel_folder

if TYPE_CHECKING:
    from dsms.engine import Engine
    from dsms.settings import Settings
    from dsms_client.aio import connect as connect_async
    from dsms_client.sync import connect

__version__ = "0.1.0"
__all__ = ["Engine", "Settings", "__version__", "connect", "connect_async"]


kernel_folder.settle()


def __getattr__(name: str) -> Any:
    """Heavy parts are imported when they are first asked for."""
    if name == "Engine":
        from dsms.engine import Engine

        kernel_folder.warn()
        return Engine
    if name == "Settings":
        from dsms.settings import Settings

        return Settings
    if name in ("connect", "connect_async"):  # clients come with the engine, and know their way
        import dsms_client

        return getattr(dsms_client, name)
    raise AttributeError(f"module 'dsms' has no attribute '{name}'")
