"""A request for a table of another deployment: its place, the options for following it, the
columns, and the SELECTs that ask for them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.errors import PenstockError, RemoteError
from penstock.link.address import Address
from penstock.link.description import Description
from penstock.link.uris import DEFAULT_RETRY_WINDOW_MS
from penstock.sql.plan import Column
from penstock.sql.words import in_backticks

#: for how long one step of following a table is waited for
_STEP_SECONDS = 10.0


@dataclass(frozen=True)
class MirrorOptions:
    """Options for following a table; see `penstock.link.uris`."""

    columns: tuple[str, ...] = ()
    on_disconnect: Literal["clear", "retain"] = "clear"
    retry_window_ms: int = DEFAULT_RETRY_WINDOW_MS
    max_retries: int = 0
    blink: bool = False
    blink_required: bool = False
    wait_timeout_ms: int | None = None
    #: a condition on rows, computed over there
    where: str = ""


@dataclass(frozen=True)
class RemoteTarget:
    """A table over there: replicas, and its name; `query` (or `serial`) must be running for it."""

    replicas: tuple[Address, ...]
    table: str
    query: str | None = None
    serial: int | None = None

    @property
    def shown(self) -> str:
        return f"{self.query if self.query is not None else self.serial or ''}/{self.table}".lstrip(
            "/"
        )


@dataclass(frozen=True)
class RemoteRequest:
    """The part of a table to ask for: by the options, and by the definition that was given, if
    any.
    """

    options: MirrorOptions
    definition: Description | None = None

    def check(self, found: Description) -> None:
        """Raises RemoteError when the table over there has not what is wanted."""
        if self.definition is not None:
            _check_definition(self.definition, found)
        _columns_called(self.options.columns, found)

    def columns(self, found: Description) -> list[Column]:
        """Return the columns to ask for: those wanted, and those of the key."""
        keys = set(keys_of(found))
        if self.options.columns:
            wanted = {c.lower() for c in self.options.columns} | {k.lower() for k in keys}
            return [c for c in found.fields if c.name.lower() in wanted]
        if self.definition is None:
            return list(found.fields)
        names = {c.name for c in self.definition.fields} | keys
        return [c for c in found.fields if c.name in names]

    def visible_columns(self, found: Description) -> list[Column]:
        """Return the columns of the table as people see it, in the order they were asked for.
        Raises RemoteError for one it has not.
        """
        return _columns_called(self.options.columns, self.definition or found)

    def following(self, found: Description) -> str:
        """Return the SELECT to subscribe to."""
        return _select(self.columns(found), found, self.options.where)

    def snapshot(self, found: Description) -> str:
        """Return the SELECT of the rows to begin with: those of `following` with the child table of
        each.
        """
        # from a subquery, so that nobody sorts what nobody wants sorted
        listed = ", ".join(["tbname", *(in_backticks(c.name) for c in self.columns(found))])
        return (
            f"SELECT {listed} FROM"
            f" ({self.following(found).replace('SELECT ', 'SELECT tbname, ', 1)}) AS t"
        )

    def rows(self, found: Description) -> str:
        """Return the SELECT of just what is shown."""
        return _select(self.visible_columns(found), found, self.options.where)


class TimeLeft:
    """The time that remains for the first rows; without a limit each step has a time of its own,
    and rows may come for ever.
    """

    def __init__(self, timeout_ms: int | None = None) -> None:
        self._end = None if timeout_ms is None else time.monotonic() + timeout_ms / 1000

    def all(self) -> float | None:
        return None if self._end is None else max(self._end - time.monotonic(), 0.0)

    def step(self) -> float:
        left = self.all()
        return _STEP_SECONDS if left is None else left

    def explain(self, error: PenstockError, target: RemoteTarget) -> PenstockError:
        """Return *error*, or the one that says so if it came because the time was over."""
        if self.all() != 0.0:
            return error
        return RemoteError(
            f"the rows of {target.shown} did not come in time",
            code="E_TIMEOUT",
            detail=f"{error.code}: {error.message}",
            hint="waitTimeout says for how long they are waited for",
        )


def keys_of(description: Description) -> list[str]:
    """Return the columns in which a newer version of a row equals the one it replaces."""
    return [
        "tbname",
        description.time_column,
        *([description.key_column] if description.key_column else []),
    ]


def _columns_called(names: tuple[str, ...], description: Description) -> list[Column]:
    """These columns, or all."""
    if not names:
        return list(description.fields)
    known = {c.name.lower(): c for c in description.fields}
    for name in names:
        if name.lower() not in known:
            listed = ", ".join(c.name for c in description.fields)
            raise RemoteError(
                f"{description.shown} has no column {name}",
                code="E_NO_COLUMN",
                hint=f"it has {listed}",
            )
    return [known[name.lower()] for name in names]


def _check_definition(wanted: Description, found: Description) -> None:
    """The table over there has at least the columns of the definition, with these types."""
    known = {c.name.lower(): c for c in found.fields}
    for column in wanted.fields:
        there = known.get(column.name.lower())
        if there is None or there.type.arrow(found.precision) != column.type.arrow(found.precision):
            has = "has none" if there is None else f"it is {there.type} there"
            raise RemoteError(
                f"{found.shown} does not fit the definition: {column.name} {column.type}",
                code="E_REMOTE_SCHEMA",
                detail=has,
            )


def _select(columns: Sequence[Column], description: Description, condition: str) -> str:
    listed = ", ".join(in_backticks(c.name) for c in columns)
    where = f" WHERE {condition}" if condition else ""
    table = in_backticks(description.child or description.name)
    return f"SELECT {listed} FROM {in_backticks(description.database)}.{table}{where}"
