"""Streams into a stream table of a raft group: they write to a table beside it, from which the
group's leader takes its rows.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import replace

from gateway.ddl.definer import Definer
from penstock.catalog.model import ROW_ID, Entry, Table
from penstock.sql.statements import CreateStream, TargetColumn


def redirect(
    definer: Definer, statement: CreateStream, database: str | None
) -> tuple[CreateStream, Table | None]:
    """Return *statement* as it is carried out, and the stream table that it writes to, if any."""
    target = statement.target
    if target is None:
        return statement, None
    sink = definer.catalog.table(target.database or database or "", target.name)
    if sink is not None and sink.foreign:
        hint = "let it write into a table, and a client carry on from there"
        raise statement.error(
            f"{sink.name} is a topic of another Kafka",
            target,
            code="E_NO_LOG",
            hint=hint,
        )
    if sink is None or sink.replicated is None:
        return statement, None
    columns = _target_columns(statement, sink)
    beside = replace(target, name=f"{sink.name}_from_{statement.stream.name}")
    return replace(statement, target=beside, target_columns=columns), sink


def _target_columns(statement: CreateStream, sink: Table) -> tuple[TargetColumn, ...]:
    """Return the columns that the statement names, or all. Raises SqlSemanticError."""
    columns = [c.name for c in sink.columns if c.name != ROW_ID]
    if not statement.target_columns:
        return tuple(TargetColumn(name) for name in columns)
    known = {name.lower() for name in columns}
    unknown = [c.name for c in statement.target_columns if c.name.lower() not in known]
    if unknown:
        raise statement.error(
            f"{sink.name} has no column {unknown[0]}",
            statement.target,
            code="E_NO_COLUMN",
            hint=f"its columns are {', '.join(columns)}",
        )
    return statement.target_columns


def mark(definer: Definer, puts: Sequence[Entry], sink: Table) -> tuple[Table, ...]:
    """Return new tables with what the leader of *sink* has to know to take their rows."""
    return tuple(
        dataclasses.replace(table, options=_options(definer, table, sink))
        for table in puts
        if isinstance(table, Table)
    )


def _options(definer: Definer, table: Table, sink: Table) -> dict[str, str]:
    ends = {
        str(p): offset
        for (_, p), offset in definer.topics.log_ends(table.topic, table.partitions).items()
    }
    return {**table.options, "inlet_of": str(sink.id), "inlet_from": json.dumps(ends)}
