"""Which classes may stand in a state, under tags that outlive their names and places.

A class is one line of `stored.txt`: a tag, the version of its fields, where it is now.  Moved or
renamed it keeps its tag.  What is written of an object is its `shape` (tag, version, names of its
fields) and the values of the fields; what is read are those, by name:

    a field that the file lacks    takes its default
    a field that the class lacks   is an error, unless an upgrade took it (`dsms.storage.upgrades`)
    an unknown tag                 is an error

A class may say itself what is kept of it: `__getstate__` gives a dict, `__setstate__` takes it
(also one with names of earlier versions).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

from dsms.storage.upgrades import UPGRADES

Shape = tuple[str, int, tuple[str, ...]]  # tag, version, names of the fields
Form = tuple[Callable[..., Any], tuple[Any, ...]]
TABLE = Path(__file__).with_name("stored.txt")


@dataclass(frozen=True, slots=True)
class Gone:
    """The class of a tag that is read but no longer written: an upgrade makes something else of its
    objects."""


class LayoutError(ValueError):
    """Something in a state is not of this layout."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A line of the table."""

    tag: str
    version: int
    module: str
    name: str

    def cls(self) -> type:
        """The class, imported."""
        found: Any = import_module(self.module)
        for part in self.name.split("."):
            found = getattr(found, part)
        assert isinstance(found, type)
        return found


@cache
def by_tag() -> Mapping[str, Stored]:
    """The table."""
    out: dict[str, Stored] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            tag, version, place = line.split()
            module, _, name = place.partition(":")
            assert tag not in out, tag
            out[tag] = Stored(tag, int(version), module, name)
    return out


@cache
def by_place() -> Mapping[tuple[str, str], Stored]:
    """The table, by where classes are now."""
    return {(s.module, s.name): s for s in by_tag().values() if s.name != Gone.__name__}


# ---------------------------------------------------------------- what a class is made of


@dataclass(frozen=True, slots=True)
class Kind:
    """How objects of a stored class are taken apart and put together.

    fields   names in the order in which they are written; None: they differ from object to object
    own      the class has a `__getstate__` of its own
    value    an object never changes, so it is put together at once and may become another one
    made     it is made again by calling the class (`__reduce__`)
    """

    stored: Stored
    cls: type
    fields: tuple[str, ...] | None
    own: bool
    value: bool
    made: bool


@cache
def kind_of(stored: Stored) -> Kind:
    """How objects of that class are written and read."""
    cls = stored.cls()
    own = _own(cls, "__getstate__")
    made = "__reduce__" in vars(cls)
    fields = None if own else fields_of(cls)
    params = getattr(cls, "__dataclass_params__", None)
    value = params is not None and params.frozen and not own
    return Kind(stored, cls, fields, own, value, made)


def _own(cls: type, name: str) -> bool:
    method = getattr(cls, name, None)
    return getattr(method, "__module__", "").startswith("dsms.")


def fields_of(cls: type) -> tuple[str, ...] | None:
    """The fields that every object of the class has; None where objects have what they were
    given."""
    if dataclasses.is_dataclass(cls):
        return tuple(f.name for f in dataclasses.fields(cls))
    slots: list[str] = []
    for base in reversed(cls.__mro__):
        if base is not object and "__slots__" not in vars(base):
            return None
        found = vars(base).get("__slots__", ())
        slots += [found] if isinstance(found, str) else found
    return tuple(s for s in slots if s not in ("__weakref__", "__dict__"))


# ---------------------------------------------------------------- writing


class Shapes:
    """The shapes of a state that is being written: one object a class, so that it is written
    once."""

    def __init__(self) -> None:
        self._known: dict[type, tuple[Shape, Callable[[Any], Any]] | None] = {}
        self._others: dict[tuple[type, tuple[str, ...]], Shape] = {}

    def parts(self, obj: Any, kind: Kind) -> tuple[Any, ...]:
        """(shape, value of each field ...)."""
        cls = type(obj)
        known = self._known.get(cls)
        if known is None and kind.fields:
            known = (self._shape(kind, kind.fields), _getter(kind.fields))
            self._known[cls] = known
        if known is not None:
            try:
                return (known[0], *known[1](obj))
            except AttributeError:  # not all have been set
                pass
        found = self._some(obj, kind)
        return (self._shape(kind, tuple(found)), *found.values())

    def _some(self, obj: Any, kind: Kind) -> dict[str, Any]:
        if kind.own:
            found: dict[str, Any] = obj.__getstate__()
            return found
        names = kind.fields or ()
        if kind.fields is None:
            slots = [s for base in kind.cls.__mro__ for s in vars(base).get("__slots__", ())]
            names = (*slots, *vars(obj))
        return {n: getattr(obj, n) for n in names if hasattr(obj, n)}

    def _shape(self, kind: Kind, names: tuple[str, ...]) -> Shape:
        key = (kind.cls, names)
        if key not in self._others:
            self._others[key] = (kind.stored.tag, kind.stored.version, names)
        return self._others[key]


