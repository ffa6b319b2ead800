"""What MkDocs does to the pages: some lie elsewhere in the repository, and links lead from page to
page.

The language, the protocol and others have one source, beside what they describe; here they become
pages of the site.  Links in pages are those of the repository, so that they work there, too.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
INCLUDED = {  # by page of the site: the file that it shows
    "index.md": "README.md",
    "language.md": "grammar/reference.md",
    "protocol.md": "server/protocol.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security-policy.md": "SECURITY.md",
    "example-compose.md": "examples/compose/README.md",
    "example-linear-road.md": "examples/linear_road/README.md",
    "example-network.md": "examples/network/README.md",
    "example-spark.md": "examples/spark/README.md",
    "example-data.md": "examples/data/README.md",
}
SHOWN = {file: page for page, file in INCLUDED.items()}
CODE = re.compile(r"(^```.*?^```$|^    [^\n]*$|`[^`\n]+`)", re.M | re.S)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]*)(#[^)\s]+)?\)")
TITLES = {
    "error": "fails with the code that is quoted",
    "parse": "needs more than this page declares",
}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that lie elsewhere."""
    from mkdocs.structure.files import File

    for page, file in INCLUDED.items():
        files.append(
            File.generated(config, page, content=(ROOT / file).read_text(encoding="utf-8"))
        )
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The page with the links of the site."""
    name = page.file.src_uri
    return rewritten(markdown, ROOT / INCLUDED[name] if name in INCLUDED else DOCS / name)


def rewritten(markdown: str, source: Path) -> str:
    """Text of a file of the repository as the site shows it."""
    pieces = CODE.split(markdown)
    return "".join(
        _code(p) if k % 2 else LINK.sub(lambda m: _link(m, source), p) for k, p in enumerate(pieces)
    )


def _code(piece: str) -> str:
    """Headers of blocks that say more than their language are titles."""
    return re.sub(
        r"^```sql (\w+)$", lambda m: f'```sql title="{TITLES[m[1]]}"', piece, count=1, flags=re.M
    )


def _link(found: re.Match[str], source: Path) -> str:
    image, words, target, anchor = found[1], found[2], found[3], found[4] or ""
    if not target or re.match(r"[a-z]+:", target):
        return found[0]
    path = posixpath.normpath(posixpath.join(source.parent.relative_to(ROOT).as_posix(), target))
    if path in SHOWN:
        return f"{image}[{words}]({SHOWN[path]}{anchor})"
    if path.startswith("docs/"):
        return f"{image}[{words}]({path.removeprefix('docs/')}{anchor})"
    return words  # of the repository alone
