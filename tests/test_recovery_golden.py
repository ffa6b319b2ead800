"""The golden stories (a quarter of them, or with --fuzz all), played by an engine that is killed
again and again: what they expect comes, each row once."""

from __future__ import annotations

from pathlib import Path
from random import Random
from zlib import crc32

import pytest

from tests.golden_runner import GOLDEN, files, load, told
from tests.stories.compare import same_lines
from tests.stories.crashing import play
from tests.stories.play import Way

SOME = [
    pytest.param(p, marks=() if i % 4 == 0 else pytest.mark.fuzz) for i, p in enumerate(files())
]


@pytest.mark.parametrize("path", SOME, ids=lambda p: str(p.relative_to(GOLDEN)))
def test_golden_stories_survive_crashes(path: Path, tmp_path: Path) -> None:
    story, declared = load(path)
    host = play(
        story, declared, Way("upa", "rows"), str(tmp_path), Random(crc32(path.name.encode()))
    )
    for query, got in host.pushes.items():
        want = told(story, query)
        assert not want or same_lines(want, got, set()), query
    host.engine.close()
