"""What the documentation says is true: sessions are typed again, options and files exist, links
lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import fields
from html import unescape
from pathlib import Path

import pytest

from dsms_client.cli import COMMANDS, main
from dsms_server.config import Config
from tests import forked
from tests.pages import text
from tests.pages.__main__ import TITLE
from tests.pages.links import INCLUDED, dead, headings, hooks
from tests.pages.session import programs, typed_again
from tests.pages.text import DOCS, ROOT

PAGES = {page.stem: page for page in text.PAGES}
WITH_SPARK = {"archive"}  # tests/test_docs_spark.py types that one
OTHERS = [ROOT / path for path in INCLUDED.values()]  # pages of the site that lie elsewhere
LINKED = sorted(
    {*ROOT.glob("*.md"), *DOCS.glob("*.md"), *OTHERS, ROOT / "tests" / "golden" / "README.md"}
)
COMMAND = re.compile(rf"\bdsms (?P<words>(?:{'|'.join(COMMANDS)})\b[^|;&#\n]*)")


def page(name: str) -> str:
    return PAGES[name].read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(PAGES.keys() - WITH_SPARK))
def test_what_is_typed_comes_out_as_printed(name: str, tmp_path: Path):
    """`python -m tests.pages FILE` writes down what comes out."""
    assert typed_again(page(name), tmp_path) == page(name)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_blocks_are_of_a_known_kind_and_say_why_they_are_not_run(name: str):
    for block in text.blocks(page(name)):
        assert block.kind in text.KINDS, (block.kind, block.line)
        if block.kind in ("sh", "ini"):
            assert block.why, f"line {block.line}: <!-- not run: REASON --> is missing"
        if block.kind == "text":
            assert not re.search(r"^(\$ |>>> |SELECT |CREATE )", block.body, re.M), (
                f"line {block.line} could be run"
            )
    outside = re.sub(r"^```.*?^```$", "", page(name), flags=re.M | re.S)
    assert "```" not in outside
    assert not re.search(r"\n\n    (?![-\d|])", outside), (
        "an indented block says nothing of its kind"
    )


def commands() -> list[tuple[str, str]]:
    """(page, command) of all dsms commands in blocks."""
    pages = [*PAGES.values(), *OTHERS]
    bodies = [
        (page.name, body) for page in pages for body in _code(page.read_text(encoding="utf-8"))
    ]
    return sorted(
        {(name, found["words"]) for name, body in bodies for found in COMMAND.finditer(body)}
    )


def _code(page: str) -> list[str]:
    """Code that holds commands: of blocks, and within lines."""
    typed = [
        "\n".join(step.typed for step in text.console_steps(b.body))
        if b.kind == "console"
        else b.body
        for b in text.blocks(page)
        if b.kind in ("console", "sh", "ini")
    ]
    return [body.replace("\\\n", " ") for body in typed] + re.findall(r"`([^`\n]+)`", page)


@pytest.mark.parametrize("command", sorted({words for _, words in commands()}))
def test_options_of_commands_exist(command: str, capsys: pytest.CaptureFixture[str]):
    words = _words(command)
    verb = (
        words[:2] if words[0] == "archive" and len(words) > 1 and words[1].isalpha() else words[:1]
    )
    with pytest.raises(SystemExit):
        main([*verb, "--help"])
    shown = capsys.readouterr().out
    for option in (w.partition("=")[0] for w in words if re.match(r"--\w|-[a-z]$", w)):
        assert re.search(rf"(?<![\w-]){option}(?![\w-])", shown), f"dsms {verb[0]} has no {option}"


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # a quotation that goes on in the next line
        return command.split()


def examples() -> list[tuple[str, str]]:
    """(module, options) of the examples that pages start."""
    texts = [path.read_text(encoding="utf-8") for path in (*PAGES.values(), *OTHERS)]
    found = {
        match.groups()
        for one in texts
        for match in re.finditer(r"python -m (examples[\w.]+)([^#\n`]*)", one)
    }
    return sorted((module, options) for module, options in found)


@pytest.mark.parametrize("module", sorted({module for module, _ in examples()}))
def test_options_of_examples_exist(module: str):
    run = forked.run(
        [sys.executable, "-m", module, "--help"], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0
    options = {
        option
        for one, rest in examples()
        if one == module
        for option in re.findall(r"--[\w-]+", rest)
    }
    assert [option for option in options if option not in run.stdout] == []


def test_make_has_the_targets_that_pages_name():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    pages = [
        path.read_text(encoding="utf-8") for path in (*PAGES.values(), ROOT / "CONTRIBUTING.md")
    ]
    named = {
        target
        for one in pages
        for code in _code(one)
        for target in re.findall(r"\bmake ([a-z-]+)", code)
    }
    assert {"demo", "test", "docs"} <= named <= targets


@pytest.mark.parametrize("name", sorted(PAGES))
def test_programs_that_are_not_run_are_python(name: str):
    assert "" not in programs(page(name))


@pytest.mark.parametrize("name", sorted(name for name in PAGES if text.script_of(page(name))))
def test_a_script_holds_the_statements_of_its_page(name: str):
    script = text.script_of(page(name))
    assert script is not None
    title = TITLE.format(page=PAGES[name].relative_to(ROOT))
    assert script.read_text(encoding="utf-8") == text.script(page(name), title)


def test_every_option_of_a_server_is_explained():
    explained = set(re.findall(r"`(?:--)?([a-z][a-z_-]+)(?: [A-Z]+)?`", page("operations")))
    assert {field.name for field in fields(Config)} <= {
        name.replace("-", "_") for name in explained
    }


def test_recipes_have_all_their_parts():
    """A statement or a question, an answer, and a reason behind it."""
    recipes = re.split(
        r"^## (?=\d+\. )", page("cookbook").partition("## Where to go on")[0], flags=re.M
    )[1:]
    assert len(recipes) >= 15
    assert [int(recipe.partition(".")[0]) for recipe in recipes] == list(range(1, len(recipes) + 1))
    for recipe in recipes:
        assert (
            "```console" in recipe and "SELECT" in recipe and recipe.rstrip().endswith((".", ".)"))
        )


# -- the README ------------------------------------------------------------------------------------


def test_the_readme_is_short():
    lines = page("README").splitlines()
    assert len(lines) <= 150
    assert [line for line in lines if len(line) > 100] == []
    assert "make demo" in page("README") and "make test" in page("README")
    assert re.search(r"^\+ 2013-", page("README"), re.M)
    assert "docs/pictures/architecture.svg" in page("README")


# -- the picture -----------------------------------------------------------------------------------


def test_the_picture_names_folders_that_are_there_and_is_drawn_from_its_text():
    source = (DOCS / "pictures" / "architecture.dot").read_text(encoding="utf-8")
    labels = [
        line.strip()
        for label in re.findall(r'label="([^"]+)"', source)
        for line in label.split(r"\n")
    ]
    rooms = [label for label in labels if re.fullmatch(r"[a-z]+/\w+", label)]
    assert len(rooms) >= 10
    assert [room for room in rooms if not (ROOT / room).is_dir()] == []
    drawn = (DOCS / "pictures" / "architecture.svg").read_text(encoding="utf-8")
    shown = [unescape(label).strip() for label in re.findall(r"<text[^>]*>([^<]+)</text>", drawn)]
    assert sorted(shown) == sorted(labels), "make picture"


# -- links -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", LINKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_link_is_dead(path: Path):
    assert dead(path) == []


def test_dead_links_are_found(tmp_path: Path):
    (tmp_path / "a.md").write_text(
        "# One\n[a](a.md#one) [b](b.md) [c](#two) `[d](d.md)`\n\n[e]: e.md\n"
    )
    assert dead(tmp_path / "a.md") == ["b.md", "#two", "e.md"]


@pytest.mark.parametrize("path", LINKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_headings_of_a_page_differ(path: Path):
    """Else the second one has another address in the site than on a code host."""
    anchors = headings(path)
    assert path.name == "CHANGELOG.md" or len(set(anchors)) == len(anchors)


def test_every_page_is_in_the_navigation():
    listed = set(
        re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M)
    )
    assert listed == {p.name for p in DOCS.glob("*.md")} | set(INCLUDED)


# -- the site --------------------------------------------------------------------------------------


def test_the_site_can_be_built(tmp_path: Path):
    pytest.importorskip("mkdocs", reason="MkDocs is not installed (make docs does that)")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(tmp_path / "site"),
    ]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert (tmp_path / "site" / "search" / "search_index.json").exists()


def test_links_of_the_repository_become_those_of_the_site():
    shown, inside = hooks().rewritten, DOCS / "tutorial.md"
    assert (
        shown("[a](../grammar/reference.md#types) [b](cookbook.md)", inside)
        == "[a](language.md#types) [b](cookbook.md)"
    )
    assert (
        shown("[the planner](../dsms/plan) [r](../README.md)", inside)
        == "the planner [r](index.md)"
    )
    assert (
        shown("`[a](../x.md)` [b](https://x.org) [c](#c)", inside)
        == "`[a](../x.md)` [b](https://x.org) [c](#c)"
    )
    assert shown("[a](../docs/tutorial.md)", ROOT / "server" / "protocol.md") == "[a](tutorial.md)"
    assert shown("```sql error\nSELECT\n```", ROOT / "grammar" / "reference.md").startswith(
        "```sql title="
    )


def test_tests_that_are_named_exist():
    table = (
        page("operations")
        .partition("### What is promised under which fault")[2]
        .partition("\n## ")[0]
    )
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    written = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    for row in rows:
        named = re.findall(r"`(test_\w+)`", row)
        assert named, f"no test shows this: {row}"
        assert not set(named) - written, row
