"""Statements of InfluxQL, as they are read; names are still text of the user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True)
class Pattern:
    """A regular expression between slashes."""

    text: str


Value: TypeAlias = str | bool | int | float | Pattern
#: of a name and a value
Operator = Literal["=", "!=", "<", "<=", ">", ">=", "=~", "!~"]


@dataclass(frozen=True)
class Comparison:
    name: str
    operator: Operator
    value: Value


@dataclass(frozen=True)
class TimeBound:
    """`time` compared with a moment, in nanoseconds since 1970."""

    operator: Operator
    moment: int


@dataclass(frozen=True)
class Both:
    """AND, of two or more."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Either:
    """OR, of two or more."""

    parts: tuple[Condition, ...]


Condition: TypeAlias = Comparison | TimeBound | Both | Either


@dataclass(frozen=True)
class SelectColumn:
    """A column of a SELECT: a field or tag, or a function of one. `name` is None for `*`."""

    name: str | None
    function: str | None = None
    alias: str | None = None


@dataclass(frozen=True)
class MeasurementName:
    database: str | None
    measurement: str


@dataclass(frozen=True)
class GroupingFill:
    """What stands in windows without rows; `value` is for kind "number"."""

    kind: Literal["null", "none", "previous", "number"] = "null"
    value: float = 0


@dataclass(frozen=True)
class Grouping:
    """GROUP BY. Lengths are nanoseconds. `every` is None without time(…), `tags` for `*`."""

    every: int | None = None
    offset: int = 0
    tags: tuple[str, ...] | None = ()
    fill: GroupingFill = GroupingFill()


@dataclass(frozen=True)
class Page:
    """LIMIT and OFFSET of the rows of each series, SLIMIT and SOFFSET of series."""

    limit: int | None = None
    offset: int = 0
    series: int | None = None
    skipped_series: int = 0


@dataclass(frozen=True)
class Select:
    outputs: tuple[SelectColumn, ...]
    sources: tuple[MeasurementName, ...]
    where: Condition | None = None
    grouping: Grouping = Grouping()
    descending: bool = False
    page: Page = Page()


@dataclass(frozen=True)
class CreateInfluxDatabase:
    """`keep` is how long rows are kept, in nanoseconds; None for ever."""

    name: str
    keep: int | None = None


@dataclass(frozen=True)
class DropDatabase:
    name: str


ShowKind = Literal[
    "databases", "measurements", "tag keys", "field keys", "tag values", "retention policies"
]


@dataclass(frozen=True)
class ShowList:
    """A list. `measurements` is empty for all; `keys` are those of SHOW TAG VALUES."""

    kind: ShowKind
    database: str | None = None
    measurements: tuple[str | Pattern, ...] = ()
    keys: tuple[str, ...] = ()
    page: Page = Page()


Statement: TypeAlias = Select | CreateInfluxDatabase | DropDatabase | ShowList
