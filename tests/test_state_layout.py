"""What checkpoints are made of, as a contract: tags, versions and fields of all stored classes.

When this fails, a stored class has changed.  If a field came that has a default, or only the
class's name or place has changed, that is all; else raise its version in `dsms/storage/stored.txt`
and give an upgrade in `dsms/storage/upgrades.py`.  Then run `python -m tests.test_state_layout`,
which writes the file, and if fields have changed make a new folder for `tests/test_data_folders.py`
(`tests/folders/make.py`).
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import get_args

import pytest

from dsms.engine import Engine
from dsms.sql import logical as lp
from dsms.sql.expr import Expr
from dsms.sql.window import WindowSpec
from dsms.storage import packed
from dsms.storage.layout import Gone, by_place, by_tag, kind_of
from tests.folders import story
from tests.folders.play import play

LAYOUT = Path(__file__).parent / "golden" / "state_layout.txt"


def layout() -> str:
    """A line for each stored class."""
    lines = [f"{s.tag} {s.version}: {_made_of(kind_of(s))}" for s in by_tag().values()]
    return "\n".join([f"encoding {packed.VERSION}", *sorted(lines), ""])


def _made_of(kind: object) -> str:
    cls = kind.cls  # type: ignore[attr-defined]
    if cls is Gone:
        return "gone"
    if issubclass(cls, Enum):
        return " | ".join(cls.__members__)
    if kind.own:  # type: ignore[attr-defined]
        return "as it says"
    fields = kind.fields  # type: ignore[attr-defined]
    return "what it was given" if fields is None else ", ".join(fields)


def test_what_checkpoints_are_made_of_is_what_was_agreed() -> None:
    assert layout() == LAYOUT.read_text(encoding="utf-8")


def test_tags_are_never_taken_away() -> None:
    """What a folder of any version may hold."""
    legacy = Path(packed.__file__).with_name("legacy.txt").read_text(encoding="utf-8").splitlines()
    assert {line.split()[1] for line in legacy if not line.startswith("#")} <= set(by_tag())


def test_of_the_tags_of_a_class_the_last_is_written() -> None:
    assert by_place()["dsms.sharing.member", "Member"].tag == "shared.member"


@pytest.mark.parametrize("tag", by_tag())
def test_every_tag_has_its_class(tag: str) -> None:
    assert kind_of(by_tag()[tag]).cls.__name__ == by_tag()[tag].name.split(".")[-1]


@pytest.mark.parametrize("kinds", [lp.Node, WindowSpec, Expr])
def test_every_part_of_a_plan_can_be_written_down(kinds: object) -> None:
    """Or no checkpoint can be made while a query has one."""
    stored = {kind_of(s).cls for s in by_tag().values()}
    assert [cls.__name__ for cls in get_args(kinds) if cls not in stored] == []


def test_all_that_runs_can_be_written_down(tmp_path: Path) -> None:
    engine = Engine(str(tmp_path))
    engine.execute(story.DECLARED)
    for query, sql in story.QUERIES.items():
        engine.execute(f"CREATE QUERY {query} AS {sql}")
    play(engine, story.BEFORE)
    assert engine.saver is not None and engine.saver.checkpoint(), (
        engine.saver and engine.saver.checkpointer.trouble
    )
    engine.close()


if __name__ == "__main__":
    LAYOUT.write_text(layout(), encoding="utf-8")
