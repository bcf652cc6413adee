"""What a translated query needs, brought to a connection of a test."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb

from penstock.duck.helpers import Installed
from penstock.sql.functions.duckdb import Helper
from penstock.sql.source import Source


def install(con: duckdb.DuckDBPyConnection, helpers: Iterable[Helper], source: Source) -> Installed:
    """Add *helpers* to *con*; errors of theirs point into *source*."""
    installed = Installed(con, source, {})
    installed.add(helpers)
    return installed
