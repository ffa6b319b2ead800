"""Writes data folders of the present layout, as a kill leaves one and as a stop does, with what
must come of them.

    MALLOC_PERTURB_=255 ARROW_DEFAULT_MEMORY_POOL=system python -m tests.folders.make NAME [STORY]

makes tests/folders/NAME.tar.xz of `story`, which is about queries, of `story_users` (STORY
`users`), which is about who may do what and how rows come, of `story_answers` (`answers`), about
queries over queries, of `story_changes` (`changes`), about definitions that change, of
`story_lists` (`lists`), about lists, of `story_promises` (`promises`), about punctuations, of
`story_functions` (`functions`), about functions of one's own, of `story_ranks` (`ranks`), about the
first rows of each key, of `story_over` (`over`), about values OVER rows, of `story_episodes`
(`episodes`), about patterns, sessions and lifetimes, or of `story_types` (`types`), about DATE,
TIME, UUID and STRUCT (with glibc the variables fill unused memory with zeros, which pack better).
It is made once, when the layout of state has changed, and never again: every later version opens
it.
"""

from __future__ import annotations

import json
import lzma
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Protocol

from dsms import Engine
from dsms.python_functions import Functions, host
from tests.folders import (
    story,
    story_answers,
    story_changes,
    story_episodes,
    story_functions,
    story_lists,
    story_over,
    story_promises,
    story_ranks,
    story_types,
    story_users,
)
from tests.folders.play import answers, play, results
from tests.folders.story import Step

HERE = Path(__file__).parent
FUNCTIONS = HERE / "functions"  # in Python, which some of the queries call


class Story(Protocol):
    """What is declared, what comes before and after a kill, and what is asked in between."""

    DECLARED: str
    QUERIES: dict[str, str]
    BEFORE: list[Step]
    SINCE_CHECKPOINT: list[Step]
    AFTER: list[Step]
    ASKED: Any  # statements, some of them with the user who asks


def make(name: str, story: Story) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        killed = begun(story, f"{scratch}/data", list(story.QUERIES), checkpoint=True)
        shutil.copytree(f"{scratch}/data", f"{scratch}/killed")
        expected = {"killed": told(story, killed)}
        some = list(getattr(story, "STOPPED", list(story.QUERIES)[::12]))
        begun(story, f"{scratch}/stopped", some).close()
        expected["stopped"] = told(story, begun(story, f"{scratch}/again", some))
        Path(f"{scratch}/expected.json").write_text(json.dumps(expected), encoding="utf-8")
        with tarfile.open(HERE / f"{name}.tar.xz", "w:xz", preset=9 | lzma.PRESET_EXTREME) as tar:
            for kind in ("killed", "stopped", "expected.json"):
                tar.add(f"{scratch}/{kind}", kind, filter=_nobody)


def begun(story: Story, data: str, queries: list[str], checkpoint: bool = False) -> Engine:
    """An engine in the middle of the story."""
    engine = Engine(data)
    engine.execute(story.DECLARED)
    for query in queries:
        engine.execute(f"CREATE QUERY {query} AS {story.QUERIES[query]}")
    play(engine, story.BEFORE)
    if checkpoint:
        assert engine.saver is not None and engine.saver.checkpoint()
    play(engine, story.SINCE_CHECKPOINT)
    engine.sync()
    return engine


def told(story: Story, engine: Engine) -> dict[str, Any]:
    """What is asked, what comes next, and all that queries have told by then."""
    queries = [q.name for q in engine.runtime.queries.values()]
    asked = [
        [text, answers(engine, text, *user), *user]
        for text, *user in (q if isinstance(q, list) else [q] for q in story.ASKED)
    ]
    play(engine, story.AFTER)
    return {"asked": asked, "after": story.AFTER, "results": results(engine, queries)}


def _nobody(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if info.name.endswith((".lock", "-shm")):
        return None
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    return info


if __name__ == "__main__":
    chosen: Story = story
    if sys.argv[2:]:
        stories = {
            "users": story_users,
            "answers": story_answers,
            "changes": story_changes,
            "episodes": story_episodes,
            "functions": story_functions,
            "ranks": story_ranks,
            "lists": story_lists,
            "over": story_over,
            "promises": story_promises,
            "types": story_types,
        }
        chosen = stories[sys.argv[2]]
    host.name(Functions(str(FUNCTIONS)))
    make(sys.argv[1], chosen)
    host.close()
