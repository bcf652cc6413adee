"""The form of a function that a SELECT has and a stream has not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.sql.functions.base import Compiled
from penstock.sql.functions.duckdb import DuckForm
from penstock.types import ColumnType


@dataclass(frozen=True)
class QueryFunction:
    """A function of the dialect that a SELECT has and a stream has not."""

    name: str
    signature: str
    doc: str
    duckdb: DuckForm
    #: why a stream has no polars side of it
    reason: str
    aliases: tuple[str, ...] = ()
    least: int = 0
    at_most: int = 0

    @property
    def arity(self) -> tuple[int, int]:
        """Fewest and most arguments that the DuckDB side is given."""
        return self.least, self.at_most


#: says what is wrong with the constants of a call, given with the unit of times; "" if nothing is
CheckConstants = Callable[[Sequence[Compiled], str], str]


def _accept(constants: Sequence[Compiled], precision: str) -> str:
    return ""


@dataclass(frozen=True)
class QueryAggregate(QueryFunction):
    """An aggregate that a SELECT has and a stream has not. All arguments but the first are
    constants.
    """

    #: what the arguments must be: number, spread (number or time), time, any; the last repeats
    kinds: tuple[str, ...] = ("any",)
    #: type of the result, from that of the first argument and the number of arguments
    returns: Callable[[ColumnType, int], ColumnType] = lambda kind, count: kind
    check: CheckConstants = _accept
    #: the binder gives the time of the row as one more argument
    timed: bool = False
    #: it may be asked of different values only
    of_different: bool = False
    #: it gives several rows, so that it stands alone in the select list
    many_rows: bool = False

    @property
    def arity(self) -> tuple[int, int]:
        """Fewest and most arguments that the DuckDB side is given, the time among them."""
        return self.least + self.timed, self.at_most + self.timed
