"""Golden files: every story, in every way, against what it says and against the oracle; and the
runner itself."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from tests import golden_runner as runner
from tests.stories import text
from tests.stories.play import CUTS, STRATEGIES, Way

STORY = """# Two rows.

sql
CREATE STREAM s (a STRING, x INT, ts TIMESTAMP) TIMESTAMP BY ts;

query q
SELECT Rstream(a, x) FROM s [RANGE 2 SECONDS]

input
s 1s 'two words' 1   # a comment
* until 9s

pushes q
1s + 'two words' 1
3s - 'two words' 1

fails
SELECT b FROM s
----
unknown column
"""


@pytest.mark.parametrize("path", runner.files(), ids=lambda p: str(p.relative_to(runner.GOLDEN)))
def test_golden(path: Path) -> None:
    problems = runner.verify(path)
    assert not problems, "\n\n".join(problems[:2])


def test_every_way_is_that_of_many_stories() -> None:
    """Each strategy with each cut, each of them with the rules on and off, and each access path."""
    met: Counter = Counter()
    for path in runner.files():
        for way in runner.ways_of(path, runner.load(path)[1]):
            met.update(
                [
                    (way.strategy, way.cut),
                    (way.strategy, way.optimize),
                    (way.cut, way.optimize),
                    way.options,
                ]
            )
    pairs = [*product(STRATEGIES, CUTS), *product((*STRATEGIES, *CUTS), (True, False))]
    assert min(met[pair] for pair in pairs) >= 10
    assert min(met[("path", f"'{path}'"),] for path in runner.PATHS) >= 5


def _problems(tmp_path: Path, story: str) -> list[str]:
    path = tmp_path / "a.test"
    path.write_text(story, encoding="utf-8")
    return runner.verify(path, [Way(), Way("nt", "rows")])


def test_the_runner_accepts_a_right_story(tmp_path: Path) -> None:
    assert _problems(tmp_path, STORY) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("3s - 'two words' 1\n", ""),
        ("1s + 'two", "2s + 'two"),
        ("3s -", "3s +"),
        ("words' 1\n3s", "words' 2\n3s"),
        ("unknown column", "unknown stream"),
        ("unknown column", ""),
        ("pushes q", "pushes r"),
    ],
)
def test_the_runner_sees_what_is_wrong(tmp_path: Path, right: str, wrong: str) -> None:
    assert right in STORY
    try:
        problems = _problems(tmp_path, STORY.replace(right, wrong))
    except KeyError:  # no such query
        problems = ["?"]
    assert problems


def test_stories_survive_writing(tmp_path: Path) -> None:
    path = tmp_path / "a.test"
    path.write_text(STORY.replace("1s + 'two words' 1\n3s - 'two words' 1\n", ""), encoding="utf-8")
    runner.write(path)
    assert path.read_text(encoding="utf-8") == STORY
    story, declared = runner.load(path)
    assert text.render(story, declared) == STORY


@pytest.mark.parametrize(
    "broken", ["nonsense x\n", "fails\nSELECT 1\n", STORY.replace("s 1s 'two words' 1", "s 1s a")]
)
def test_malformed_files_are_refused(tmp_path: Path, broken: str) -> None:
    path = tmp_path / "a.test"
    path.write_text(broken, encoding="utf-8")
    with pytest.raises(ValueError):
        runner.load(path)
