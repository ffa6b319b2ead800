"""When another try to connect makes sense, and what is said when there is no time for one."""

from __future__ import annotations

from dsms.errors import DsmsError, UsageError
from dsms_client.link import Closed


def may_pass(problem: DsmsError) -> bool:
    """Whether another try may find a server that answers: none does (DS612), one stops (DS641),
    comes back (DS647), or went without a word."""
    return problem.code in ("DS612", "DS641", "DS647") or isinstance(problem, Closed)


def given_up_after(problem: DsmsError, seconds: float, option: str) -> DsmsError:
    """The error of the last try, with how long it was tried and what makes that longer."""
    longer = f"a larger {option} tries for longer"
    hint = f"{problem.hint}; {longer}" if problem.hint else longer
    return UsageError(problem.code, f"{problem.message} (gave up after {seconds:g} s)", hint=hint)
