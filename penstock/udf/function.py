"""A user-defined function as plain data: in the catalog and in the plans of streams that use it."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.types import ColumnType


@dataclass(frozen=True)
class UserFunction:
    """`code` defines a Python function called `name`. A scalar one takes Arrow arrays of its
    parameters and gives an array as long; an aggregate takes the arrays of one window's values and
    gives one value. TIMESTAMP values are integers (ticks).
    """

    id: int
    name: str
    parameters: tuple[ColumnType, ...]
    returns: ColumnType
    code: str
    aggregate: bool = False
