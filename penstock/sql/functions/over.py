"""Functions of a row among its neighbours, which only OVER gives them.

DuckDB has each under its own name. A stream has none: its results are windows, and what stands
beside a row changes with every row that comes late.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.sql.functions.base import BIGINT, DOUBLE, NULL, common
from penstock.types import ColumnType

#: types of the arguments → type of the result; None where they do not go together
_Rule = Callable[[Sequence[ColumnType]], ColumnType | None]


@dataclass(frozen=True)
class WindowFunction:
    """A function that is written with OVER. `reason`: why a stream has none."""

    name: str
    signature: str
    doc: str
    reason: str
    returns: _Rule
    least: int = 0
    at_most: int = 0
    #: place of the argument that is a constant whole number, and the least that it may be
    count: tuple[int, int] | None = None
    #: it looks at the rows of a frame; the others look at the whole partition
    of_frame: bool = False


def _whole(_: Sequence[ColumnType]) -> ColumnType:
    return BIGINT


def _real(_: Sequence[ColumnType]) -> ColumnType:
    return DOUBLE


def _first(types: Sequence[ColumnType]) -> ColumnType:
    return types[0] if types else NULL


def _shift(types: Sequence[ColumnType]) -> ColumnType | None:
    """Return the type of a value or of what stands for one that is not there."""
    value, default = types[0], types[2] if len(types) > 2 else NULL
    alike = NULL in (value, default) or value.kind == default.kind
    alike = alike or (value.numeric and default.numeric) or (value.text and default.text)
    return common([value, default]) if alike else None


_PLACE = "the place of a row changes with every late row"
_NEIGHBOUR = "the rows beside a row change with every late row"

WINDOW_FUNCTIONS: dict[str, WindowFunction] = {
    f.name: f
    for f in (
        WindowFunction("row_number", "row_number()", "Number of the row, from 1.", _PLACE, _whole),
        WindowFunction(
            "rank",
            "rank()",
            "Rank of the row, from 1; equal rows share one, and as many are left out behind them.",
            _PLACE,
            _whole,
        ),
        WindowFunction(
            "dense_rank", "dense_rank()", "Rank of the row; none is left out.", _PLACE, _whole
        ),
        WindowFunction(
            "percent_rank", "percent_rank()", "(rank - 1) / (rows - 1), from 0 to 1.", _PLACE, _real
        ),
        WindowFunction(
            "cume_dist",
            "cume_dist()",
            "Share of the rows that come before this one or are equal to it.",
            _PLACE,
            _real,
        ),
        WindowFunction(
            "ntile",
            "ntile(n)",
            "Number of the part, when the rows are cut into n parts as equal as can be.",
            _PLACE,
            _whole,
            least=1,
            at_most=1,
            count=(0, 1),
        ),
        WindowFunction(
            "lag",
            "lag(any, [n], [default])",
            "Value of n rows (1) before; NULL or the default where there is no such row.",
            _NEIGHBOUR,
            _shift,
            least=1,
            at_most=3,
            count=(1, 0),
        ),
        WindowFunction(
            "lead",
            "lead(any, [n], [default])",
            "Value of n rows (1) behind; NULL or the default where there is no such row.",
            _NEIGHBOUR,
            _shift,
            least=1,
            at_most=3,
            count=(1, 0),
        ),
        WindowFunction(
            "first_value",
            "first_value(any)",
            "Value of the first row of the frame, NULL too.",
            _NEIGHBOUR,
            _first,
            least=1,
            at_most=1,
            of_frame=True,
        ),
        WindowFunction(
            "last_value",
            "last_value(any)",
            "Value of the last row of the frame, NULL too.",
            _NEIGHBOUR,
            _first,
            least=1,
            at_most=1,
            of_frame=True,
        ),
        WindowFunction(
            "nth_value",
            "nth_value(any, n)",
            "Value of row n of the frame; NULL where the frame has fewer rows.",
            _NEIGHBOUR,
            _first,
            least=2,
            at_most=2,
            count=(1, 1),
            of_frame=True,
        ),
    )
}
