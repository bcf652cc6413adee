"""A target as a statement asks for it, and a planned one."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.sql.plan import Output, Target
from penstock.sql.planning.context import PlanningContext
from penstock.sql.planning.refusals import refuse
from penstock.sql.planning.select import PartitionKeys, SelectList
from penstock.sql.planning.view import SchemaView, TableDef
from penstock.sql.statements import CreateStream, Name


@dataclass(frozen=True)
class PlannedTarget:
    """`outputs` with final names; `definition` is the table to create, unless it exists."""

    target: Target
    outputs: tuple[Output, ...]
    definition: TableDef | None


@dataclass(frozen=True)
class TargetRequest:
    """Everything that decides about the target of a statement. Without a result table the target
    is called as the stream.
    """

    statement: CreateStream
    context: PlanningContext
    view: SchemaView
    database: str
    keys: PartitionKeys
    selection: SelectList
    windowed: bool

    @property
    def name(self) -> Name:
        return self.statement.target or self.statement.stream

    @property
    def shown(self) -> str:
        return f"{self.database}.{self.name.name}"


def check_name(statement: CreateStream, name: Name, clause: str, limit: int) -> None:
    """Names have a length in bytes."""
    size = len(name.name.encode())
    if size > limit:
        refuse(statement, "E_NAME_LENGTH", name, clause=clause, bytes=size, limit=limit)


def count_mismatch(request: TargetRequest, listed: int, given: int, what: str) -> None:
    hint = (
        "the first result column is the window's start"
        if request.windowed
        else "name as many columns as the select list has"
    )
    refuse(
        request.statement,
        "E_TARGET_COLUMNS",
        request.statement.positions.get("columns", request.statement.positions.get("into")),
        what=f"{what} has {listed} columns, the select list gives {given}",
        hint=hint,
    )
