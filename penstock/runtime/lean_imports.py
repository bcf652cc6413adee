"""Importing this keeps out of a process what a service never needs, and what libraries load all the
same: pandas (pyarrow, for the first list it makes an array of) and rich with attrs behind it
(structlog, for a console that nobody looks at).

pandas costs every service a third of its start and some 35 MB, and Spark's workers a fifth of
theirs; rich a tenth. A process that a user's code runs in (the client) must not import this, nor
must the command line, which prints with rich.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

_KEPT_OUT = ("pandas", "rich")


class _LeanFinder:
    """A finder that says of some packages that they are not installed."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        """Refuse what is kept out, and leave every other module to the finders behind.

        Raises:
            ModuleNotFoundError: *name* is kept out.
        """
        if name in _KEPT_OUT:
            raise ModuleNotFoundError(f"{name} is kept out of this process", name=name)


sys.meta_path.insert(0, _LeanFinder)
