"""Importing this keeps pandas out of a process: a service needs none, and pyarrow loads it for the
first list it makes an array of.

That costs every service a third of its start and some 35 MB, and Spark's workers a fifth of theirs.
A process that a user's code runs in (the client) must not import this.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType


class _WithoutPandas:
    """A finder that says of pandas that it is not installed."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        """Refuse pandas, and leave every other module to the finders behind.

        Raises:
            ModuleNotFoundError: *name* is pandas.
        """
        if name == "pandas":
            raise ModuleNotFoundError("pandas is kept out of this process", name=name)


sys.meta_path.insert(0, _WithoutPandas)
