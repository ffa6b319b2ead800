"""What has no archive, or asks it for too much (more in test_archive_language.py)."""

from __future__ import annotations

RULES: list[tuple[str, str, str, str | None]] = [
    (
        "DS390",
        "ONCE SELECT * FROM ARCHIVE ^trades",
        "stream trades has no archive",
        "ARCHIVE FOR 30 DAYS",
    ),
    ("DS391", "SELECT * FROM ^ARCHIVE kept", "a persistent query follows what comes", "ask once"),
    (
        "DS392",
        "ONCE SELECT * FROM kept [^RANGE 2 h ARCHIVE]",
        "keeps rows for 1 h",
        "FROM ARCHIVE kept",
    ),
    ("DS329", "ONCE SELECT * FROM ^ready", "registered ON LOOKUP", "LOOKUP ready"),
]
