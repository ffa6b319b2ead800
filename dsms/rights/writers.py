"""The name under which a writer's frames are numbered: of a user, so that nobody uses up the
numbers of another."""

from __future__ import annotations

from dsms.rights.model import key_of

_BETWEEN = "\x1f"  # a user and what he calls a writer


def name_of(user: str | None, client: str) -> str:
    """The writer `client` of a user."""
    return client if user is None else f"{key_of(user)}{_BETWEEN}{client}"


def bare(name: str) -> str:
    """As the client calls itself."""
    return name.rpartition(_BETWEEN)[2]


def user_of(name: str) -> str:
    """Whose writer that is; empty for those of no user."""
    return name.rpartition(_BETWEEN)[0]
