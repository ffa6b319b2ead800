"""`dsms serve`: build the engine, listen, and load grammar and kernels meanwhile, until SIGTERM or
SIGINT."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsms.errors import UsageError
from dsms_server import clock, descriptors, lean, quiet, retained
from dsms_server.config import Config
from dsms_server.machine import default_share

# what takes time to load comes when all that can be wrong with the options has been said
if TYPE_CHECKING:
    from dsms_server.accepting import Bound
    from dsms_server.face import EngineFace
    from dsms_server.server import Server
    from dsms_server.spark import Spark

log = logging.getLogger("dsms.server")
Say = Callable[[str], None]
Progress = Callable[[str, int, int], None]  # what comes next, steps done, steps in all


def run(config: Config, say: Say, warm: Progress | None = None) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code.

    `say` prints a line for the person who started it; `warm` is called with how far the kernels are
    (None: not warmed).
    """
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s"
    )
    with quiet.sparing():
        return _run(config, say, warm)


def _run(config: Config, say: Say, warm: Progress | None) -> int:
    # the event loop must get the interpreter from the engine thread in time
    sys.setswitchinterval(0.0005)
    descriptors.raise_limit()
    make_folder(config.data)
    warn_of_readers(config.data)
    look_at_audit(config)
    _load_code()
    if warm is not None:
        _prepare(say, warm)
    engine, spark, take_ports = _come_back(config)
    check_administrator(config, engine)
    for line in recovered(engine) if config.data is not None else [forgetful(config)]:
        say(line)
    if config.safe_mode:
        say(
            "note: safe mode: queries do not move, rows wait for them; drop what did harm and "
            "start without --safe-mode"
        )
    from dsms_server.server import Server

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        gc.collect()  # what came since the code was loaded: the state
        gc.freeze()
        runner.run(_serve(Server(engine, config, spark, take_ports), say, warm is not None))
    if engine.unsaved is not None:
        say(f"note: the state could not be written down: {engine.unsaved}")
        say(
            "note: rows of streams of durability none since the last checkpoint are lost; all "
            "else comes back"
        )
        return 1
    return 0


def _load_code() -> None:
    """All modules that a server needs, without a look for cycles among what stays anyhow."""
    calm_collector()
    lean.load_arrow()
    for module in ("dsms.engine", "dsms_server.server"):
        import_module(module)
    gc.freeze()


def _come_back(config: Config) -> tuple[EngineFace, Spark, Callable[[], Bound]]:
    """The engine with what its data folder holds, and who gives its ports to the server; until that
    is asked, whoever comes is told that the server is coming back."""
    from dsms_server.accepting import Bound
    from dsms_server.recovering import WaitingRoom
    from dsms_server.spark import Spark, worker_command

    spark = Spark(worker_command(*config.for_spark))
    if config.data is None:
        return make_engine(config, spark), spark, Bound
    room = WaitingRoom(config)
    room.open()
    try:
        return make_engine(config, spark, room.see), spark, room.leave
    except BaseException:
        room.leave().close()
        raise


def _prepare(say: Say, warm: Progress) -> None:
    """Have all kernels compiled; once they are kept, this takes no time."""
    from dsms import kernel_folder, warmup

    found = kernel_folder.complaint()
    if found is not None:
        say(f"note: {found}")
    warmup.prepare(warm)


def make_folder(data: str | None) -> None:
    """The data directory, if there is to be one, before anything that takes long.  Raises DS543."""
    try:
        if data is not None:
            Path(data).mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(
            "DS543",
            f"cannot make the data directory {data}: {problem.strerror}",
            hint="--data names a directory that may be written to",
        ) from None


def look_at_audit(config: Config) -> None:
    """The audit log can be written, which is known before anything that takes long; until it is,
    SIGHUP means nothing.  Raises DS640."""
    if config.audit_log is not None:
        from dsms_server.audit.file import AuditFile

        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        file = AuditFile(config.audit_log)
        file.begin()
        file.close()


def warn_of_readers(data: str | None) -> None:
    """Say so in the log if others may look into the data directory, as into those of earlier
    versions."""
    if data is not None and Path(data).stat().st_mode & 0o077:
        log.warning(
            "others on this machine may look into %s: `chmod -R go= %s` keeps its rows to you",
            data,
            data,
        )


