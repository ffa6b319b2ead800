"""Imports point one way.  Read from the source with `ast`: an import inside a function counts like
one at the top.

    clients -> (protocol)
    server -> engine -> commands -> reads -> running.runtime -> archiving, sharing -> periodic -> running
    running -> schedulers, storage -> synopses, operators -> aggregates -> state -> plan -> sql

What is true of an aggregate (`dsms.aggregates.cards`) is part of the language; how it is computed,
by operators and in the cells of synopses, is a room between state and those two.  Operators know no
synopsis.

Imports for type checkers alone (``if TYPE_CHECKING:``) count like any other: what is handed to a
room from above it names by a protocol of its own.  And no module leads back to itself, whatever the
imports are for: so each can be read after those that it stands on.
"""  # noqa: E501

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = tuple(
    ROOT / top
    for top in ("dsms", "server/dsms_server", "clients/dsms_client", "clients/dsms_spark")
)

SCALARS = "dsms.forms.scalars"  # one value of whatever library
BAGS = "dsms.forms.bags"  # rows counted by their values, in queries and in clients
TYPES = {"dsms.sql.types", "dsms.sql.signatures"}  # what the cards of aggregates are written in
# their meanings, types and traits, which the binder reads
CARDS = {"dsms.aggregates.card", "dsms.aggregates.cards"}
SQL = {"dsms.sql"} | TYPES | CARDS
# api: plain data with SQL's types
# of values
TEXTS = {
    "dsms.instants",
    "dsms.lengths",
    "dsms.decimals",
    "dsms.lists",
    "dsms.structs",
    "dsms.typed_texts",
}
LANGUAGE = {"dsms.errors", "dsms.api"} | TEXTS | SQL
BELOW_STATE = LANGUAGE | {"dsms.plan"}
# knows of SQL's types and values only, so rooms below operators may use it
EXPRESSIONS = "dsms.operators.expressions"
# how they are computed; operators and synopses do it with the same kernels
AGGREGATES = "dsms.aggregates"
BELOW_OPERATORS = BELOW_STATE | {"dsms.state", EXPRESSIONS, AGGREGATES}
BELOW_STORAGE = BELOW_OPERATORS | {"dsms.operators", "dsms.synopses", "dsms.tables"}
ENGINE = BELOW_STORAGE | {
    "dsms.storage",
    "dsms.schedulers",
    "dsms.intake",
    "dsms.settings",
    "dsms.sessions",
    "dsms.rights",
}
QUERIES = ENGINE | {"dsms.oneshot", "dsms.running"}
CALLS = "dsms.python_functions"  # whose calls may be cut off
PERIODIC = {"dsms.periodic", "dsms.sharing", "dsms.archiving"}
RUNTIME = "dsms.running.runtime"
CURRENT = "dsms.running.current"
ON_RUNTIME = {
    f"dsms.running.{name}" for name in ("beginning", "behind", "current", "prepare", "progress")
}
WORK = QUERIES | PERIODIC | {RUNTIME, "dsms.reads"} | ON_RUNTIME


