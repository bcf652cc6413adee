"""What an editor needs to know of the dialect: its words, types and functions.

Made from the registry of functions that also makes docs/sql-functions.md, so it is never behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.sql import nodes
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
    " FOLLOWING FORCE_WINDOW_CLOSE FUNCTION FUNCTIONS GRANT GRANTS IF IGNORE INTERSECT JLIMIT KEEP"
    " MATERIALIZED MAX_DELAY NEXT NONE NORMAL NULLS OPEN OPTIONS OVER PARTITIONS PASS PAUSE"
    " PRECEDING PREV QUALIFY RANGE READ RECALCULATE RESUME REVOKE ROLE ROW ROWS SHOW STABLE"
    " STABLES START STREAM STREAMS TABLE TABLES TBNAME TO TRIGGER UNBOUNDED UNTREATED UPDATE USE"
    " USER USERS VIEW VIEWS VIRTUAL WATERMARK WINDOW WINDOWS WINDOW_CLOSE WINDOW_OFFSET WRITE"
).split()
#: clauses behind FROM of a SELECT in their order, each with an example that is one
_OF_SELECT = {
    "WHERE": "WHERE a > 1",
    "PARTITION BY": "PARTITION BY tbname",
    "INTERVAL": "INTERVAL(10s)",
    "SLIDING": "INTERVAL(10s) SLIDING(5s)",
    "SESSION": "SESSION(ts, 10s)",
    "STATE_WINDOW": "STATE_WINDOW(a)",
    "EVENT_WINDOW": "EVENT_WINDOW START WITH a > 1 END WITH a < 1",
    "COUNT_WINDOW": "COUNT_WINDOW(10)",
    "RANGE": "RANGE('2026-01-01', '2026-01-02') EVERY(1m)",
    "FILL": "INTERVAL(10s) FILL(PREV)",
    "GROUP BY": "GROUP BY a",
    "HAVING": "HAVING count(*) > 1",
    "QUALIFY": "QUALIFY row_number() OVER (ORDER BY ts) = 1",
    "ORDER BY": "ORDER BY ts DESC",
    "SLIMIT": "SLIMIT 5",
    "LIMIT": "LIMIT 10 OFFSET 20",
    "UNION ALL": "UNION ALL SELECT 1",
}
#: the same of CREATE STREAM, in front of INTO
_OF_STREAM = {
    "TRIGGER": "TRIGGER AT_ONCE",
    "WATERMARK": "WATERMARK 10s",
    "IGNORE EXPIRED": "IGNORE EXPIRED 0",
    "IGNORE UPDATE": "IGNORE UPDATE 0",
    "FILL_HISTORY": "FILL_HISTORY 1",
    "MAX_RESULTS": "MAX_RESULTS 1000",
    "MAX_STATE": "MAX_STATE 10000",
}


def vocabulary() -> dict[str, Any]:
    """Return words, types, clauses and functions as JSON has them, all but clauses in alphabetical
    order.

    A clause has `name`, an `example`, and what it is `of`: `SELECT` or `CREATE STREAM`. A function
    has `name`, `signature`, `doc`, `kind` and `where`: `everywhere`, `queries` or `streams`. The
    kind is `scalar`, `aggregate`, `over` (it needs OVER) or `series` (of a row and the rows before
    it).
    """
    return {
        "keywords": sorted({*RESERVED, *_OPEN_WORDS}),
        "types": sorted(KINDS),
        "clauses": [
            {"name": name, "of": statement, "example": example}
            for statement, clauses in (("SELECT", _OF_SELECT), ("CREATE STREAM", _OF_STREAM))
            for name, example in clauses.items()
        ],
        "functions": sorted(_functions(), key=lambda function: function["name"]),
    }


def _functions() -> Iterator[dict[str, str]]:
    for name, function in REGISTRY.items():
        where = "streams" if function.streams_only else "everywhere"
        yield _entry(name, function.signature, function.doc, where)
    for name, aggregate in AGGREGATES.items():
        yield _entry(name, aggregate.signature, aggregate.doc, "everywhere")
    yield _entry(
        nodes.COLS,
        "cols(function, any, …)",
        "Columns of the row that its function chooses: max, min, first, last or last_row.",
        "everywhere",
    )
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
    return "aggregate" if name in (*AGGREGATE_NAMES, nodes.COLS) else "scalar"
