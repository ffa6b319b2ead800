"""Where Numba keeps compiled kernels: in NUMBA_CACHE_DIR, or beside their source, or in a folder of
the user, which is the first of these that may be written.  If none may, then for as long as this
process lives.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"
SOURCES = Path(__file__).parent
_passing = False  # they are not kept


def settle() -> None:
    """Let Numba keep kernels among the temporary files if it finds no other place, which would be
    an error.

    Called before any kernel is defined, hence from the package itself: it is quick and changes no
    file."""
    global _passing
    if place() is not None:
        return
    import atexit
    import shutil
    import tempfile
    from secrets import token_hex

    folder = Path(tempfile.gettempdir(), f"dsms-kernels-{token_hex(8)}")
    os.environ[VARIABLE] = str(folder)
    if "numba" in sys.modules:
        import numba

        numba.config.CACHE_DIR = str(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _passing = True


def place() -> Path | None:
    """Where Numba keeps kernels, in folders of its own; None: nowhere."""
    chosen = os.environ.get(VARIABLE)
    places = [*([Path(chosen)] if chosen else []), SOURCES / "__pycache__", _of_user()]
    return next((folder for folder in places if _may_be_written(folder)), None)


def complaint() -> str | None:
    """What to say of kernels that are not kept, and how to mend it."""
    if not _passing:
        return None
    return (
        f"compiled kernels can't be kept: neither {SOURCES} nor {_of_user()} may be written, so "
        f"each start compiles them again, for a minute or two; set {VARIABLE} to a folder that "
        "may be written"
    )


def warn() -> None:
    """Say the same to programs that run the engine in their own process."""
    message = complaint()
    if message is not None:
        import warnings

        warnings.warn(message, RuntimeWarning, stacklevel=3)


def _of_user() -> Path:
    """Numba's folder for what can't lie beside the source."""
    if sys.platform == "darwin":
        return Path(os.path.expanduser("~/Library/Caches/numba"))
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "numba")


def _may_be_written(folder: Path) -> bool:
    """Whether the folder takes files, or can be made."""
    if sys.platform == "win32":
        return True
    while not folder.exists():
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK)
