"""Names that completion offers: asked for when they are first needed, and kept for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from penstock.errors import PenstockError

_KEPT_SECONDS = 30.0
#: a database may have a million child tables: these are not offered
_TABLES = (
    "SELECT stable_name FROM information_schema.ins_stables WHERE db_name = :database"
    " UNION ALL SELECT table_name FROM information_schema.ins_tables"
    " WHERE db_name = :database AND type = 'NORMAL_TABLE' LIMIT 5000"
)
Ask = Callable[[str, dict[str, Any] | None], Sequence[tuple[Any, ...]]]


class Names:
    """What there is, as the gateway says; nothing while it does not answer."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._kept: dict[str, tuple[float, tuple[str, ...]]] = {}

    def databases(self) -> tuple[str, ...]:
        return self._get("SELECT name FROM information_schema.ins_databases", None)

    def tables(self, database: str) -> tuple[str, ...]:
        return self._get(_TABLES, {"database": database})

    def columns(self, path: str) -> tuple[str, ...]:
        """Return columns and tags of `[database.]table`."""
        quoted = ".".join(f"`{part.replace('`', '``')}`" for part in path.split("."))
        return self._get(f"DESCRIBE {quoted}", None)

    def forget(self) -> None:
        """Ask anew: a statement may have made or dropped something."""
        self._kept.clear()

    def _get(self, sql: str, parameters: dict[str, Any] | None) -> tuple[str, ...]:
        key = f"{sql} {parameters}"
        now = time.monotonic()
        found = self._kept.get(key)
        if found is not None and now - found[0] < _KEPT_SECONDS:
            return found[1]
        try:
            names = tuple(str(row[0]) for row in self._ask(sql, parameters))
        except PenstockError:
            names = ()
        self._kept[key] = (now, names)
        return names
