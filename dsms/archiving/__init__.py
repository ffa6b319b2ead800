"""What leaves the windows of a stream, or the answer of a query, goes to its archive (see
`archiving`)."""

from dsms.archiving.all_archives import check, tidy
from dsms.archiving.archiving import Archiving, Hold

__all__ = ["Archiving", "Hold", "check", "tidy"]
