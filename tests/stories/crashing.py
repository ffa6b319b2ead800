"""Plays a story on an engine that is killed again and again, and goes on where it was."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from dsms.api import Subscription
from dsms.engine import Engine
from dsms.settings import Settings
from dsms.storage.frozen import thaw
from tests.faults.simfiles import SimFiles
from tests.stories.declared import Declared
from tests.stories.model import Beat, Clock, End, Event, Line, Statement, Story
from tests.stories.play import (
    Way,
    _expanded,
    _said,
    event_streams,
    framed,
    rows_in,
    taken,
    with_options,
)


@dataclass(slots=True)
class Host:
    """An engine, its readers, and what they have read."""

    data: str
    random: Random
    files: SimFiles = field(default_factory=SimFiles)
    pushes: dict[str, list[Line]] = field(default_factory=dict)
    readers: dict[str, Subscription] = field(default_factory=dict)
    engine: Engine = field(init=False)
    crashes: int = 0
    frames: int = 0  # sent so far: their numbers

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        settings = Settings(checkpoint_bytes=self.random.choice((1, 300, 3000, 1 << 20)))
        self.engine = Engine(self.data, settings, self.files)
        self.engine.runtime.durable.least = self.random.choice((1, 1 << 16))
        assert not self.engine.saver.recovered.notes

    def read(self) -> None:
        """Readers take what waits."""
        for name, reader in self.readers.items():
            lines = self.pushes[name]
            ended = any(line.sign == "!" for line in lines)
            lines += [
                line for line in taken(reader, rows_in(lines)) if line.sign != "!" or not ended
            ]

    def crash(self) -> None:
        """The process is killed; its next life begins, and readers resume."""
        self.crashes += 1
        self.saved()
        self.engine.saver.catalog.close()  # what the operating system does for a process that died
        self.files = self.files.crash("kill", self.random)
        self.open()
        for name in self.readers:
            if name in self.engine.runtime.queries:
                self.readers[name] = self.engine.subscribe(name, rows_in(self.pushes[name]))

    def saved(self) -> None:
        """Whatever runs can be written down, and read."""
        saver = self.engine.saver
        thaw(
            b"".join(saver.checkpointer.copy()()),
            saver.checkpointer.outside(),
            saver.durable.resolve,
            "the state",
        )
        assert saver.checkpointer.trouble is None, saver.checkpointer.trouble

    def maybe(self) -> None:
        """Perhaps read, perhaps crash."""
        if self.random.random() < 0.5:
            self.read()
        if self.random.random() < 0.25:
            self.crash()


def play(story: Story, declared: Declared, way: Way, data: str, random: Random) -> Host:
    """Run the story; what its queries pushed stands in `pushes`."""
    host = Host(data, random)
    for section in story.sections:
        match section.kind:
            case "sql":
                host.engine.execute(_expanded(section.body))
            case "query":
                sql = f"CREATE QUERY {section.name} AS {with_options(section.body, way)}"
                host.engine.execute(sql, user=way.user)
                host.readers[section.name] = host.engine.subscribe(section.name, 0)
                host.pushes[section.name] = []
            case "input":
                _feed(host, declared, section.events, way)
            case "rows" | "explain" | "fails":
                _said(host.engine, section)
        host.maybe()
    host.read()
    host.saved()
    return host


def _feed(host: Host, declared: Declared, events: list[Event], way: Way) -> None:
    for event in framed(events, declared, way):
        host.frames += 1
        _apply(host, declared, event)
        host.maybe()
        if isinstance(event, tuple) and host.random.random() < 0.3:
            _apply(host, declared, event)  # the writer had no answer, and sends it again


def _apply(host: Host, declared: Declared, event: object) -> None:
    engine = host.engine
    match event:
        case (str(stream), list(rows)):
            half = host.random.randint(0, len(rows))
            if half and half < len(rows) and host.random.random() < 0.5:
                engine.ingest(stream, rows[:half], client="w", seq=host.frames, last=False)
                host.maybe()
                engine = host.engine
            engine.ingest(stream, rows, client="w", seq=host.frames)
        case Beat() | End():
            for name in [event.stream] if event.stream else event_streams(declared):
                engine.heartbeat(name, event.upto) if isinstance(event, Beat) else engine.end(name)
        case Clock():
            engine.advance(event.now)
        case Statement():
            engine.execute(event.sql)
