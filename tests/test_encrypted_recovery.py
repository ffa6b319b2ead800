"""Crashes and damage once more, in data folders that are encrypted: the same is noticed.

Each third test with one of its cases, and with --all all with all that they have without a key.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.effort import thinned
from tests.keys import everywhere
from tests.test_damage import *  # noqa: F403
from tests.test_damage_folders import *  # noqa: F403
from tests.test_damage_states import *  # noqa: F403
from tests.test_recovery import *  # noqa: F403

# it makes a file of an older layout, which none that is encrypted has
del test_a_catalog_of_an_older_layout_is_taken_over  # noqa: F821


pytestmark = thinned(1000, tests=3)


@pytest.fixture(autouse=True, scope="module")
def with_a_key() -> Iterator[None]:
    with everywhere():
        yield
