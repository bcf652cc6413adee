"""What a statement of the PostgreSQL wire gives: the session answers it, catalogs do, or the
gateway as any other statement, with the same rights and limits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from gateway.answers import Affected
from gateway.postgres.catalog_answers import CatalogAnswers
from gateway.postgres.catalog_query import CatalogQuery, read_catalog_query
from gateway.postgres.pg_types import TEXT, PgType, pg_type_named, pg_type_of
from gateway.postgres.session import PgAnswer, PgSession
from gateway.postgres.translate import PgStatement
from gateway.statements.context import RequestContext
from gateway.statements.executor import Executor
from penstock.auth.access import Access, visible
from penstock.catalog.parameter_types import schema_of, stand_ins
from penstock.catalog.view import Catalog
from penstock.errors import CatalogError, PenstockError, SqlError, SqlSemanticError
from penstock.sql import statements as st
from penstock.sql.parser import pieces, read

#: first words of statements that change nothing; the dialect has no others
_READS = ("SELECT", "WITH", "SHOW", "EXPLAIN", "DESCRIBE", "DESC")
_QUERIES = ("SELECT", "WITH", "VALUES", "TABLE", "")
#: words of PostgreSQL that ask for something else than rows
_NOT_SERVED = {
    "COPY": "send the SELECT itself, or use `penstock export`",
    "DECLARE": "send the SELECT itself; drivers fetch rows of a portal some at a time",
    "FETCH": "send the SELECT itself; drivers fetch rows of a portal some at a time",
    "MOVE": "send the SELECT itself",
    "PREPARE": "let the driver prepare statements",
    "EXECUTE": "let the driver prepare statements",
    "LISTEN": "subscribe over the notifier's WebSocket",
    "LOCK": "there is nothing to lock: this wire is for reading",
}
#: where the store tells the columns of a query that it explains
_COLUMNS = b"penstock.columns"
_EXPLAIN = "EXPLAIN\n"
Columns = list[tuple[str, PgType]]


@dataclass(frozen=True)
class PgDescription:
    """What a statement takes and gives: oids of its parameters, and its columns; None: no rows."""

    oids: tuple[int, ...]
    columns: Columns | None


class PgStatements:
    """One per process. Event loop only."""

    def __init__(
        self,
        executor: Executor,
        catalogs: CatalogAnswers,
        catalog: Callable[[], Catalog],
        access: Access,
    ) -> None:
        self._executor = executor
        self._catalogs = catalogs
        self._catalog = catalog
        self._access = access

    def close(self) -> None:
        self._catalogs.close()

    def seen_by(self, user: str) -> Catalog:
        """Return the catalog as far as *user* sees it."""
        return visible(self._catalog(), self._access, user)

    async def run(
        self,
        statement: PgStatement,
        session: PgSession,
        process: int,
        values: Sequence[Any],
        told: list[str],
    ) -> PgAnswer:
        """Answer a statement.

        Args:
            process: the connection's number.
            values: of `$1`, `$2` and so on.
            told: gets what is to be told beside the answer.

        Raises:
            PenstockError: as the same statement over HTTP, and E_READ_ONLY for one that would
                change something.
        """
        answer = session.run(statement)
        if answer is not None:
            return answer
        if statement.first_word == "USE":
            return self._use(statement, session)
        query = self._catalog_query(statement)
        if query is not None:
            try:
                return PgAnswer(await self._catalogs.ask(query, session, process, values))
            except SqlSemanticError as error:
                # a function of the dialect's own, in a SELECT of no table
                if query.tables or error.code != "E_UNKNOWN_FUNCTION":
                    raise
        _require_reading(statement)
        context = _context(statement, session, values)
        found = await self._executor.run(statement.ours, context)
        told += context.notices
        return PgAnswer(None, "OK") if isinstance(found, Affected) else PgAnswer(found)

    async def describe(
        self, statement: PgStatement, session: PgSession, process: int, declared: Sequence[int]
    ) -> PgDescription:
        """Return what a statement takes and gives, before its parameters have values.

        Args:
            declared: oids that the client has given for its first parameters; 0: none.

        Raises:
            PenstockError: it is wrong.
        """
        oids, values = self._parameters(statement, session, declared)
        word = statement.first_word
        if word in ("BEGIN", "SET", "RESET", "USE", "START", "DEALLOCATE") or (
            word not in (*_READS, *_QUERIES)
        ):
            return PgDescription(oids, None)
        shown = await self._schema(statement, session, process, values)
        return PgDescription(oids, shown)

    async def _schema(
        self, statement: PgStatement, session: PgSession, process: int, values: Sequence[Any]
    ) -> Columns | None:
        if statement.first_word in ("SELECT", "WITH") and self._catalog_query(statement) is None:
            told = await self._explained(statement, session, values)
            if told is not None:
                return told
        answer = await self.run(statement, session, process, values, [])
        return None if answer.table is None else columns_of(answer.table)

    async def _explained(
        self, statement: PgStatement, session: PgSession, values: Sequence[Any]
    ) -> Columns | None:
        """Return the columns of a SELECT that the store answers, without computing it; None: it
        is another one's, or is wrong until its parameters have values.
        """
        _require_reading(statement)
        context = _context(statement, session, values)
        try:
            explained = await self._executor.run(_EXPLAIN + statement.ours, context)
        except SqlError as error:
            if statement.parameters:
                return None
            error.line = max(error.line - 1, 0)
            raise
        metadata = {} if isinstance(explained, Affected) else explained.schema.metadata or {}
        if _COLUMNS not in metadata:
            return None
        return [(name, pg_type_named(kind)) for name, kind in json.loads(metadata[_COLUMNS])]

    def parameters(
        self, statement: PgStatement, session: PgSession, declared: Sequence[int]
    ) -> tuple[int, ...]:
        """Return the oids of a statement's parameters, before they have values."""
        return self._parameters(statement, session, declared)[0]

    # ---------------------------------------------------------------- parts

    def _catalog_query(self, statement: PgStatement) -> CatalogQuery | None:
        if statement.first_word not in _QUERIES:
            return None
        return read_catalog_query(statement.theirs)

    def _use(self, statement: PgStatement, session: PgSession) -> PgAnswer:
        found = read(statement.ours)[0]
        assert isinstance(found, st.UseDatabase)
        database = self.seen_by(session.user).database(found.name)
        if database is None:
            raise CatalogError(f"there is no database {found.name}", code="E_NO_DATABASE")
        session.database = database.name
        return PgAnswer(None, "USE")

    def _parameters(
        self, statement: PgStatement, session: PgSession, declared: Sequence[int]
    ) -> tuple[tuple[int, ...], list[Any]]:
        """Return the oids of a statement's parameters, and values that stand for them."""
        count = max((*statement.parameters, len(declared)), default=0)
        oids = [declared[n] if n < len(declared) else 0 for n in range(count)]
        values: list[Any] = [None] * count
        for number, kind, value in self._inferred(statement, session):
            if not oids[number - 1]:
                oids[number - 1] = pg_type_of(kind).oid
            values[number - 1] = value
        return tuple(oid or TEXT.oid for oid in oids), values

    def _inferred(
        self, statement: PgStatement, session: PgSession
    ) -> Iterator[tuple[int, pa.DataType, Any]]:
        """Yield number, type and a value that stands for it, of each parameter of the dialect's."""
        found = self._read(statement)
        if found is None or not found.placeholders:
            return
        seen = self.seen_by(session.user)
        types = schema_of(found, seen.table, session.database or "").types
        stands = stand_ins(found) or []
        yield from zip(statement.parameters, types, stands, strict=False)

    def _read(self, statement: PgStatement) -> st.Statement | None:
        if not statement.parameters or self._catalog_query(statement) is not None:
            return None
        try:
            found = read(statement.ours)
        except SqlError:
            return None
        return found[0] if len(found) == 1 else None