# Who may import whom.  A room may always import from itself.
ALLOWED: dict[str, set[str]] = {
    "dsms.codes": set(),
    "dsms.errors": set(),
    "dsms.instants": set(),  # texts of instants are read in one way wherever they come from
    "dsms.lengths": set(),  # and those of lengths
    "dsms.decimals": set(),  # and those of DECIMALs
    "dsms.spelled": set(),  # values as texts
    # and lists as texts
    "dsms.lists": {"dsms.instants", "dsms.lengths", "dsms.decimals", "dsms.spelled",
                   "dsms.typed_texts"},
    "dsms.structs": {"dsms.lists"},  # and structs
    "dsms.typed_texts": {"dsms.instants", "dsms.spelled"},  # DATE, TIME and UUID
    "dsms.sizes": set(),  # and of sizes
    "dsms.sessions": {"dsms.errors"},  # what statements see of a server
    "dsms.settings": {"dsms.sessions"},
    "dsms.state_key": {"dsms.errors"},  # the file that holds the key of a data folder
    "dsms.python_functions": {"dsms.errors"},  # calls of them, and the process that runs them
    # Arrow data from outside, judged before anything else sees it
    "dsms.untrusted": {"dsms.errors"},
    "dsms.tabular": {"dsms.lists", "dsms.structs", "dsms.typed_texts"},  # answers as tables
    # Whatever a user holds rows in -> columns, before any schema is known.
    "dsms.forms": {"dsms.errors", "dsms.instants", "dsms.untrusted", SCALARS},
    BAGS: {"dsms.lists"},
    SCALARS: set(),
    "dsms.sql.types": {"dsms.instants", "dsms.structs"},
    "dsms.sql.signatures": {"dsms.sql.types"},
    "dsms.aggregates.card": TYPES,
    "dsms.aggregates.cards": TYPES | {"dsms.aggregates.card"},
    "dsms.sql": {"dsms.codes", "dsms.errors", "dsms.instants", "dsms.lengths", "dsms.lists"}
    | {SCALARS, "dsms.structs", "dsms.typed_texts"} | TYPES | CARDS,
    "dsms.file_texts": {"dsms.errors"},  # statements that name files
    # looking at files that statements name
    "dsms.file_folders": {"dsms.errors", "dsms.api"},
    "dsms.secret_texts": set(),  # what shells and logs show of statements
    "dsms.api": {"dsms.errors", "dsms.tabular"} | SQL,
    "dsms.rights": LANGUAGE | {"dsms.settings"},  # users, and what each statement needs
    "dsms.plan": LANGUAGE,
    "dsms.state": BELOW_STATE,
    EXPRESSIONS: {"dsms.errors", "dsms.spelled", "dsms.python_functions"} | TEXTS | SQL,
    AGGREGATES: BELOW_STATE | {"dsms.state", EXPRESSIONS, "dsms.python_functions"},
    "dsms.synopses": BELOW_OPERATORS,
    "dsms.operators": BELOW_OPERATORS,
    # outside data -> typed columns and instants: knows no operator
    "dsms.intake": BELOW_STATE | {"dsms.state", "dsms.forms", SCALARS, "dsms.untrusted"},
    # values are shown as intake shows them
    "dsms.tables": BELOW_STATE | {"dsms.state", "dsms.intake"},
    "dsms.schedulers": BELOW_STORAGE,
    "dsms.storage": BELOW_STORAGE | {"dsms.intake", "dsms.state_key"},  # tables, windows
    # a plan run once over batches
    "dsms.oneshot": BELOW_OPERATORS | {"dsms.operators", "dsms.synopses"},
    "dsms.running": ENGINE | {"dsms.oneshot", BAGS, CALLS},  # a registered query at work
    "dsms.periodic": QUERIES | {CALLS},  # ... that answers at boundaries
    "dsms.sharing": QUERIES | {"dsms.periodic"},  # ... from synopses that several read
    "dsms.archiving": QUERIES | {"dsms.periodic"},  # what leaves windows and answers
    RUNTIME: QUERIES | PERIODIC | {CALLS},  # everything declared, and how it moves on
    CURRENT: QUERIES | PERIODIC | {RUNTIME},
    **dict.fromkeys(ON_RUNTIME - {CURRENT}, QUERIES | PERIODIC | {RUNTIME, CURRENT, CALLS}),
    # what a plan that is run once reads
    "dsms.reads": QUERIES | PERIODIC | {RUNTIME, BAGS} | ON_RUNTIME,
    # one statement each
    "dsms.commands": WORK
    | {"dsms.secret_texts", "dsms.sizes", "dsms.file_texts", "dsms.python_functions", SCALARS},
    "dsms.recovering": WORK | {"dsms.commands"},  # an engine's inputs and state, written down
    "dsms.frames": WORK,  # frames that wait together
    "dsms.listening": {"dsms.api", "dsms.errors"},  # changes handed to functions and tasks
    "dsms.taking": WORK  # rows and time in
    | {"dsms.listening", "dsms.forms", "dsms.commands", "dsms.recovering", "dsms.frames"},
    "dsms.hosting": WORK  # for a server
    | {"dsms.taking", "dsms.commands", "dsms.recovering"},
    "dsms.engine": WORK
    | {"dsms.hosting", "dsms.listening", "dsms.file_folders", "dsms.commands"}
    | {"dsms.python_functions"}
    | {"dsms.recovering", "dsms.tabular"},
    "dsms.testing": WORK
    | {"dsms.engine", "dsms.forms", SCALARS, "dsms.lengths", "dsms.tabular"},  # of users' queries
    "dsms.kernel_folder": set(),
    "dsms.kernel_cache": {"dsms.operators"},
    "dsms.warmup": WORK | {"dsms.commands", "dsms.engine", "dsms.kernel_cache"},
    # the package leads to its parts, and to the client (`dsms.connect`)
    "dsms": {"dsms.engine", "dsms.settings", "dsms.kernel_folder", "dsms_client"},
    # The server uses the engine and what crosses its border (data in, errors and types out), no
    # room behind it.
    "dsms_server": {"dsms.engine", "dsms.warmup", "dsms.kernel_folder", "dsms.api", "dsms.errors",
                    "dsms.frames", "dsms.lengths", "dsms.sizes", "dsms.file_folders",
                    "dsms.python_functions",
                    "dsms.settings", "dsms.state_key",
                    "dsms.sessions", "dsms.intake", "dsms.rights", "dsms.secret_texts", *SQL,
                    "dsms.forms", "dsms.untrusted", "dsms.tabular", "dsms.instants", SCALARS,
                    "dsms_client.protocol",
                    "dsms_client.values", "dsms_client.columns", "dsms_client.frames",
                    "dsms_client.tokens",
                    "dsms_spark.pipe"},
    "dsms_client": {"dsms.errors", "dsms.decimals", "dsms.secret_texts", "dsms.file_texts",
                    "dsms.forms",
                    "dsms.instants",
                    BAGS, SCALARS, "dsms.lists", "dsms.tabular",
                    "dsms.lengths", "dsms.sizes", "dsms.structs", "dsms.typed_texts",
                    "dsms.untrusted"},
    # Jobs on archives: with the engine's words and the store's files, without the engine.
    "dsms_spark": BELOW_STORAGE | {"dsms.storage", "dsms.oneshot", "dsms.intake", "dsms_client",
                                   "dsms_client.protocol", "dsms.tabular",
                                   "dsms.python_functions"},
}  # a table  # fmt: skip

