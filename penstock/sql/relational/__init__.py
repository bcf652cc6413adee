"""A SELECT bound to its tables: every name belongs to something, every expression has a type.

The binder (`bind`) is given a tree and what its tables are. It writes out what the text leaves to
be understood (`*`, `last(*)`, names of columns), resolves names, types each expression by the rules
that streams have (`penstock.sql.compile`), and refuses what cannot be meant, with its place and a
way out. Types stay at the nodes (`binding_of`), so that whoever writes the query for an engine
converts by type and never by name.
"""

from penstock.sql.relational.binder import BoundQuery, QueryScope, bind
from penstock.sql.relational.bindings import Binding, binding_of, is_alias, note
from penstock.sql.relational.over import call_of, is_over
from penstock.sql.relational.relations import Output, Relation, TableColumns
from penstock.sql.relational.series import SeriesCall, SeriesOrder, series_call, series_order
from penstock.sql.relational.signatures import AGGREGATE_NAMES

__all__ = [
    "AGGREGATE_NAMES",
    "Binding",
    "BoundQuery",
    "Output",
    "QueryScope",
    "Relation",
    "SeriesCall",
    "SeriesOrder",
    "TableColumns",
    "bind",
    "binding_of",
    "call_of",
    "is_alias",
    "is_over",
    "note",
    "series_call",
    "series_order",
]
