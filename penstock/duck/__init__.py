"""DuckDB, confined: it runs text printed from a checked tree, and opens only listed files.

`printer.print_query` is the only way from a user's query to DuckDB's text; `session.Engine` opens
the only connections that run it.
"""

from penstock.duck.databases import Bounds, Databases
from penstock.duck.printer import print_query
from penstock.duck.session import Engine, explain_error

__all__ = ["Bounds", "Databases", "Engine", "explain_error", "print_query"]