# The protocol is the one part of the clients that others use; so it may use nothing of theirs.
PROTOCOL = {
    "dsms_client.protocol",
    "dsms_client.values",
    "dsms_client.columns",
    "dsms_client.frames",
    "dsms_client.tokens",
    "dsms_spark.pipe",
}
ALLOWED |= {
    "dsms_client.protocol": {"dsms.errors"},
    "dsms_client.values": {"dsms.forms", SCALARS},
    "dsms_client.columns": {
        "dsms.errors",
        "dsms.lists",
        "dsms.structs",
        "dsms.tabular",
        "dsms.typed_texts",
    },
    "dsms_client.tokens": {"dsms.errors"},
    "dsms_client.frames": {"dsms.errors", "dsms_client.protocol"},
    "dsms_spark.pipe": set(),
}

# Commands where client, server and engine meet in one process.
MEETING = {
    "dsms_client.commands.serve": {"dsms_server"},
    "dsms_client.commands.embedded": {"dsms_server"},
    "dsms_client.commands.rekey": {"dsms.state_key", "dsms.storage"},
    "dsms_client.commands.migrate": {"dsms_server", "dsms.state_key", "dsms.recovering"},
    "dsms_client.commands.warmup": {"dsms.kernel_folder", "dsms.warmup"},
    "dsms_client.commands.doctor": {"dsms.kernel_folder", "dsms_spark"},
    "dsms_client.commands.archive": {"dsms.api", "dsms.storage", "dsms_spark"}
    | {"dsms.python_functions"}
    | SQL,
}
HEAVY = ("pyspark", "uvloop", "numba", "duckdb", "aiohttp", "rich")
# time is an argument, sockets are the server's
WAITS = "dsms.listening"  # in the loop of its caller, for what the engine is given there
WATCHES = "dsms.python_functions.watch"  # how long a call in another process takes
NO_CLOCK = {"time", "asyncio", "socket", "selectors", "random"}


