"""Plans of tests, whose tables are relations of the same names."""

from __future__ import annotations

from dataclasses import replace

from penstock.sql.relational import QueryPlan, Scan, SelectPlan, map_scans


def placed(plan: QueryPlan, relation: str = "", time: str = "") -> QueryPlan:
    """Return *plan* with a relation for each table.

    Args:
        relation: of all tables; "" is that of the table's name.
        time: the column that rows are in the order of.
    """

    def place(scan: Scan, _: SelectPlan) -> Scan:
        return replace(scan, relation=relation or scan.table, alias=scan.name, time=time)

    return map_scans(plan, place)
