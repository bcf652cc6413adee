"""Small worlds and trees to try the parts of the fuzzer with."""

from __future__ import annotations

from typing import Any

from tests.fuzz_select import operations
from tests.fuzz_select.tables import TABLE_COLUMNS, TAGS, RandomTable, World
from tests.fuzz_select.tree import Apply, Column, Expression, Value


def row(tbname: str, ts: int, **values: Any) -> dict[str, Any]:
    """Return a row whose other columns are NULL."""
    return {"tbname": tbname, **dict.fromkeys((*TABLE_COLUMNS, *TAGS)), "ts": ts, **values}


def world(*rows: dict[str, Any]) -> World:
    """Return a world whose supertable `m` has these rows; its plain table `p` those of table p."""
    plain = tuple(r for r in rows if r["tbname"] == "p")
    others = tuple(r for r in rows if r["tbname"] != "p")
    children = tuple(sorted({r["tbname"] for r in others} | {"a"}))
    return World((RandomTable("p", plain), RandomTable("m", others, children)), 0, 1000)


def number(value: int) -> Value:
    return Value("INT", value, str(value))


def column(name: str, kind: str = "INT", relation: str = "m") -> Column:
    return Column(kind, relation, name)


def compared(symbol: str, left: Expression, right: Expression) -> Apply:
    return Apply(operations.comparison(symbol, left.kind, right.kind), (left, right))