@dataclass(frozen=True, slots=True)
class Import:
    """Module `source` imports `target` in this line."""

    source: str
    target: str
    line: int

    def __str__(self) -> str:
        return f"{self.source}:{self.line} imports {self.target}"


def modules() -> Iterator[tuple[str, Path]]:
    for top in SOURCES:
        for path in sorted(top.rglob("*.py")):
            name = ".".join(path.relative_to(top.parent).with_suffix("").parts)
            yield name.removesuffix(".__init__"), path


def imports(module: str, text: str, package: bool = False) -> list[Import]:
    """All imports of a module's source, relative ones resolved, `from dsms import x` read as
    dsms.x."""
    found = []
    for node in _statements(ast.parse(text).body):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            targets = list(_from(module, node, package))
        else:
            continue
        found += [Import(module, target, node.lineno) for target in targets]
    return found


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """With those inside; not expressions, of which there are ten times as many."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(node, part, ()))
        for part in ("handlers", "cases"):
            for inner in getattr(node, part, ()):
                yield from _statements(inner.body)


def _from(module: str, node: ast.ImportFrom, package: bool) -> Iterator[str]:
    base = node.module or ""
    if node.level:
        parts = module.split(".")
        parts = parts[: len(parts) - node.level + package]
        base = ".".join([*parts, base] if base else parts)
    for alias in node.names:
        yield f"{base}.{alias.name}"


def room(module: str, rooms: set[str]) -> str:
    """The longest name in `rooms` that the module lies in: dsms.sql.binder.scope -> dsms.sql."""
    parts = module.split(".")
    for n in range(len(parts), 1, -1):
        if ".".join(parts[:n]) in rooms:
            return ".".join(parts[:n])
    # `from dsms import Engine` names no room: it is the package itself
    return parts[0]


def own(module: str) -> bool:
    return module.split(".")[0] in ("dsms", "dsms_server", "dsms_client", "dsms_spark")


def judge(found: Import) -> str | None:
    """What is wrong with an import, or None."""
    rooms = set(ALLOWED)
    here, there = room(found.source, rooms), room(found.target, rooms)
    if here == there:
        return None
    if there in ALLOWED[here] or (there in PROTOCOL and here in ("dsms_client", "dsms_spark")):
        return None
    met = MEETING.get(found.source, set())
    if there in met:
        return None
    return (
        f"{found}: {here} may import {', '.join(sorted(ALLOWED[here] | met)) or 'nothing of ours'}"
    )


@cache
def everything() -> list[Import]:
    return [
        found
        for name, path in modules()
        for found in imports(name, path.read_text(encoding="utf-8"), path.name == "__init__.py")
    ]


def test_imports_point_one_way():
    found = [i for i in everything() if own(i.target)]
    assert len(found) > 500
    assert [complaint for i in found if (complaint := judge(i))] == []


def test_every_room_has_a_rule():
    """A new room must say where it stands, and a rule must be about something."""
    here = {
        ".".join(name.split(".")[:2]) if name.startswith("dsms.") else name.split(".")[0]
        for name, _ in modules()
    }
    assert here | PROTOCOL | TYPES | CARDS | ON_RUNTIME | {
        EXPRESSIONS,
        RUNTIME,
        BAGS,
        SCALARS,
    } == set(ALLOWED)
    assert set(MEETING) <= {name for name, _ in modules()}


def test_the_rules_have_no_circle():
    order: list[str] = []
    waiting = {name: rooms & set(ALLOWED) for name, rooms in ALLOWED.items()}
    while ready := [name for name, rooms in waiting.items() if rooms <= set(order)]:
        order += ready
        waiting = {name: rooms for name, rooms in waiting.items() if name not in order}
    assert not waiting


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """One way back to itself, if there is any."""
    try:
        tuple(TopologicalSorter(arrows).static_order())
    except CycleError as found:
        return [found.args[1][::-1]]
    return []


def test_no_module_leads_back_to_itself():
    """Also not by way of imports inside functions, or for type checkers; a package may gather what
    lies in it."""
    names = {name for name, _ in modules()}
    arrows: dict[str, set[str]] = {name: set() for name in names}
    for found in everything():
        target = next((t for t in _prefixes(found.target) if t in names), None)
        if target is not None and not f"{found.source}.".startswith(f"{target}."):
            arrows[found.source].add(target)
    assert circles(arrows) == []


def test_a_circle_is_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c", "b"]]


def _prefixes(name: str) -> Iterator[str]:
    """The name, and of what it is a part."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        yield ".".join(parts[:n])


