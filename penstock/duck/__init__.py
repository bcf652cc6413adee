"""DuckDB, confined: what it may run is printed from a checked tree, and what it may open is listed.

`printer.printed` is the only way from a user's query to DuckDB's text; `session.Engine` opens the
only connections that run it.
"""

from penstock.duck.printer import printed
from penstock.duck.session import Bounds, Engine, refused

__all__ = ["Bounds", "Engine", "printed", "refused"]
