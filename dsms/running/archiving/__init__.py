"""What leaves the windows of a stream, or the answer of a query, goes to its archive (see `archiving`)."""

from dsms.running.archiving.archiving import Archiving, Hold
from dsms.running.archiving.every import check, tidy

__all__ = ["Archiving", "Hold", "check", "tidy"]
