"""EXPLAIN SELECT: the steps of a query in the words of its text, who computes them, and what is
read for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from penstock.sql.dialect import to_sql

#: how far a step is moved to the right for each level of subqueries
_INDENT = "  "


@dataclass(frozen=True)
class TableReach:
    """What is read of a table: files of those that there are, their rows, rows of the tail."""

    table: str
    children: int | None
    files: int
    all_files: int
    rows: int
    tail: int

    @property
    def shown(self) -> str:
        name = self.table
        if self.children is not None:
            name += f", {self.children} child table{'' if self.children == 1 else 's'}"
        return (
            f"{name}: {self.files} of {self.all_files} files with {self.rows} rows, {self.tail}"
            " rows of the log's tail"
        )


def table(query: exp.Query, kernels: Sequence[str], reads: Iterable[TableReach]) -> pa.Table:
    """Return the answer of EXPLAIN: items and their values.

    Args:
        query: as it was read.
        kernels: the windows that the kernels of streams compute.
        reads: what is read of each table, at most.
    """
    engine = "DuckDB"
    if kernels:
        engine = f"the kernels of streams for {', '.join(kernels)}, DuckDB for the rest"
    lines = [("query", to_sql(query)), ("runs in", "store"), ("engine", engine)]
    lines += [("plan", step) for step in _steps(query, "")]
    lines += [("reads", reach.shown) for reach in reads]
    fields = [
        pa.field("item", pa.string(), metadata={"type": "VARCHAR(64)"}),
        pa.field("value", pa.string(), metadata={"type": "VARCHAR(65535)"}),
    ]
    return pa.table(list(zip(*lines, strict=True)), schema=pa.schema(fields))


def _steps(query: exp.Expr, indent: str) -> Iterator[str]:
    """Yield the steps of a query, the last one first."""
    if isinstance(query, exp.Subquery):
        yield from _tail(query, indent)
        yield from _steps(query.this, indent)
        return
    yield from _tail(query, indent)
    if isinstance(query, exp.SetOperation):
        every = "" if query.args.get("distinct") else " all"
        yield f"{indent}{type(query).__name__.lower()}{every}"
        yield from _steps(query.this, indent + _INDENT)
        yield from _steps(query.expression, indent + _INDENT)
        return
    yield from (indent + step for step in _select(query))
    for source in _sources(query):
        yield from _source(source, indent)


def _tail(query: exp.Expr, indent: str) -> Iterator[str]:
    for key in ("slimit", "soffset", "offset", "limit"):
        if query.args.get(key) is not None:
            yield f"{indent}{key.upper()} {_count(query.args[key])}"
    if query.args.get("order") is not None:
        yield f"{indent}sort by {_list(query.args['order'].expressions)}"
    if query.args.get("distinct") is not None and not isinstance(query, exp.SetOperation):
        yield f"{indent}leave out repeated rows"


def _count(clause: exp.Expr) -> str:
    return to_sql(clause.expression if isinstance(clause, exp.Limit | exp.Offset) else clause)


def _select(select: exp.Expr) -> Iterator[str]:
    """Yield the steps of a SELECT between its order and its tables."""
    args = select.args
    if args.get("qualify") is not None:
        yield f"keep rows for which {to_sql(args['qualify'].this)}"
    yield f"compute {_list(select.expressions)}"
    if args.get("range") is not None:
        yield f"values between rows at {to_sql(args['range'])}"
    if args.get("having") is not None:
        yield f"keep groups where {to_sql(args['having'].this)}"
    if args.get("fill") is not None:
        yield to_sql(args["fill"])
    if args.get("window") is not None:
        yield f"windows of {to_sql(args['window'])}"
    for key, words in (("group", "group by"), ("partition_by", "partition by")):
        if args.get(key) is not None:
            yield f"{words} {_list(args[key].expressions)}"
    if args.get("where") is not None:
        yield f"keep rows where {to_sql(args['where'].this)}"


def _sources(select: exp.Expr) -> list[exp.Expr]:
    source = select.args.get("from_")
    joins = select.args.get("joins") or []
    return [*([source.this] if source is not None else []), *joins]


def _source(source: exp.Expr, indent: str) -> Iterator[str]:
    if isinstance(source, exp.Join):
        words = [source.args.get(key) for key in ("method", "side", "kind")]
        condition = source.args.get("on")
        joined = " ".join([*(str(word).lower() for word in words if word), "join"])
        yield f"{indent}{joined}{f' on {to_sql(condition)}' if condition is not None else ''}"
        yield from _source(source.this, indent + _INDENT)
    elif isinstance(source, exp.Table):
        yield f"{indent}read {to_sql(source)}"
    else:
        yield from _steps(source, indent + _INDENT)


def _list(items: Sequence[exp.Expr]) -> str:
    return ", ".join(to_sql(item) for item in items)
