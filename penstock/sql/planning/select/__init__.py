"""The select list taken apart: aggregates over rows, and outputs over their results, partition keys
and window times.
"""

from penstock.sql.planning.select.fill import fill_mode, plan_fill
from penstock.sql.planning.select.items import HIDDEN, SelectList
from penstock.sql.planning.select.keys import PartitionKeys, plan_keys
from penstock.sql.planning.select.rows import select_rows
from penstock.sql.planning.select.window import WindowSelect

__all__ = [
    "HIDDEN",
    "PartitionKeys",
    "SelectList",
    "WindowSelect",
    "fill_mode",
    "plan_fill",
    "plan_keys",
    "select_rows",
]
