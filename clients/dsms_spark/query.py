"""Archives asked without a server: streams and queries are what their manifests say, now is what
they hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dsms.errors import UsageError
from dsms.oneshot.now import as_of
from dsms.oneshot.pushdown import Needed, archived, needed
from dsms.plan.explain import explain
from dsms.plan.planner import plan
from dsms.sql import ast
from dsms.sql import logical as lp
from dsms.sql.binder import bind_create_function, bind_query, expanded
from dsms.sql.catalog import Catalog, QueryDef, StreamDef
from dsms.sql.parser import parse
from dsms.sql.suggest import hint
from dsms.sql.types import FOREVER
from dsms.storage.archive.explained import explain_lines
from dsms.storage.archive.job import ArchiveJob, ArchiveSource, declared, source
from dsms.storage.archive.manifest import Archive, Manifest


@dataclass(frozen=True, slots=True)
class Asked:
    """A bound SELECT over archives, with the files that it reads."""

    bound: lp.Output
    job: ArchiveJob

    @property
    def as_of(self) -> int | None:
        """The instant as of which it answers; None: it reads no archive."""
        return None if self.job.at == FOREVER else self.job.at

    def lines(self) -> list[str]:
        """EXPLAIN's text."""
        out = explain(plan(self.bound)).splitlines()
        for leaf, need in needed(self.job.plan, self.job.at).items():
            out += explain_lines(need.scan.alias, self.job.sources[leaf], need.described(), False)
        return out


def ask(urls: str | Iterable[str], sql: str, limit: int | None = None) -> Asked:
    """Bind a SELECT over archives.  urls: of archives, or of a folder below which they lie.

    sql    before the SELECT may stand CREATE FUNCTION and CREATE AGGREGATE, for it alone
    limit  bytes of rows that may be held at once where they can't stay with Spark
    Raises QueryError for a wrong SELECT, DS95x for archives that can't be read."""
    catalog, places = _catalog(urls)
    statement = _asked(sql, catalog)
    bound = bind_query(_only_archives(statement, places), catalog, persistent=False)
    root = _optimized(bound)
    at = min((places[_name(r.node)].upto for r in archived(root).values()), default=FOREVER)
    root = as_of(root, at)
    sources = {leaf: _source(places, need, at) for leaf, need in needed(root, at).items()}
    return Asked(bound, ArchiveJob(root, at, sources, {}, limit))


def _asked(sql: str, catalog: Catalog) -> ast.SelectStatement:
    """The SELECT, without the functions of one's own that stand before it."""
    *made, statement = parse(sql) or (ast.Statement(),)
    others = [one for one in made if not isinstance(one, ast.CreateFunction)]
    if others or not isinstance(statement, ast.SelectStatement):
        raise UsageError(
            "DS414", "archives are asked by SELECT", hint="SELECT ... FROM ARCHIVE name"
        )
    for one in made:
        assert isinstance(one, ast.CreateFunction)
        found = bind_create_function(one, catalog)
        catalog.functions[found.name.casefold()] = found
    plain = expanded(statement, catalog)
    assert isinstance(plain, ast.SelectStatement)
    return plain


@dataclass(frozen=True, slots=True)
class _Place:
    url: str
    manifest: Manifest
    upto: int


def _catalog(urls: str | Iterable[str]) -> tuple[Catalog, dict[str, _Place]]:
    catalog, places = Catalog(), dict[str, _Place]()
    for url in _found(urls):
        manifest, upto = declared(url)
        key = Catalog.key(manifest.name)
        if key in places:
            raise UsageError(
                "DS953",
                f"{url} and {places[key].url} are both archives of {manifest.name}",
                hint="name one of them",
            )
        places[key] = _Place(url, manifest, upto)
        if manifest.kind == "stream":
            catalog.streams[key] = StreamDef(
                manifest.name,
                manifest.schema,
                archive=True,
                archive_for=manifest.lifetime,
                archive_cluster=manifest.key,
            )
        else:
            catalog.queries[key] = QueryDef(
                manifest.name,
                "",
                manifest.schema,
                archive=True,
                archive_for=manifest.lifetime,
                archive_cluster=manifest.key,
            )
    return catalog, places


def _found(urls: str | Iterable[str]) -> list[str]:
    """The archives that are named, or lie in the folders that are."""
    out = []
    for url in [urls] if isinstance(urls, str) else urls:
        folder = Archive(url)
        if folder.numbers():
            out.append(url)
            continue
        inner = [f"{url.rstrip('/')}/{name}" for name in folder.names()]
        out += [u for u in inner if Archive(u).numbers()]
    return out


def _only_archives(
    statement: ast.SelectStatement, places: dict[str, _Place]
) -> ast.SelectStatement:
    """Raises DS414 where something else than an archive is read: nothing is live here; DS953 where
    there is none."""
    for node in ast.walk(statement.query):
        if isinstance(node, ast.Window) and node.archive:
            raise _nothing_live(node, "this window reads live rows, too")
        if isinstance(node, ast.TableRef) and not node.archive:
            known = [p.manifest.name for p in places.values()]
            if Catalog.key(node.name.text) in places:
                raise _nothing_live(node, f"{node.name.text} is read live")
            near = hint(node.name.text, known)
            raise UsageError(
                "DS953",
                f"there is no archive of {node.name.text} here",
                node.pos.line,
                node.pos.column,
                near or "archives here: " + (", ".join(known) or "none"),
            )
    return statement


def _nothing_live(node: ast.Node, what: str) -> UsageError:
    return UsageError(
        "DS414",
        f"without a server nothing is live, and {what}",
        node.pos.line,
        node.pos.column,
        "write FROM ARCHIVE name [window]",
    )


def _optimized(bound: lp.Output) -> lp.Node:
    sort = bound.child if isinstance(bound.child, lp.Sort) else None
    core = bound.child if sort is None else sort.child
    root = plan(lp.Output(core, "rstream", True, False, None, core.schema)).node
    assert isinstance(root, lp.Output)
    return root.child if sort is None else replace(sort, child=root.child)


def _name(node: object) -> str:
    assert isinstance(node, lp.StreamScan)
    return node.stream.home


def _source(places: dict[str, _Place], need: Needed, at: int) -> ArchiveSource:
    place = places[_name(need.scan)]
    return source(place.url, None, need.since, need.upto, at, need.bounds())
