"""The target of a statement: a new table, one that exists, or none."""

from __future__ import annotations

from dataclasses import replace

from penstock.names import MAX_NAME_BYTES
from penstock.sql.plan import Output
from penstock.sql.planning.target.existing import plan_existing
from penstock.sql.planning.target.new import plan_new
from penstock.sql.planning.target.request import PlannedTarget, TargetRequest, check_name
from penstock.sql.planning.target.subtable import plan_subtable


def plan_target(request: TargetRequest, target_id: int) -> PlannedTarget:
    """The target of the statement; *target_id* is the id of a table that is created."""
    if request.statement.target is None:
        return _plan_without_table(request)
    check_name(request.statement, request.name, "INTO", MAX_NAME_BYTES)
    existing = request.view.table(request.database, request.name.name)
    outputs = (
        _make_unique(request.selection.outputs)
        if existing or request.statement.target_columns
        else tuple(request.selection.outputs)
    )
    subtable = plan_subtable(request)
    if existing is None:
        return plan_new(request, outputs, subtable, target_id)
    return plan_existing(request, outputs, subtable, existing)


def _plan_without_table(request: TargetRequest) -> PlannedTarget:
    """Plan results that go out in events only; their columns are those of a table of their own."""
    planned = plan_new(request, tuple(request.selection.outputs), None, 0)
    return PlannedTarget(replace(planned.target, stored=False), planned.outputs, None)


def _make_unique(outputs: list[Output]) -> tuple[Output, ...]:
    """Outputs whose names differ: only their place matters where the target has names of its
    own.
    """
    seen: set[str] = set()
    made = []
    for i, output in enumerate(outputs):
        name = output.name if output.name.lower() not in seen else f"{output.name}#{i}"
        seen.add(name.lower())
        made.append(replace(output, name=name))
    return tuple(made)
