"""A SELECT bound to its tables: every name belongs to something, every expression has a type.

The binder (`bind`) is given a tree and what its tables are. It writes out what the text leaves to
be understood (`*`, `last(*)`, names of columns), resolves names, types each expression by the rules
that streams have (`penstock.sql.compile`), and refuses what cannot be meant, with its place and a
way out. It returns a plan (`query_plan`) of frozen nodes; the tree stays as it was. Expressions in
the plan know their types (`binding_of`), so that whoever writes the query for an engine converts by
type and never by name.
"""

from penstock.sql.relational.binder import bind
from penstock.sql.relational.bindings import Binding, binding_of, is_alias, note
from penstock.sql.relational.lowering import lower
from penstock.sql.relational.over import call_of, is_over
from penstock.sql.relational.plan_changes import (
    change_order,
    column_names,
    computed_in,
    expressions_of,
    joins_of,
    map_expressions,
    map_inside,
    map_scans,
    map_selections,
    nodes_of,
    queries_inside,
)
from penstock.sql.relational.query_plan import (
    NO_LIMITS,
    ComputedRows,
    Derived,
    Enclosed,
    Join,
    JoinLimit,
    NamedRows,
    PlannedQuery,
    QueryPlan,
    RowLimits,
    RowSource,
    Scan,
    SelectItem,
    SelectPlan,
    SetOperation,
    StreamSelect,
)
from penstock.sql.relational.query_scope import QueryScope
from penstock.sql.relational.relations import Output, Relation, TableColumns
from penstock.sql.relational.series import SeriesCall, SeriesOrder, series_call, series_order
from penstock.sql.relational.signatures import AGGREGATE_NAMES
from penstock.sql.relational.stream_binder import bind_stream
from penstock.sql.relational.stream_names import StreamSource

__all__ = [
    "AGGREGATE_NAMES",
    "NO_LIMITS",
    "Binding",
    "ComputedRows",
    "Derived",
    "Enclosed",
    "SelectItem",
    "Join",
    "JoinLimit",
    "NamedRows",
    "RowLimits",
    "Output",
    "PlannedQuery",
    "QueryPlan",
    "QueryScope",
    "Relation",
    "RowSource",
    "Scan",
    "SelectPlan",
    "SeriesCall",
    "SeriesOrder",
    "SetOperation",
    "StreamSelect",
    "StreamSource",
    "TableColumns",
    "bind",
    "bind_stream",
    "binding_of",
    "call_of",
    "change_order",
    "column_names",
    "computed_in",
    "expressions_of",
    "is_alias",
    "is_over",
    "joins_of",
    "lower",
    "map_expressions",
    "map_inside",
    "map_scans",
    "map_selections",
    "nodes_of",
    "note",
    "queries_inside",
    "series_call",
    "series_order",
]
