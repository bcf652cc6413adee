"""Limits of partitions around computed rows: those of windows, and of values at points."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.sql import nodes

_LIMITS = ("limit", "offset", "slimit", "soffset")


def counts_by_partition(select: exp.Select) -> bool:
    """Tell if *select* has PARTITION BY and limits of the rows or the number of its partitions."""
    return select.args.get("partition_by") is not None and any(map(select.args.get, _LIMITS))


def keep_limits(select: exp.Select, outer: exp.Select, time: str, keys: Sequence[str]) -> None:
    """Give *outer*, which reads the computed windows of *select*, the limits of partitions.

    Args:
        time: the column that orders windows.
        keys: the columns that tell partitions apart.
    """
    for key in ("slimit", "soffset"):
        if select.args.get(key) is not None:
            outer.set(key, select.args[key].copy())
    if not counts_by_partition(select):
        return
    columns = [exp.column(key, quoted=True) for key in keys]
    outer.set("partition_by", nodes.PartitionBy(expressions=columns))
    if outer.args.get("order") is None:
        outer.set("order", exp.Order(expressions=[exp.Ordered(this=exp.column(time, quoted=True))]))
