"""Users, roles, and who may do what.

`model` is what is kept, `needs` the one table of what each statement and request needs, `seen` what
a user sees of the catalog, `check` the refusals, `secrets` how passwords and tokens are kept.
"""

from dsms.rights.model import ADMINISTRATOR, Grant, Rights, User

__all__ = ["ADMINISTRATOR", "Grant", "Rights", "User"]
