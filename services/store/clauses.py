"""Clauses that only Penstock has, written out as clauses that DuckDB has, too."""

from __future__ import annotations

from penstock.sql.relational import QueryPlan, SelectPlan, map_inside
from penstock.sql.statements import Query
from services.store.binding import Context
from services.store.chosen_rows import choose_rows
from services.store.join_limits import limit_joins
from services.store.partition_limits import limit_partitions
from services.store.row_series import check_depth, write_series


def write_clauses(plan: QueryPlan, statement: Query, context: Context) -> QueryPlan:
    """Return *plan*, whose tables are relations, with rows that functions choose, functions of a
    row and the rows before it, and limits of partitions written out.

    Raises:
        SqlSemanticError: a clause cannot stand where it does.
    """
    return _write(plan, statement, context, on_top=True, depth=0)


def _write(
    plan: QueryPlan, statement: Query, context: Context, *, on_top: bool, depth: int
) -> QueryPlan:
    """Write the queries inside *plan* first.

    Args:
        depth: selects with functions of a row and the rows before it that *plan* is in.
    """
    if isinstance(plan, SelectPlan) and plan.series is not None:
        depth += 1
        check_depth(plan, depth, statement)

    def write_inner(query: QueryPlan) -> QueryPlan:
        return _write(query, statement, context, on_top=False, depth=depth)

    made = map_inside(plan, write_inner)
    if not isinstance(made, SelectPlan):
        return made
    made = write_series(choose_rows(limit_joins(made)), context, on_top=on_top)
    return limit_partitions(made, statement)
