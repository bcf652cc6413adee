"""Answers to queries over `pg_catalog` and `information_schema`, from an engine in memory that
opens nothing. Tables and functions of a query end with its connection to the engine.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa

from gateway.postgres.catalog_functions import macros_of
from gateway.postgres.catalog_query import CatalogQuery
from gateway.postgres.catalog_tables import SETTINGS, CatalogTables, settings_table
from gateway.postgres.session import PgSession
from penstock.auth.access import Access, visible
from penstock.catalog.view import Catalog
from penstock.duck import Bounds, Databases, Engine, explain_error
from penstock.errors import SqlSemanticError
from penstock.runtime.limits import Turns

#: what a query over catalogs may take
_BOUNDS = Bounds(memory="128MB", threads=1, seconds=10.0, answer=64 << 20)
#: queries over catalogs at a time, of all users
_THREADS = 2
#: users whose tables are kept until the catalog changes
_MOST = 16
_Key = tuple[str, str, int, int]


class CatalogAnswers:
    """One per process. `answer` blocks; `ask` is for the event loop."""

    def __init__(
        self, catalog: Callable[[], Catalog], access: Access, turns: Turns | None = None
    ) -> None:
        """
        Args:
            turns: how many queries each user may have; None: as many as come.
        """
        self._catalog = catalog
        self._access = access
        self._turns = turns or Turns(0, 0)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="catalogs")
        self._databases = Databases(_BOUNDS, _THREADS)
        self._kept: OrderedDict[_Key, CatalogTables] = OrderedDict()

    async def ask(
        self, query: CatalogQuery, session: PgSession, process: int, values: Sequence[Any]
    ) -> pa.Table:
        """Do what `answer` does in a thread, when it is the user's turn.

        Raises:
            OverloadError: too many queries of the user wait.
        """
        work = partial(self.answer, query, session, process, values)
        async with self._turns.turn(session.user):
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def answer(
        self, query: CatalogQuery, session: PgSession, process: int, values: Sequence[Any] = ()
    ) -> pa.Table:
        """Return the rows of a query.

        Args:
            process: the connection's number.
            values: of `$1`, `$2` and so on.

        Raises:
            SqlSemanticError: it has something that is not served.
            PenstockError: it takes too long, or too much.
        """
        tables = self._tables_for(session)
        schema = tables.namespace_oid(session.database) if session.database else None
        known = macros_of(session, schema, process)
        text = query.prepare(tables, known, session, values)
        engine = Engine(_BOUNDS, self._databases)
        try:
            engine.confine()
            for name in sorted(query.tables):
                # settings are the connection's own, all else is the catalog's
                own = name == SETTINGS
                table = settings_table(session.settings()) if own else tables.table(name)
                engine.con.register(name, table)
            for name in sorted(query.macros):
                engine.con.execute(known[name].definition(name))
            with engine.in_time():
                found = engine.answer(text)
            engine.keep()
            return found
        except duckdb.Error as wrong:
            raise SqlSemanticError(
                "the query over catalogs cannot be answered", detail=explain_error(wrong).message
            ) from None
        finally:
            engine.close()

    def _tables_for(self, session: PgSession) -> CatalogTables:
        """Return the tables as the user sees them now; threads may make them twice."""
        catalog = self._catalog()
        key = (session.user, session.connected_to, catalog.revision, catalog.principals)
        found = self._kept.get(key)
        if found is None:
            seen = visible(catalog, self._access, session.user)
            found = CatalogTables(seen, session.connected_to, session.user, self._access.root)
            self._kept[key] = found
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return found
