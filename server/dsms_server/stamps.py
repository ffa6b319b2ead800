"""Streams whose rows bear later stamps than the clock would give now: they stand still, which
somebody should know."""

from __future__ import annotations

import logging

from dsms.intake.values import instant_text
from dsms_server.face import EngineFace

LOG = logging.getLogger("dsms.server")
AHEAD = 10_000_000  # µs of which it is not worth a word


def warn_of_stamps(engine: EngineFace, now: int) -> None:
    """Name them, and the way out, in the log."""
    for name, stamp in engine.stamped_after(now + AHEAD).items():
        LOG.warning(
            "stream %s stands at %s, and it is %s: until then all its rows get that one stamp; "
            "if it is wrong: ALTER STREAM %s SET CLOCK TO NOW",
            name,
            instant_text(stamp),
            instant_text(now),
            name,
        )
