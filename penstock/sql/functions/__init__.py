"""Every function of the dialect: scalars in `REGISTRY`, aggregates in `AGGREGATES`.
docs/sql-functions.md is made from both.
"""

from penstock.sql.functions import conditional, convert, math, text, time
from penstock.sql.functions.aggregate import AGGREGATES, FORBIDDEN, RANDOM
from penstock.sql.functions.base import REGISTRY
from penstock.sql.functions.query import QUERY_FUNCTIONS, QUERY_ONLY
from penstock.sql.functions.query_aggregates import QUERY_AGGREGATES

__all__ = [
    "AGGREGATES",
    "FORBIDDEN",
    "QUERY_AGGREGATES",
    "QUERY_FUNCTIONS",
    "QUERY_ONLY",
    "RANDOM",
    "REGISTRY",
    "conditional",
    "convert",
    "math",
    "text",
    "time",
]
