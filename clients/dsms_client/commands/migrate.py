"""Bring a data directory of an earlier version to the layout of this one.

A server does so by itself when it starts; this does it beforehand, with a copy kept, and says what
was done.  The server must be stopped.  The directory is copied to DIR.backup (or --backup), opened
as `dsms serve` would, and its state written down anew.  --dry-run does all of that with the copy,
which is removed, and leaves the directory as it is.

A server that has options of its own (--archive, --retain-default, limits) has them here by
--config, the file that it is started with.

examples:
  dsms migrate dsms-data --dry-run       # would it open, and what would be done?
  dsms migrate dsms-data                 # do it; dsms-data.backup is the way back
  dsms migrate --config dsms.toml --backup /backup/dsms-data

exit codes: 0 fine, 2 wrong usage, or the directory can't be opened: then it is as it was
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dsms.errors import UsageError
from dsms_client.visible import prose

if TYPE_CHECKING:
    from dsms.recovering.migrating import Layout
    from dsms_server.config import Config


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("data", metavar="DIR", nargs="?", help="a data directory (default: that of --config)")
    add("--config", metavar="FILE", help="the server's options")
    add("--dry-run", action="store_true", help="only tell; the directory stays as it is")
    add("--backup", metavar="DIR", help="copy it there (default: beside it, with .backup)")
    add(
        "--state-key-file",
        metavar="FILE",
        default=os.environ.get("DSMS_STATE_KEY_FILE") or None,
        help="it is encrypted with the key in this file (or DSMS_STATE_KEY_FILE)",
    )


def run(args: argparse.Namespace) -> int:
    # the command line is where client and server meet
    from dsms_server import config as options

    said = options.from_file(args.config) if args.config else {}
    given = {"data": args.data, "state_key_file": args.state_key_file}
    config = options.build(said, given, {"host": "127.0.0.1"})
    if config.data is None:
        raise UsageError("DS640", "say which data directory")
    if args.dry_run and config.archive is not None:
        what = f"a dry run would write into the archive {config.archive}, which is not copied"
        raise UsageError("DS640", what, hint="leave out --dry-run: a backup is made anyway")
    for line in migrated(config, args.backup or _beside(config.data), args.dry_run):
        print(prose(line))
    return 0


def _beside(data: str) -> str:
    return f"{data.rstrip('/')}.backup"


def migrated(config: Config, backup: str, dry_run: bool) -> Iterator[str]:
    """Do it, and tell what was done.  Raises what ended it: the directory can be opened as before,
    by the version that wrote it, from the backup."""
    from dsms import state_key
    from dsms.recovering.migrating import copied, layout_of, unused

    data = str(config.data)
    key = None if config.state_key_file is None else state_key.read(config.state_key_file)
    with unused(data):
        copied(data, backup)
    try:
        before = layout_of(backup, key)
        if not dry_run:
            yield f"{data} was copied to {backup}"
        target = replace(config, data=backup) if dry_run else config
        yield from _opened(target)
        yield from _told(before, layout_of(str(target.data), key))
    finally:
        if dry_run:
            shutil.rmtree(backup)
    if dry_run:
        yield f"that was a dry run: {data} is as it was"


def _opened(config: Config) -> Iterator[str]:
    """Open it, and write its state down anew."""
    from dsms_server.serve import make_engine, recovered

    engine: Any = make_engine(config)
    try:
        yield from recovered(engine)
        kinds = (engine.runtime.catalog.streams, engine.runtime.tables, engine.runtime.queries)
        counts = zip(map(len, kinds), ("streams", "tables", "queries"), strict=True)
        yield f"it has {', '.join(f'{count} {kind}' for count, kind in counts)}"
        if not engine.saver.checkpoint():
            raise UsageError("DS425", f"its state can't be written: {engine.saver.unsaved}")
    finally:
        engine.close()


def _told(before: Layout, after: Layout) -> Iterator[str]:
    yield _step("catalog: layout", before.catalog, after.catalog)
    yield _step("state: encoding", before.state, after.state)
    if before.legacy:
        yield "state: objects under names of modules have tags and versions now"
    for tag, version in sorted(before.older.items()):
        yield f"state: {tag}, version {version}, is of today's now"
    if before == after:
        yield "it was in today's layout already"


def _step(what: str, before: int | None, after: int | None) -> str:
    return f"{what} {before}" if before == after else f"{what} {before or 'none'}, now {after}"