def _getter(names: Sequence[str]) -> Callable[[Any], Any]:
    if len(names) == 1:
        get = attrgetter(names[0])
        return lambda obj: (get(obj),)
    return attrgetter(*names)


# ---------------------------------------------------------------- reading


@cache
def _kind(tag: str) -> Kind:
    stored = by_tag().get(tag)
    if stored is None:
        raise LayoutError(f"it holds a `{tag}`, which this version does not know")
    return kind_of(stored)


@cache
def _simple(shape: Shape) -> bool:
    """Whether the values are just those of the present fields."""
    tag, version, names = shape
    kind = _kind(tag)
    return version == kind.stored.version and names == kind.fields


def new(shape: Shape) -> Any:
    """An empty object, to be filled."""
    kind = _kind(shape[0])
    if kind.value or kind.made or issubclass(kind.cls, Enum | Exception):
        raise LayoutError(f"a `{shape[0]}` is not put together like that")
    return object.__new__(kind.cls)


def fill(obj: Any, parts: tuple[Any, ...]) -> None:
    """Give an empty object its fields."""
    shape, values = parts[0], parts[1:]
    kind = _kind(shape[0])
    if type(obj) is not kind.cls or len(values) != len(shape[2]):
        raise LayoutError(f"the fields of a `{shape[0]}` are given to something else")
    if _simple(shape):
        for name, value in zip(shape[2], values, strict=True):
            setattr(obj, name, value)
        return
    put(obj, kind, shape[1], dict(zip(shape[2], values, strict=True)))


def put(obj: Any, kind: Kind, version: int, fields: dict[str, Any]) -> None:
    """Give an empty object the fields of that version."""
    fields = upgraded(kind.stored, version, fields)
    if kind.own:
        obj.__setstate__(fields)
        return
    for name, value in complete(kind, fields).items():
        object.__setattr__(obj, name, value)


def value(shape: Shape, *values: Any) -> Any:
    """An object that never changes."""
    tag, version, names = shape
    kind = _kind(tag)
    if not kind.value or len(values) != len(names):
        raise LayoutError(f"a `{tag}` is not put together like that")
    return valued(kind, version, dict(zip(names, values, strict=True)))


def valued(kind: Kind, version: int, fields: dict[str, Any]) -> Any:
    """The object of the fields of that version; an upgrade may make it one of another class."""
    found = upgraded(kind.stored, version, fields)
    if not isinstance(found, dict):
        return found
    out: Any = object.__new__(kind.cls)
    for name, value in complete(kind, found).items():
        object.__setattr__(out, name, value)
    return out


def upgraded(stored: Stored, version: int, fields: Any) -> Any:
    """The fields as the present version has them."""
    if not 1 <= version <= stored.version:
        raise LayoutError(
            f"it holds a `{stored.tag}` of version {version}; {stored.version} is known"
        )
    for step in range(version, stored.version):
        change = UPGRADES.get((stored.tag, step))
        if change is not None:
            fields = change(fields)
    return fields


def complete(kind: Kind, fields: dict[str, Any]) -> dict[str, Any]:
    """With defaults for what is missing.  Raises LayoutError for what is unknown."""
    if kind.fields is None:
        return fields
    if unknown := set(fields) - set(kind.fields):
        raise LayoutError(f"a `{kind.stored.tag}` has no field {', '.join(sorted(unknown))}")
    if not dataclasses.is_dataclass(kind.cls):
        return fields
    for field in dataclasses.fields(kind.cls):
        if field.name in fields:
            continue
        if field.default is not dataclasses.MISSING:
            fields[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            fields[field.name] = field.default_factory()
        elif field.init:
            raise LayoutError(f"a `{kind.stored.tag}` lacks its field {field.name}")
    return fields


def made(shape: Shape, *values: Any) -> Any:
    """An object that is made by calling its class."""
    kind = _kind(shape[0])
    if not (kind.made or issubclass(kind.cls, Exception)):
        raise LayoutError(f"a `{shape[0]}` is not put together like that")
    return kind.cls(*values)


def member(tag: str, name: str) -> Any:
    """A member of an enumeration."""
    cls = _kind(tag).cls
    if not issubclass(cls, Enum) or name not in cls.__members__:
        raise LayoutError(f"there is no {name} of `{tag}`")
    return cls[name]
