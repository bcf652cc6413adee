"""What an editor needs to know of the dialect: its words, types and functions.

Made from the registry of functions that also makes docs/sql-functions.md, so it is never behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.sql.functions import AGGREGATES, QUERY_FUNCTIONS, QUERY_ONLY, REGISTRY, SERIES
from penstock.sql.relational import AGGREGATE_NAMES
from penstock.sql.words import RESERVED
from penstock.types import KINDS

#: words of statements and clauses that may be names, too
_OPEN_WORDS = (
    "AUTO ASOF AT_ONCE CACHE CHILD COMMENT CONTINUOUS_WINDOW_CLOSE DATABASE DATABASES DELETE_RECALC"
    " DESCRIBE EVERY EXPIRED EXPLAIN EXTERNAL FILL_HISTORY FLUSH FORCE_WINDOW_CLOSE FUNCTION"
    " FUNCTIONS GRANT GRANTS IF IGNORE KEEP MATERIALIZED MAX_DELAY NEXT NONE NORMAL NULLS OPEN"
    " OPTIONS PARTITIONS PASS PAUSE PREV RANGE READ RECALCULATE RESUME REVOKE ROLE SHOW STABLE"
    " STABLES START STREAM STREAMS TABLE TABLES TBNAME TO TRIGGER UNTREATED UPDATE USE USER USERS"
    " VIEW VIEWS VIRTUAL WATERMARK WINDOW_CLOSE WINDOWS WRITE"
).split()


def vocabulary() -> dict[str, Any]:
    """Return words, types and functions, each list in alphabetical order, as JSON has them.

    A function has `name`, `signature`, `doc`, `kind` (`scalar`, `aggregate`, or `series`: of a row
    and the rows before it) and `where`: `everywhere`, `queries` or `streams`.
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
    return "aggregate" if name in AGGREGATE_NAMES else "scalar"
