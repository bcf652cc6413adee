"""Whether two answers are the same: whole numbers, texts and times exactly, reals up to their last
digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from tests.fuzz_select.answer import Answer, comparing
from tests.fuzz_select.kinds import LETTERS
from tests.fuzz_select.tree import Query, Union, output_kinds
from tests.sql import values

#: parts of a number that may differ, and numbers that are nothing beside those of the rows
_RELATIVE = 1e-9
_NOTHING = 1e-9


def same_value(left: Any, right: Any) -> bool:
    """Tell if two values are one."""
    if left is None or right is None:
        return left is right
    if isinstance(left, float) or isinstance(right, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return math.isclose(left, right, rel_tol=_RELATIVE, abs_tol=_NOTHING)
    return bool(left == right)


def same_row(left: Sequence[Any], right: Sequence[Any]) -> bool:
    return all(map(same_value, left, right))


def rows_of(table: pa.Table) -> Answer:
    """Return the rows of an answer; times are ticks."""
    columns = [
        pl.Series(pl.from_arrow(column)).dt.epoch("ms").to_list()
        if pa.types.is_timestamp(column.type)
        else column.to_pylist()
        for column in table.columns
    ]
    return list(zip(*columns, strict=True)) if columns else []


def wrong_types(table: pa.Table, query: Query) -> str:
    """Return which column has another type than it should; nothing when all are right."""
    for kind, field in zip(output_kinds(query), table.schema, strict=True):
        found = values.letter(field.type)
        if found != LETTERS[kind]:
            return f"column {field.name} is {found} ({field.type}), not {LETTERS[kind]} ({kind})"
    return ""


def wrong_rows(found: Answer, wanted: Answer, query: Query) -> str:
    """Return what is wrong with an answer; nothing when it is right."""
    missing, more = _unmatched(found, wanted)
    if missing or more:
        return "; ".join(
            [*(f"missing {row}" for row in missing[:3]), *(f"too many {row}" for row in more[:3])]
        )
    if query.order and not _is_by_partition(query):
        order = comparing(query.order)
        for above, below in zip(found, found[1:], strict=False):
            if order(above, below) > 0:
                return f"{above} stands before {below}"
    return ""


def _is_by_partition(query: Query) -> bool:
    """Tell if each partition is ordered, and not the whole."""
    return not isinstance(query, Union) and bool(query.partition) and query.limit is not None


def _unmatched(found: Answer, wanted: Answer) -> tuple[Answer, Answer]:
    """Return rows that are only wanted, and rows that are only found."""
    left = list(found)
    missing = []
    for row in wanted:
        match = next((i for i, other in enumerate(left) if same_row(row, other)), None)
        if match is None:
            missing.append(row)
        else:
            del left[match]
    return missing, left
