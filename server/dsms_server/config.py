"""The configuration of a server: addresses, secrets and limits.  A TOML file and the command line
fill the same fields."""

from __future__ import annotations

import difflib
import ipaddress
import re
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from dsms.errors import UsageError
from dsms.lengths import interval_of
from dsms.python_functions import Functions
from dsms.sizes import size_of
from dsms_client import tokens
from dsms_client.protocol import DEFAULT_PORT
from dsms_server import quotas, retained
from dsms_server.audit.events import GROUPS


@dataclass(frozen=True, slots=True)
class Config:
    """Sizes are bytes, times are seconds.  `http_port`, `postgres_port` None: not at all; port 0:
    any free one."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    http_port: int | None = None
    postgres_port: int | None = None  # where PostgreSQL's protocol is spoken, for reading
    data: str | None = None  # a directory; None: nothing survives the process
    state_key_file: str | None = None  # holds the key that `data` is encrypted with
    accept_loss: tuple[str, ...] = ()  # streams that go on without what damaged files have lost
    files: tuple[str, ...] = ()  # folders whose files statements may name
    sink_files: tuple[str, ...] = ()  # folders in which sinks may write
    secrets: str | None = None  # the folder of secrets that sources and sinks may name
    functions: str | None = None  # the folder of functions in Python that statements may name
    function_timeout: float = 10.0  # seconds that a call of one may take
    function_bytes: int = 1 << 30  # of memory that it may take
    # a folder or URL below which archives lie; None: in the data directory
    archive: str | None = None
    spark_master: str | None = None  # None: in a process of this machine, on all cores
    spark_memory: str | None = None  # of Spark's driver; None: as Spark has it
    token: str | None = None
    auth: bool = False  # each session has a user; who shows `token` is the administrator
    quota: tuple[str, ...] = ()  # name=number, of users who have none of their own
    metrics_token: str | None = None  # what /metrics asks for
    open: bool = False  # every client that reaches `host` may come in without a token
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_client_ca: str | None = None  # who has signed the certificates of users
    max_frame: int = 64 << 20
    max_reply: int = 256 << 20
    max_sessions: int = 1000  # of peers that have shown who they are
    max_strangers: int = 256  # connections of others
    hello_seconds: float = 2.0  # in which a peer must show its token, where one is asked for
    quiet_seconds: float = 10.0  # in which the first request must come, where none is asked for
    handshake_seconds: float = 10.0  # in which a TLS handshake must be done
    # clients say something so often, and are let go if they don't; 0: they are not asked to
    ping_seconds: float = 60.0
    guess_seconds: float = 0.1  # until the first wrong token of an address is answered
    max_requests: int = 1024  # that wait in one session
    max_queries: int | None = None  # None: as the engine has it
    state_bytes: int | None = None
    statement_bytes: int | None = None
    archive_local_bytes: int | None = None  # of files that a query reads here; more on Spark
    step_rows: int | None = None
    # what is kept of streams without RETAIN: '10 min', '1000 rows', both, or 0
    retain_default: str | None = None
    retain_default_bytes: int | None = None  # ... of all; None: an eighth of `memory`, or 256 MiB
    result_log_rows: int | None = None
    subscriber_bytes: int = 64 << 20
    # of one session that it has not read; past it its next statements wait
    reply_bytes: int = 64 << 20
    total_reply_bytes: int = 512 << 20  # of all sessions
    reply_seconds: float = 60.0  # in which something of them must have been read (DS620)
    unprocessed_bytes: int = 64 << 20  # of one session; past it its socket is not read on
    total_unprocessed_bytes: int = 512 << 20  # of all sessions
    audit_log: str | None = None  # the file in which it stands who did what
    audit: tuple[str, ...] = ("all",)  # what of it (`dsms_server.audit.events.GROUPS`)
    audit_required: bool = False  # nothing is done that can't be written there
    audit_max_bytes: int = 100 << 20  # at which the file is rotated; 0: never
    audit_keep: int = 10  # earlier files that are kept
    audit_seconds: float = 60.0  # for which frames of rows, and the like, are summed up
    safe_mode: bool = False  # queries do not move
    warmup: bool = True  # kernels are compiled before the server listens
    max_slice_ms: int | None = None  # slices of the engine that take longer are named in the log
    # of all that is accounted for; None: three quarters of the machine's; 0: any
    memory: int | None = None
    max_selects: int | None = None  # whose plans run at once; None: one a core, and at least four
    # seconds that a statement may take, unless its session says otherwise; 0: any
    statement_timeout: float = 0.0
    # by which the system clock may jump, seconds, and be followed at once
    max_clock_step: float = 10.0
    # for which it must have stood elsewhere to be followed there
    clock_patience_seconds: float = 60.0
    # in which statements of a peer that has closed its side must be answered
    half_closed_seconds: float = 10.0
    stop_seconds: float = 10.0  # what a graceful stop may take

    @property
    def python_functions(self) -> Functions | None:
        """Where functions in Python are, and what they may take."""
        if self.functions is None:
            return None
        return Functions(self.functions, self.function_timeout, self.function_bytes)

    @property
    def for_spark(self) -> tuple[Any, ...]:
        """What Spark's process is told."""
        named = self.python_functions
        more = () if named is None else (named,)
        return self.spark_master, self.spark_memory, *more

    def check(self) -> Config:
        """Itself, or DS640 that names the option that makes no sense."""
        for name in ("port", "http_port", "postgres_port"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 65535:
                raise UsageError("DS640", f"{name} must lie in 0..65535, not {value}")
        for name in _SIZES:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError("DS640", f"{name} must be at least 1, not {value}")
        for folder in self.files:
            if not Path(folder).is_dir():
                raise UsageError("DS640", f"files: {folder} is no folder")
        for folder in self.sink_files:
            if not Path(folder).is_dir():
                raise UsageError("DS640", f"sink_files: {folder} is no folder")
        if self.secrets is not None and not Path(self.secrets).is_dir():
            raise UsageError("DS640", f"secrets: {self.secrets} is no folder")
        if self.functions is not None and not Path(self.functions).is_dir():
            raise UsageError("DS640", f"functions: {self.functions} is no folder")
        self._check_audit()
        if quotas.parse(self.quota) and not self.auth:
            raise UsageError("DS640", "quotas are of users", hint="give auth")
        for name in _SECONDS:
            if getattr(self, name) < 0:
                raise UsageError(
                    "DS640", f"{name} must not be negative, it is {getattr(self, name)}"
                )
        retained.parse(self.retain_default)
        if self.memory is not None and self.memory < 0:
            raise UsageError("DS640", f"memory must not be negative, it is {self.memory}")
        if self.spark_memory is not None and not re.fullmatch(
            r"\d+[kmgt]", self.spark_memory, re.I
        ):
            raise UsageError(
                "DS640", f"spark_memory is a size such as 512m or 4g, not {self.spark_memory!r}"
            )
        if self.token == "":
            raise UsageError("DS640", "the token is empty")
        if self.metrics_token == "":
            raise UsageError("DS640", "the token of /metrics is empty")
        if self.token is None and not (self.open or self.auth) and not _only_here(self.host):
            raise UsageError(
                "DS645",
                f"whoever reaches {self.host or 'this machine'} could do everything, since no "
                "token is asked for",
                hint="give one by --token-file or DSMS_TOKEN; or say --open if that is meant",
            )
        if (self.tls_cert is None) != (self.tls_key is None):
            raise UsageError(
                "DS640",
                "TLS needs both a certificate and its key",
                hint="give tls_cert and tls_key",
            )
        if self.auth and self.open:
            raise UsageError(
                "DS640", "a server with --auth is open to nobody", hint="leave --open out"
            )
        if self.tls_client_ca is not None and not (self.auth and self.tls_cert):
            raise UsageError(
                "DS640",
                "certificates of users need --auth, and TLS",
                hint="give tls_cert and tls_key",
            )
        return self

    def _check_audit(self) -> None:
        for name in self.audit:
            if name not in GROUPS:
                known = ", ".join(sorted(GROUPS))
                raise UsageError("DS640", f"audit knows no {name!r}", hint=f"it knows {known}")
        if not self.audit:
            raise UsageError("DS640", "audit names nothing", hint="leave audit_log out instead")
        if self.audit_required and self.audit_log is None:
            raise UsageError(
                "DS640", "audit_required, and there is no audit log", hint="give audit_log"
            )
        if self.audit_max_bytes < 0 or self.audit_keep < 1:
            raise UsageError("DS640", "audit_max_bytes is at least 0, audit_keep at least 1")


_IN_FILES = {  # options that name a file with the value of another one
    "token_file": "token",
    "admin_token_file": "token",
    "metrics_token_file": "metrics_token",
}
_SECONDS = [f.name for f in fields(Config) if f.name.endswith(("_seconds", "_timeout"))]
_SIZES = [
    f.name
    for f in fields(Config)
    if f.name.startswith("max_")
    or (f.name.endswith(("_bytes", "_rows")) and f.name != "audit_max_bytes")
]
_IN_SECONDS = {*_SECONDS, "max_clock_step"}
_IN_BYTES = {"max_frame", "max_reply", "memory"} | {
    f.name for f in fields(Config) if f.name.endswith("_bytes")
}


def _only_here(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def from_file(path: str) -> dict[str, Any]:
    """The options of a TOML file (keys as in Config, ``-`` may stand for ``_``).  Raises DS640."""
    try:
        given = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise UsageError("DS640", f"cannot read the configuration {path}: {problem}") from None
    options = {key.replace("-", "_"): value for key, value in given.items()}
    for other, name in _IN_FILES.items():
        file = options.pop(other, None)
        if file is not None:
            if name in options:
                raise UsageError("DS640", f"{name} and {other} are both given")
            options[name] = tokens.read(_typed(other, file, "str"))
    if "no_warmup" in options:
        options["warmup"] = not _typed("no_warmup", options.pop("no_warmup"), "bool")
    return options


def build(*layers: dict[str, Any]) -> Config:
    """A checked Config from option maps, later ones win; options that are None say nothing."""
    known = {f.name: str(f.type) for f in fields(Config)}
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            if key not in known:
                close = difflib.get_close_matches(key, known, n=1)
                raise UsageError(
                    "DS640",
                    f"unknown option `{key}`",
                    hint=f"did you mean `{close[0]}`?" if close else None,
                )
            if value is not None:
                merged[key] = _typed(key, value, known[key])
    return replace(Config(), **merged).check()


def _read(key: str, value: Any) -> Any:
    """Texts of sizes and times, as the command line takes them."""
    if not isinstance(value, str) or not (key in _IN_BYTES or key in _IN_SECONDS):
        return value
    found: float | None = size_of(value)
    if key in _IN_SECONDS:
        length = interval_of(value)
        found = None if length is None else length / 1_000_000
    if found is None:
        examples = "'30 s' or '5 min'" if key in _IN_SECONDS else "'64M' or '1G'"
        raise UsageError("DS640", f"{key} is a number, or a text such as {examples}: not {value!r}")
    return found


def _typed(key: str, value: Any, wanted: str) -> Any:
    if wanted.startswith("tuple"):
        if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
            raise UsageError("DS640", f"{key} must be a list of names, not {value!r}")
        return tuple(value)
    value = _read(key, value)
    if wanted.startswith("str") and not isinstance(value, str):
        raise UsageError("DS640", f"{key} must be text, not {value!r}")
    if wanted == "bool" and not isinstance(value, bool):
        raise UsageError("DS640", f"{key} must be true or false, not {value!r}")
    if wanted.startswith("int") and (isinstance(value, bool) or not isinstance(value, int)):
        raise UsageError("DS640", f"{key} must be a whole number, not {value!r}")
    if wanted == "float" and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise UsageError("DS640", f"{key} must be a number, not {value!r}")
    return value