def columns_of(table: pa.Table) -> Columns:
    """Return the columns of an answer."""
    return [(field.name, pg_type_of(field.type)) for field in table.schema]


def _context(statement: PgStatement, session: PgSession, values: Sequence[Any]) -> RequestContext:
    wanted = [n for n in statement.parameters if not 1 <= n <= len(values)]
    if wanted:
        raise SqlSemanticError(
            f"there is no value for ${wanted[0]}",
            code="E_PARAMETER",
            hint="parameters are for drivers, which bind values to them",
        )
    given = [values[number - 1] for number in statement.parameters]
    return RequestContext(
        session.database,
        session.timezone,
        user=session.user,
        remote=session.remote,
        with_password=session.with_password,
        parameters=given or None,
    )


def _require_reading(statement: PgStatement) -> None:
    """Raise PenstockError for what is no statement, and for one that changes something."""
    word = statement.first_word
    ours = statement.ours
    if word in _NOT_SERVED:
        raise SqlSemanticError(
            f"{word} is not served", code="E_UNSUPPORTED_STATEMENT", hint=_NOT_SERVED[word]
        )
    if word in _READS or (not word and ours.lstrip().startswith("(")):
        if len(list(pieces(ours))) == 1:
            return
        raise SqlSemanticError("one statement is answered at a time", code="E_SEVERAL_STATEMENTS")
    if word not in _WRITES:
        read(ours)
    raise read_only(word)


def read_only(word: str) -> PenstockError:
    """Return the refusal of a statement that would change something."""
    return SqlSemanticError(
        f"{word} is refused: the PostgreSQL wire is for reading",
        code="E_READ_ONLY",
        hint="send it over HTTP (POST /v1/query or /rest/sql), `penstock sql` or Flight SQL",
    )


_WRITES = frozenset(
    """
    INSERT UPDATE DELETE MERGE TRUNCATE CREATE ALTER DROP GRANT REVOKE COMMENT VACUUM ANALYZE
    REINDEX CLUSTER REFRESH DO CALL REASSIGN SECURITY IMPORT NOTIFY PAUSE RESUME FLUSH RECALCULATE
    SYSTEM CHECKPOINT LOAD
    """.split()
)


def at_place(error: PenstockError, statement: PgStatement) -> int:
    """Return the character of the client's text, from 1, that an error is about; 0: none."""
    if not isinstance(error, SqlError) or not error.line:
        return 0
    return statement.position(error.line, error.column)
