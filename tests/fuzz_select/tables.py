"""Random tables: the rows of `tests/sql/rows.py`, at times near each other, of plain tables and of
supertables with child tables.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from penstock.types import ColumnType
from tests.fuzz_select.kinds import SMALL, TIME_TEXT, kind_of_column
from tests.fuzz_select.tree import Column
from tests.sql.rows import COLUMNS, draw_row

#: `q`: numbers whose sums are exact in any order
TABLE_COLUMNS = {**COLUMNS, "q": ColumnType("DOUBLE")}
TAGS = {"g": ColumnType("VARCHAR", length=16), "k": ColumnType("INT")}
_KINDS = {name: kind_of_column(name) for name in COLUMNS} | {"q": "DOUBLE"}
_TAG_KINDS = {"g": "VARCHAR", "k": "INT", "tbname": "VARCHAR"}
#: moments around which some zone turns its clocks, and others
BASES = (
    "2024-03-10T06:59:00",
    "2024-03-31T00:59:00",
    "2024-10-27T00:58:00",
    "2024-04-06T14:59:00",
    "2024-11-03T05:30:00",
    "2023-12-31T23:59:00",
    "2000-02-29T12:00:00",
)
STEPS = (1000, 1000, 60_000, 3_600_000)


@dataclass(frozen=True)
class RandomTable:
    """A table and its rows, which are in order of time; each has `tbname`, columns and tags."""

    name: str
    rows: tuple[dict[str, Any], ...]
    #: with tags: a supertable
    children: tuple[str, ...] = ()
    #: rows that were cut into segments; the others are in the tail
    flushed: int = 0

    @property
    def columns(self) -> dict[str, ColumnType]:
        return TABLE_COLUMNS

    @property
    def tags(self) -> dict[str, ColumnType]:
        return TAGS if self.children else {}


def columns_of(alias: str, *, stable: bool) -> list[Column]:
    """Return the columns of a table that is called *alias*."""
    kinds = _KINDS | (_TAG_KINDS if stable else {"tbname": "VARCHAR"})
    return [Column(kind, alias, name) for name, kind in kinds.items()]


@dataclass(frozen=True)
class World:
    """The tables of some cases, whose rows begin near `base`, a time in milliseconds."""

    tables: tuple[RandomTable, ...]
    base: int
    step: int

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a table or of a child table, in order of time."""
        for table in self.tables:
            if table.name == name:
                return list(table.rows)
            if name in table.children:
                return [row for row in table.rows if row["tbname"] == name]
        raise KeyError(name)

    def stable_of(self, name: str) -> bool:
        """Tell if *name* is a supertable or a child table."""
        return any(name in (t.name, *t.children) for t in self.tables if t.children)


def draw_world(dice: random.Random) -> World:
    """Return a plain table and two supertables."""
    moment = datetime.fromisoformat(dice.choice(BASES)).replace(tzinfo=UTC)
    base = int(moment.timestamp() * 1000)
    step = dice.choice(STEPS)
    tables = [
        _table(dice, "p", ("p",), base, step),
        _table(dice, "m", ("a", "b", "c"), base, step),
        _table(dice, "e", ("z",), base, step),
    ]
    return World(tuple(tables), base, step)


def _table(
    dice: random.Random, name: str, members: tuple[str, ...], base: int, step: int
) -> RandomTable:
    rows = [row for member in members for row in _rows(dice, member, base, step)]
    dice.shuffle(rows)
    flushed = dice.choice((0, len(rows) // 2, len(rows)))
    children = members if members != (name,) else ()
    if not children:
        rows = [{k: v for k, v in row.items() if k not in TAGS} for row in rows]
    return RandomTable(name, tuple(rows), children, flushed)


def _rows(dice: random.Random, member: str, base: int, step: int) -> Iterator[dict[str, Any]]:
    """Yield rows of one child table; times of several ones are often equal."""
    count = dice.choice((0, 1, 3, 8, 14))
    tags = {"g": dice.choice(("north", "south", None, "")), "k": dice.choice((1, 2, None))}
    places = sorted(dice.sample(range(40), count))
    for number in places:
        drawn = draw_row(dice, number)
        kept = {k: None if _is_infinite(v) else v for k, v in drawn.items()}
        time = base + number * step + dice.choice((0, 0, 0, 1, 250))
        quarter = dice.choice((None, math.nan, dice.randrange(-400, 400) / 4))
        yield {"tbname": member, **kept, "ts": time, "q": quarter, **tags}


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)


def mild(kind: str, name: str) -> bool:
    """Tell if sums of a column are the same in any order."""
    return kind in ("INT", SMALL, "TINYINT") or name == "q"


#: kinds that rows are grouped by
GROUPED = ("INT", SMALL, "TINYINT", "BOOL", "VARCHAR", TIME_TEXT)
