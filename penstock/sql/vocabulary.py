"""What an editor needs to know of the dialect: its words, types and functions.

Made from the registry of functions that also makes docs/sql-functions.md, so it is never behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.sql.functions import (
    AGGREGATES,
    QUERY_FUNCTIONS,
    QUERY_ONLY,
    REGISTRY,
    SERIES,
    WINDOW_FUNCTIONS,
)
from penstock.sql.relational import AGGREGATE_NAMES
from penstock.sql.words import RESERVED
from penstock.types import KINDS

#: words of statements and clauses that may be names, too
_OPEN_WORDS = (
    "ASOF AT_ONCE AUTO CACHE CHILD COMMENT CONTINUOUS_WINDOW_CLOSE CURRENT DATABASE DATABASES"
    " DELETE_RECALC DESCRIBE EVERY EXCEPT EXPIRED EXPLAIN EXTERNAL FILL_HISTORY FILTER FLUSH"
    " FOLLOWING FORCE_WINDOW_CLOSE FUNCTION FUNCTIONS GRANT GRANTS IF IGNORE INTERSECT KEEP"
    " MATERIALIZED MAX_DELAY NEXT NONE NORMAL NULLS OPEN OPTIONS OVER PARTITIONS PASS PAUSE"
    " PRECEDING PREV QUALIFY RANGE READ RECALCULATE RESUME REVOKE ROLE ROW ROWS SHOW STABLE"
    " STABLES START STREAM STREAMS TABLE TABLES TBNAME TO TRIGGER UNBOUNDED UNTREATED UPDATE"
    " USE USER USERS VIEW VIEWS VIRTUAL WATERMARK WINDOW WINDOWS WINDOW_CLOSE WRITE"
).split()


def vocabulary() -> dict[str, Any]:
    """Return words, types and functions, each list in alphabetical order, as JSON has them.

    A function has `name`, `signature`, `doc`, `kind` and `where`: `everywhere`, `queries` or
    `streams`. The kind is `scalar`, `aggregate`, `over` (it needs OVER) or `series` (of a row and
    the rows before it).
    """
    return {
        "keywords": sorted({*RESERVED, *_OPEN_WORDS}),
        "types": sorted(KINDS),
        "functions": sorted(_functions(), key=lambda function: function["name"]),
    }


def _functions() -> Iterator[dict[str, str]]:
    for name, function in REGISTRY.items():
        where = "streams" if function.streams_only else "everywhere"
        yield _entry(name, function.signature, function.doc, where)
    for name, aggregate in AGGREGATES.items():
        yield _entry(name, aggregate.signature, aggregate.doc, "everywhere")
    for name, one in QUERY_FUNCTIONS.items():
        yield _entry(name, one.signature, one.doc, "queries")
    for name, over in WINDOW_FUNCTIONS.items():
        yield _entry(name, over.signature, over.doc, "queries")
    for name, series in SERIES.items():
        yield _entry(name, series.signature, series.doc, "queries")
    for name in QUERY_ONLY.keys() - QUERY_FUNCTIONS.keys():
        yield _entry(name, f"{name}(…)", f"{QUERY_ONLY[name]}: as DuckDB has it.", "queries")


def _entry(name: str, signature: str, doc: str, where: str) -> dict[str, str]:
    return {
        "name": name,
        "signature": signature,
        "doc": " ".join(doc.split()),
        "kind": _kind(name),
        "where": where,
    }


def _kind(name: str) -> str:
    if name in SERIES:
        return "series"
    if name in WINDOW_FUNCTIONS:
        return "over"
    return "aggregate" if name in AGGREGATE_NAMES else "scalar"
