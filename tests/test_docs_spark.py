"""The page on archives, typed again with the session of the tests instead of one of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages.session import typed_again
from tests.pages.text import DOCS

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.slow]


def test_what_is_typed_comes_out_as_printed(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`python -m tests.pages docs/archive.md` writes down what comes out."""
    import dsms_spark.session

    monkeypatch.setattr(dsms_spark.session, "get_session", lambda master, memory: spark)
    page = (DOCS / "archive.md").read_text(encoding="utf-8")
    assert typed_again(page, tmp_path, {"spark": spark}) == page
