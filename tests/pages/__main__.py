"""Write down what comes back: python -m tests.pages [PAGE ...]."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.pages import text
from tests.pages.session import typed_again

PATIENCE = 10.0  # seconds for lines of a subscription that a page shows too many of
TITLE = (
    "-- The statements of {page}, in its order.  `python -m tests.pages {page}` writes this file."
)


def names_of(page: Path) -> dict[str, Any]:
    """What Python on a page has from the beginning: a session of Spark where it speaks of that."""
    if page.stem != "archive":
        return {}
    import dsms_spark.session

    spark = dsms_spark.session.get_session("local[2]", "1g", {"spark.sql.shuffle.partitions": "2"})
    dsms_spark.session.get_session = lambda *_: spark
    return {"spark": spark}


def main() -> None:
    pages = [Path(name).resolve() for name in sys.argv[1:]] or text.PAGES
    for page in pages:
        old = page.read_text(encoding="utf-8")
        script = text.script_of(old)
        if script is not None:
            script.write_text(
                text.script(old, TITLE.format(page=page.relative_to(text.ROOT))), encoding="utf-8"
            )
        with tempfile.TemporaryDirectory() as folder:
            new = typed_again(old, Path(folder), names_of(page), PATIENCE)
        page.write_text(new, encoding="utf-8")
        print(f"{page.relative_to(text.ROOT)}: {'as it was' if new == old else 'written'}")


if __name__ == "__main__":
    main()
