"""EXPLAIN SELECT: the steps of a query, who computes them, and what is read for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from penstock.sql.dialect import to_sql
from penstock.sql.relational import Output

#: metadata of the answer's schema: name and type of each column that the query itself has
COLUMNS = b"penstock.columns"


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


def table(
    query: exp.Query,
    steps: Iterable[str],
    computed: Mapping[str, Sequence[str]],
    reads: Iterable[TableReach],
    outputs: Iterable[Output],
) -> pa.Table:
    """Return the answer of EXPLAIN: items and their values.

    Args:
        query: as it was read.
        steps: of its plan.
        computed: clauses that others than DuckDB compute, by who does it.
        reads: what is read of each table, at most.
        outputs: the columns of the query's own answer.
    """
    engines = [f"{name} for {', '.join(clauses)}" for name, clauses in computed.items()]
    engine = ", ".join([*engines, "DuckDB for the rest"]) if engines else "DuckDB"
    lines = [("query", to_sql(query)), ("runs in", "store"), ("engine", engine)]
    lines += [("plan", step) for step in steps]
    lines += [("reads", reach.shown) for reach in reads]
    fields = [
        pa.field("item", pa.string(), metadata={"type": "VARCHAR(64)"}),
        pa.field("value", pa.string(), metadata={"type": "VARCHAR(65535)"}),
    ]
    told = json.dumps([(output.name, str(output.type)) for output in outputs])
    return pa.table(list(zip(*lines, strict=True)), schema=pa.schema(fields, {COLUMNS: told}))