def test_the_engine_reads_no_clock_and_opens_no_socket():
    found = [
        i
        for i in everything()
        if i.source.split(".")[0] == "dsms"
        and i.target.split(".")[0] in NO_CLOCK
        and (i.source, i.target) not in ((WAITS, "asyncio"), (WATCHES, "time"))
    ]
    assert [str(i) for i in found] == []


@pytest.mark.parametrize(
    ("module", "text", "wrong"),
    [
        ("dsms.plan.cost", "import dsms.operators.join", True),
        ("dsms.plan.cost", "def f():\n    from dsms.operators import join", True),
        ("dsms.plan.cost", "from ..operators import join", True),
        ("dsms.plan.cost", "from . import text\nfrom dsms.sql import ast", False),
        ("dsms.sql.ast", "from dsms import plan", True),
        ("dsms.synopses.basic", "from dsms.operators.expressions.show import show", False),
        ("dsms.synopses.basic", "from dsms.operators.join import kernels", True),
        ("dsms.synopses.basic", "from dsms.aggregates.sums import follow", False),
        ("dsms.aggregates.topk", "from dsms.synopses.cells import Synopsis", True),
        ("dsms.aggregates.cards.topk", "from dsms.aggregates.topk import TopK", True),
        ("dsms.sql.binder.aggregates", "from dsms.aggregates.cards import CARDS", False),
        ("dsms.sql.binder.aggregates", "from dsms.aggregates.topk import TopK", True),
        ("dsms.operators.join", "from dsms.synopses.cells import Synopsis", True),
        ("dsms.operators.expressions.show", "from dsms.operators import join", True),
        ("dsms.state.live", "if TYPE_CHECKING:\n    from dsms.engine import Engine", True),
        ("dsms.state.live", "if TYPE_CHECKING:\n    from dsms_client.sync import Client", True),
        ("dsms.engine", "from dsms_server.serve import run", True),
        ("dsms_client.sync", "from dsms.engine import Engine", True),
        ("dsms_client.sync", "from dsms import Engine", True),
        ("dsms.running.query", "from dsms.running.runtime import Runtime", True),
        ("dsms.running.query", "from dsms.periodic.query import PeriodicQuery", True),
        ("dsms.running.beginning", "from dsms.running.runtime import Runtime", False),
        ("dsms.sharing.group", "from dsms.archiving.place import Place", True),
        ("dsms_client.protocol", "from dsms_client.sync import Client", True),
        ("dsms_client.commands.serve", "from dsms_server import serve", False),
        ("dsms_client.commands.shell", "from dsms_server import serve", True),
        ("dsms_server.core", "from dsms.operators.join import kernels", True),
        ("dsms_server.core", "from dsms_client.aio import AsyncClient", True),
    ],
)
def test_a_wrong_import_is_seen(module, text, wrong):
    assert any(judge(i) for i in imports(module, text) if own(i.target)) == wrong


@pytest.mark.parametrize(
    ("module", "banned"),
    [
        ("dsms", HEAVY),
        ("dsms_client", (*HEAVY, "pyarrow", "numpy")),
        ("dsms.engine", ("pyspark", "uvloop", "duckdb", "aiohttp", "rich")),
        ("dsms_client.cli", HEAVY),
        ("dsms_spark", (*HEAVY, "pyarrow", "numpy")),
        ("dsms_server.spark", ("pyspark", "uvloop", "numba", "duckdb", "aiohttp", "rich")),
    ],
)
def test_import_stays_light(module, banned):
    code = f"import sys, {module}; print([m for m in {banned!r} if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert run.stdout.strip() == "[]"