def make_engine(
    config: Config, spark: Spark | None = None, recovering: Callable[[int], None] | None = None
) -> EngineFace:
    """The engine with the configured limits, over the catalog in `config.data` if there is one.

    `spark` is called when archives are to be updated; None: they are not."""
    from dsms import state_key
    from dsms.engine import Engine
    from dsms.file_folders import Files
    from dsms.settings import Settings
    from dsms_server.quotas import parse

    limits: dict[str, Any] = {
        "queries": config.max_queries,
        "state_bytes": config.state_bytes,
        "statement_bytes": config.statement_bytes,
        "archive_local_bytes": config.archive_local_bytes,
        "step_rows": config.step_rows,
        "result_log_rows": config.result_log_rows,
        "subscriber_bytes": config.subscriber_bytes,
        **_retained(config),
        "accept_loss": config.accept_loss,
        "archive": config.archive,
        "archive_due": None if spark is None else spark.due,
        "archive_runner": spark,
        "safe_mode": config.safe_mode,
        "files": Files(config.files) if config.files else None,
        "quota": parse(config.quota),
        "recovering": recovering,
    }
    known = {name: value for name, value in limits.items() if value is not None}
    file = config.state_key_file
    key = None if file is None or config.data is None else state_key.read(file)
    make_folder(config.data)
    settings = Settings(timer=clock.elapsed, deferred=True, group_commit=True, **known)
    return Engine(config.data, settings, state_key=key, functions=config.python_functions)


def _retained(config: Config) -> dict[str, int | None]:
    memory = default_share() if config.memory is None else config.memory
    size = config.retain_default_bytes or retained.share(memory)
    length, rows = retained.parse(config.retain_default) or (None, None)
    return {
        "retain_default": length,
        "retain_default_rows": rows,
        "retain_default_bytes": size,
    }


def recovered(engine: EngineFace) -> list[str]:
    """What to say of how the engine came back: nothing if there was nothing."""
    found = engine.recovered
    if found is None:
        return []
    lines = [f"note: {note}" for note in found.notes]
    if found.checkpoint or found.records:
        lines.insert(
            0,
            f"recovered: the checkpoint at record {found.checkpoint}, and {found.records} records "
            f"({found.rows} rows) behind it",
        )
    return lines


def check_administrator(config: Config, engine: EngineFace) -> None:
    """With users somebody must be able to make some.  Raises DS640."""
    rights = engine.rights
    if config.auth and config.token is None and not any(map(rights.administers, rights.users)):
        hint = (
            "give the administrator's token by --token-file (or --admin-token-file), and make "
            "users with it"
        )
        raise UsageError("DS640", "--auth, and nobody may administer this server", hint=hint)


def forgetful(config: Config) -> str:
    """What to say where there is no data directory."""
    rest = "; archives stay" if config.archive else ""
    return (
        "note: nothing is kept: without --data, declarations, queries and rows are gone when "
        f"the server stops{rest}"
    )


def calm_collector() -> None:
    """Rows of lists come and go by the hundred thousand without a cycle among them, and modules
    stay: the cycle collector looks seldom."""
    gc.set_threshold(200_000, 20, 20)


async def _serve(server: Server, say: Say, warm: bool) -> None:
    loop, config = asyncio.get_running_loop(), server.config
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, stop.set)
    await server.start()
    if config.audit_log is not None:
        loop.add_signal_handler(signal.SIGHUP, server.audit.reopen)
    http = f", http://{config.host}:{server.http_port}/metrics" if server.http_port else ""
    other = server.postgres_port
    postgres = f", postgresql://{config.host}:{other}" if other else ""
    say(f"dsms listens on {config.host}:{server.port}{http}{postgres}")
    loading = loop.run_in_executor(None, _load_rest, warm, stop.is_set)
    await stop.wait()
    say("stopping: finishing what was accepted")
    for number in (signal.SIGTERM, signal.SIGINT):  # a second signal ends the process at once
        with contextlib.suppress(NotImplementedError):
            loop.remove_signal_handler(number)
    await server.stop()
    await loading
    say("stopped")


def _load_rest(kernels: bool, stop: Callable[[], bool]) -> None:
    """Behind the listening socket, what the first statements need: the grammar, what is known of
    mistakes, and kernels that were kept.  Who needs one earlier loads that one."""
    from dsms import warmup
    from dsms.sql import mistakes
    from dsms.sql.grammar import parser

    try:
        parser()
        mistakes.ready()
        if kernels:
            warmup.load(stop)
    except Exception:
        log.exception("grammar or kernels could not be loaded: each will be when it is needed")
    gc.freeze()  # what is loaded stays; to look for cycles in it now would hold everybody up


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
