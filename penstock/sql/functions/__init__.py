"""Every function of the dialect: scalars in `REGISTRY`, aggregates in `AGGREGATES`, functions that
need OVER in `WINDOW_FUNCTIONS`. docs/sql-functions.md is made from all of them.
"""

from penstock.sql.functions import conditional, convert, math, text, time
from penstock.sql.functions.aggregate import AGGREGATES, FORBIDDEN, RANDOM
from penstock.sql.functions.base import REGISTRY
from penstock.sql.functions.over import WINDOW_FUNCTIONS
from penstock.sql.functions.query import QUERY_FUNCTIONS, QUERY_ONLY
from penstock.sql.functions.query_aggregates import QUERY_AGGREGATES
from penstock.sql.functions.series import SERIES

__all__ = [
    "AGGREGATES",
    "FORBIDDEN",
    "QUERY_AGGREGATES",
    "QUERY_FUNCTIONS",
    "QUERY_ONLY",
    "RANDOM",
    "REGISTRY",
    "SERIES",
    "WINDOW_FUNCTIONS",
    "conditional",
    "convert",
    "math",
    "text",
    "time",
]
