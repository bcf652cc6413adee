"""Expressions of the dialect compiled to polars, with TDengine's types.

Owns operators and how types meet; functions are in `penstock.sql.functions`. TIMESTAMP is Int64
ticks, NULL in gives NULL out, AND/OR/NOT are three-valued, arithmetic gives DOUBLE (time plus or
minus a duration gives a time), x/0 is NULL. Unknown names, aggregates (the planner takes them out
first) and types that do not fit are errors with place and way out.
"""

from penstock.sql.compile.compiler import Functions, nothing
from penstock.sql.compile.expression import NODES, compile_expression, parse_expression
from penstock.sql.functions.base import Compiled

__all__ = [
    "NODES",
    "Compiled",
    "Functions",
    "compile_expression",
    "nothing",
    "parse_expression",
]
