"""Functions of a row and the rows before it, in the order of time: one value for each row of a
partition, where the function has one. A SELECT has them, a stream has not.

An entry says its name, its constants, its result type, and how DuckDB computes it
(`duck_series.py`). NULL and NaN are no values: see each function's line.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.sql.functions import duck_series as duck
from penstock.sql.functions.aggregate import FORBIDDEN
from penstock.sql.functions.base import BIGINT, DOUBLE, Compiled
from penstock.sql.functions.duck_series import OPERATORS, SeriesForm
from penstock.types import ColumnType

#: most values of a moving mean
_MOST_VALUES = 1_000


@dataclass(frozen=True)
class Option:
    """A constant behind the first argument of a call."""

    name: str
    #: what it must be, as errors say it
    wants: str
    #: returns the value of a constant, in a database of a precision; None: it is not one of those
    read: Callable[[Compiled, str], Any]
    #: value when it is left out; None: it must be given
    default: Any = None


@dataclass(frozen=True)
class SeriesFunction:
    name: str
    doc: str
    #: which rows it has, as documentation says it
    rows: str
    options: tuple[Option, ...]
    returns: Callable[[ColumnType], ColumnType]
    duckdb: SeriesForm
    #: takes a TIMESTAMP, too
    of_times: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def signature(self) -> str:
        """As documentation shows it: `diff(x, [ignore])`."""
        shown = [f"[{o.name}]" if o.default is not None else o.name for o in self.options]
        return f"{self.name}({', '.join(['x', *shown])})"

    @property
    def arity(self) -> tuple[int, int]:
        """Fewest and most arguments."""
        needed = sum(1 for option in self.options if option.default is None)
        return 1 + needed, 1 + len(self.options)

    @property
    def gives(self) -> str:
        """Its result types, as documentation shows them."""
        kinds = (BIGINT, ColumnType("BIGINT UNSIGNED"), DOUBLE)
        return " or ".join(dict.fromkeys(str(self.returns(kind)) for kind in kinds))

    @property
    def reason(self) -> str:
        """Why a stream has it not."""
        return FORBIDDEN[self.name][0]

    def takes(self, kind: ColumnType) -> bool:
        """Tell if the first argument may be a *kind*."""
        return kind.numeric or kind.kind == "BOOL" or (self.of_times and kind.kind == "TIMESTAMP")


def is_whole(kind: ColumnType) -> bool:
    """Tell if values of *kind* are computed as whole numbers."""
    return kind.integer or kind.kind in ("BOOL", "TIMESTAMP")


def _whole_or_double(kind: ColumnType) -> ColumnType:
    return BIGINT if is_whole(kind) else DOUBLE


def _sum(kind: ColumnType) -> ColumnType:
    unsigned = "UNSIGNED" in kind.kind
    return ColumnType("BIGINT UNSIGNED") if unsigned else _whole_or_double(kind)


def _between(low: int, high: int) -> Callable[[Compiled, str], int | None]:
    def read(constant: Compiled, precision: str) -> int | None:
        value = constant.value
        whole = isinstance(value, int) and not isinstance(value, bool)
        return value if whole and constant.duration is None and low <= value <= high else None

    return read


def _read_number(constant: Compiled, precision: str) -> float | None:
    value = constant.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if constant.duration is None and math.isfinite(value) else None


def _read_operator(constant: Compiled, precision: str) -> str | None:
    value = str(constant.value).upper()
    return value if value in OPERATORS else None


def _read_unit(constant: Compiled, precision: str) -> int | None:
    """Return the ticks of a duration, which has at least one."""
    duration = constant.duration
    if duration is None or duration.natural:
        return None
    return duration.ticks(precision) or None


_UNIT = "a time such as 1s, of a tick or more and without months and years"
_STATE = (
    Option("operator", "one of " + ", ".join(f"'{o}'" for o in OPERATORS), _read_operator),
    Option("value", "a number", _read_number),
)
_FUNCTIONS = (
    SeriesFunction(
        "diff",
        "Difference to the last value before that is not NULL. `ignore` 1: a difference below 0 is"
        " NULL; 2: a row whose difference is NULL is left out; 3: both. NULL where the difference"
        " of integers does not fit. Of times it is ticks.",
        "all but the first",
        (Option("ignore", "0, 1, 2 or 3", _between(0, 3), 0),),
        _whole_or_double,
        duck.diff,
        of_times=True,
    ),
    SeriesFunction(
        "derivative",
        "Change since the last value before, in `unit` of time. `ignore_negative` 1: rows with one"
        " below 0 are left out. NULL where both rows are of one time.",
        "those with a value, but for the first of them",
        (
            Option("unit", _UNIT, _read_unit),
            Option("ignore_negative", "0 or 1", _between(0, 1)),
        ),
        lambda _: DOUBLE,
        duck.derivative,
    ),
    SeriesFunction(
        "csum",
        "Sum of all values so far; NULL where that of integers does not fit.",
        "those with a value",
        (),
        _sum,
        duck.running_sum,
    ),
    SeriesFunction(
        "mavg",
        "Mean of the last k values, k from 1 to 1000.",
        "those with a value, from the k-th on",
        (Option("k", f"a whole number from 1 to {_MOST_VALUES}", _between(1, _MOST_VALUES)),),
        lambda _: DOUBLE,
        duck.moving_mean,
    ),
    SeriesFunction(
        "statecount",
        "How many values in a row are in the state, this one included; -1 outside of it. `operator`"
        " is 'LT', 'LE', 'GT', 'GE', 'EQ' or 'NE'. NULL for NULL, which does not end a state.",
        "all",
        _STATE,
        lambda _: BIGINT,
        duck.state_count,
        aliases=("state_count",),
    ),
    SeriesFunction(
        "stateduration",
        "How long the state lasts since its first row, in whole units (of a tick by default); -1"
        " outside of it. Otherwise as statecount.",
        "all",
        (*_STATE, Option("unit", _UNIT, _read_unit, 1)),
        lambda _: BIGINT,
        duck.state_duration,
        aliases=("state_duration",),
    ),
)
SERIES: dict[str, SeriesFunction] = {
    name: function for function in _FUNCTIONS for name in (function.name, *function.aliases)
}
