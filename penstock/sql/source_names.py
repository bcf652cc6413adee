"""Names that rows and windows have besides the columns of their table, and their types."""

from __future__ import annotations

from penstock.sql.functions.base import BIGINT, TIMESTAMP
from penstock.types import ColumnType

TBNAME = ColumnType("VARCHAR", length=192)
#: names that stand for the source's time column
TIME_ALIASES = ("_c0", "_rowts", "_tp_time")
#: what is known of a window once there is one
WINDOW_TYPES = {"_wstart": TIMESTAMP, "_wend": TIMESTAMP, "_wduration": BIGINT}
