"""Statements: from text to an answer.

Owns which part of the gateway does what a statement says, the current database within a request,
and forwarding DDL to the gateway that holds the catalog's lease. Refuses statements that this build
does not have, by name.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import pyarrow as pa
from sqlglot import exp

from gateway import deleting, describing, insert, times
from gateway.answers import Affected, Answer, table_of
from gateway.ddl import Definer, Elsewhere
from gateway.definitions import Definitions
from gateway.federation import Federation
from gateway.forward import Forwarder
from gateway.information import SCHEMA, Information
from gateway.intake import Intake, database_of, refuse_virtual
from gateway.publisher import Publisher
from gateway.rights import Asked, Need, needs
from gateway.rows import Layout
from gateway.select import Store
from gateway.streams import Streams
from penstock import audit, names
from penstock.access import Access
from penstock.catalog.model import Database, External, Table
from penstock.catalog.principals import Object
from penstock.catalog.view import Catalog
from penstock.clock import Clock
from penstock.errors import AuthError, CatalogError, PenstockError, SqlSemanticError, SqlSyntaxError
from penstock.link import pushdown
from penstock.sql import parse
from penstock.sql import render as sql_text
from penstock.sql import statements as st
from penstock.sql.plan import TICKS_PER_SECOND
from penstock.sql.secret import hidden
from penstock.types import ColumnType

T = TypeVar("T")
#: longer texts are parsed in a worker thread
_LONG = 16 * 1024
#: rows of a SELECT that are written at once
_PIECE_ROWS = 50_000
_DDL = (
    st.CreateDatabase,
    st.AlterDatabase,
    st.CreateStable,
    st.CreateTable,
    st.CreateStreamTable,
    st.CreateChildren,
    st.AlterTable,
    st.Drop,
    st.CreateStream,
    st.PauseStream,
    st.ResumeStream,
    st.FlushStream,
    st.RecalculateStream,
    st.AlterStream,
    st.CreateSnode,
    st.CreateUser,
    st.AlterUser,
    st.CreateRole,
    st.Grant,
    st.GrantRole,
    st.RevokeTokens,
    st.CreateExternalStream,
    st.CreateView,
    st.SteerView,
    st.CreateFunction,
)


@dataclass(frozen=True)
class Session:
    """What a request says beside its text. `forwarded`: another gateway sent it, so it is not sent
    on. Nobody ("") may do nothing. `with_password`: its user proved to know the password, which a
    token or a session does not.
    """

    database: str | None = None
    timezone: str = "UTC"
    user: str = ""
    key: str | None = None
    remote: str = ""
    forwarded: bool = False
    with_password: bool = False
    #: what its statements have to tell beside their answers, in order
    notices: list[str] = field(default_factory=list)


class Executor:
    """One per process; event loop only."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        definer: Definer,
        definitions: Definitions,
        streams: Streams,
        intake: Intake,
        publisher: Publisher,
        store: Store,
        information: Information,
        forwarder: Forwarder,
        federation: Federation,
        access: Access,
        clock: Clock,
    ) -> None:
        self._catalog = catalog
        self._definer = definer
        self._definitions = definitions
        self._streams = streams
        self._intake = intake
        self._publisher = publisher
        self._store = store
        self._access = access
        self._information = information
        self._forwarder = forwarder
        self._federation = federation
        self._clock = clock

    async def run(self, text: str, session: Session) -> Answer:
        """Run the statements of *text* in order, up to the first that fails; the answer is the last
        one's. Raises PenstockError.
        """
        statements = parse(text) if len(text) < _LONG else await asyncio.to_thread(parse, text)
        if not statements:
            raise SqlSyntaxError("there is no statement in this text")
        if session.key is not None and len(statements) > 1:
            raise SqlSemanticError(
                "an idempotency key is for one statement", code="E_SEVERAL_STATEMENTS"
            )
        answer: Answer = Affected()
        for statement in statements:
            await self._allow(statement, session)
            if isinstance(statement, st.UseDatabase):
                session = replace(
                    session, database=database_of(self._catalog(), statement.name).name
                )
                answer = Affected()
            else:
                answer = await self._one(statement, session)
        return answer

    async def _one(self, statement: st.Statement, session: Session) -> Answer:
        if isinstance(statement, st.Insert):
            return await self._insert(statement, session)
        if isinstance(statement, st.InsertSelect):
            return await self._insert_selected(statement, session)
        if isinstance(statement, st.Query):
            return await self._query(statement, session)
        if isinstance(statement, st.Delete):
            return await self._delete(statement, session)
        if isinstance(statement, _DDL):
            return await self._define(statement, session)
        if isinstance(statement, st.Explain):
            return await self._explain(statement, session)
        if isinstance(statement, st.Show):
            return await asyncio.to_thread(
                self._information.seen_by(session.user).show, statement, session.database
            )
        if isinstance(statement, st.ShowCreate):
            return describing.show_create(
                self._information.seen_by(session.user).catalog, statement, session.database
            )
        if isinstance(statement, st.Describe):
            return await self._describe(statement, session)
        raise statement.error("this statement is not available", code="E_UNSUPPORTED_STATEMENT")

    # ---------------------------------------------------------------- rights

    async def _allow(self, statement: st.Statement, session: Session) -> None:
        """Raises AuthError unless the user may do what *statement* says."""
        if session.user == self._access.root:
            return
        if isinstance(statement, st.AlterUser):
            _require_password(statement, session)
        catalog = self._catalog()
        asked = Asked(
            session.user,
            session.database,
            catalog,
            lambda target: self._access.sees(session.user, target),
        )
        for need in needs(statement, asked):
            await self._ask(need, session.user, catalog)

    async def _ask(self, need: Need, user: str, catalog: Catalog) -> None:
        access = self._access
        if need.kind == "all":
            access.require(user, need.right or "ADMIN", None)
            return
        if not need.database:
            return  # there is no current database, which the statement is refused for
        home = catalog.database(need.database)
        if need.right is None:
            await self._see(need, user, home)
        elif need.kind == "database":
            access.require_named(user, need.right, need.database)
        elif (found := _plain(catalog, need)) is not None:
            access.require(user, need.right, found, f"{need.database}.{need.name}")
        elif need.kind in ("stream", "view"):
            access.require_named(user, need.right, need.database, need.name)
        elif not (home is not None and access.may(user, need.right, home)):
            try:
                await self._intake.locate_for(user, need.right, need.database, need.name)
            except CatalogError as error:
                if error.code not in ("E_NO_TABLE", "E_NO_DATABASE"):
                    raise

    async def _see(self, need: Need, user: str, home: Database | None) -> None:
        """Any right on it will do."""
        access = self._access
        found: Object | None = home if need.kind == "database" else _plain(self._catalog(), need)
        if (
            found is None
            and home is not None
            and need.kind == "table"
            and not access.may(user, "READ", home)
        ):
            with contextlib.suppress(CatalogError):
                layout, _ = await self._intake.locate(home.name, need.name)
                found = self._catalog().table_by_id(layout.table_id)
        if found is None or not access.sees(user, found):
            access.require_named(user, "READ", need.database, need.name or None)

    # ---------------------------------------------------------------- reading

    async def _query(self, statement: st.Query, session: Session) -> pa.Table:
        asked = [
            s
            for s in statement.query.find_all(exp.Select)
            if s.args.get("open_windows") is not None
        ]
        if asked:
            return await asyncio.to_thread(self._open_windows, statement, asked, session)
        tables = list(statement.query.find_all(exp.Table))
        if not tables or any(t.db.lower() == SCHEMA for t in tables):
            answer = await asyncio.to_thread(
                self._information.seen_by(session.user).query, statement.query
            )
            if answer is not None:
                return answer
        revision = self._catalog().revision
        behind = {
            d.lower()
            for t in tables
            for d in self._catalog().databases_behind(t.db or session.database or "", t.name)
        }
        shared = {
            d: home.topic for d in behind if (home := self._catalog().database(d)) is not None
        }

        def counts(topic: str) -> bool:
            # what was acked in an earlier generation of a topic is in segments
            home = names.database_of(topic)
            return home in shared and (names.has_own(topic) or topic == shared[home])

        after = {at: o for at, o in self._publisher.acked.items() if counts(at[0])}
        after |= await asyncio.to_thread(
            self._written_elsewhere, [(t.db or session.database or "", t.name) for t in tables]
        )
        return await self._store.selected(
            session.user, statement.text, session.database, session.timezone, revision, after
        )

    def _written_elsewhere(self, tables: Sequence[tuple[str, str]]) -> dict[tuple[str, int], int]:
        """Newest records of stream tables: their leaders write them, so what this gateway has acked
        says nothing.
        """
        found: dict[tuple[str, int], int] = {}
        for database, name in tables:
            table = self._catalog().table(database, name)
            if (
                table is not None
                and table.replicated is not None
                and (end := self._definer.log_end(table.topic))
            ):
                found[table.topic, 0] = end - 1
        return found

    def _open_windows(
        self, statement: st.Query, asked: list[exp.Select], session: Session
    ) -> pa.Table:
        """SELECT … FROM stream OPEN WINDOWS: what the stream's lanes hold, never what the store
        has.
        """
        node = asked[0].args["from_"].this if asked[0].args.get("from_") is not None else None
        if (
            len(asked) > 1
            or statement.query is not asked[0]
            or not isinstance(node, exp.Table)
            or asked[0].args.get("joins")
        ):
            raise statement.error(
                "OPEN WINDOWS stands behind one stream in FROM",
                asked[0],
                code="E_UNSUPPORTED_QUERY",
            )
        if asked[0].args.get("window") is not None:
            raise statement.error(
                "open windows are windows already",
                asked[0].args["window"],
                code="E_UNSUPPORTED_QUERY",
            )
        name = st.Name(node.name, node.db or None, node.this.meta.get("start", 0))
        stream = self._streams.find(statement, name, session.database, False)
        assert stream is not None
        tree = statement.query.copy()
        tree.set("open_windows", None)
        for table in tree.find_all(exp.Table):
            table.set("db", None)
        return self._information.run(
            tree, {node.name: self._streams.open_windows(stream).to_arrow()}
        )

    async def _describe(self, statement: st.Describe, session: Session) -> pa.Table:
        home = self._home(statement, statement.table, session)
        entry = self._catalog().external(home.name, statement.table.name)
        view = self._catalog().view(home.name, statement.table.name)
        shown = (
            entry if entry is not None or view is None else self._catalog().by_id(view.target_id)
        )
        if isinstance(shown, External | Table):
            return describing.describe(shown)
        layout, _ = await self._find(home, statement, statement.table)
        table = self._catalog().table_by_id(layout.table_id)
        assert table is not None
        return describing.describe(table)

    async def _explain(self, statement: st.Explain, session: Session) -> pa.Table:
        inner = statement.statement
        if isinstance(inner, st.CreateStream):
            return await asyncio.to_thread(
                self._streams.explain, inner, session.database, session.timezone
            )
        columns = (("item", ColumnType("VARCHAR", 64)), ("value", ColumnType("VARCHAR", 65_535)))
        catalog = self._catalog()
        far = pushdown.explain(
            inner.query,
            session.database or "",
            lambda database, name: pushdown.find(catalog, database, name),
        )
        return table_of(
            columns,
            [
                ("query", sql_text(inner)),
                *(far or [("runs in", "store"), ("reads", pushdown.LOCAL)]),
            ],
        )

    # ---------------------------------------------------------------- writing

    async def _insert(self, statement: st.Insert, session: Session) -> Affected:
        tz = times.zone(session.timezone)
        bound = []
        abroad: list[tuple[External, insert.Bound]] = []
        for part in statement.parts:
            home = self._home(statement, part.table, session)
            entry = self._catalog().external(home.name, (part.stable or part.table).name)
            if entry is not None:
                child = part.table.name if part.stable is not None else None
                abroad.append(
                    (
                        entry,
                        insert.bind(
                            statement,
                            part,
                            self._federation.layout(entry),
                            child,
                            tz,
                            self._clock.now(),
                        ),
                    )
                )
                continue
            if part.stable is not None:
                stable_home = part.stable.database or home.name
                layout, child = await self._find(
                    database_of(self._catalog(), stable_home), statement, part.stable
                )
                if layout.plain or child is not None:
                    raise statement.error(
                        f"{part.stable.name} is no supertable", part.stable, code="E_NOT_A_STABLE"
                    )
                name: str | None = part.table.name
            else:
                layout, name = await self._find(home, statement, part.table)
            self._pointing(statement, part.table, partial(refuse_virtual, layout))
            bound.append(insert.bind(statement, part, layout, name, tz, self._clock.now()))
        if abroad and session.key is not None:
            raise statement.error(
                "an idempotency key is for tables of this deployment",
                code="E_UNSUPPORTED_STATEMENT",
            )
        written = [await asyncio.to_thread(self._federation.write, e, b.frame) for e, b in abroad]
        futures = []
        writes = insert.together(bound)
        for i, part_rows in enumerate(writes):
            key = (
                f"{session.key}#{i}" if session.key is not None and len(writes) > 1 else session.key
            )
            digest = hashlib.sha256(statement.text.encode()).hexdigest() if key else ""
            size = int(part_rows.frame.estimated_size())
            told = part_rows.notices
            futures.append(
                await self._intake.submit_to(
                    part_rows.layout,
                    part_rows.frame,
                    size=size,
                    key=key,
                    digest=digest,
                    told=True,
                    notices=told,
                )
            )
        receipts = [await f for f in futures]
        for receipt in receipts:
            session.notices.extend(receipt.notices)
        return Affected(sum(r.rows for r in receipts) + sum(written))

    async def _insert_selected(self, statement: st.InsertSelect, session: Session) -> Affected:
        """Rows of a SELECT as they are now; what follows rows that are still to come is a
        materialized view.
        """
        if session.key is not None:
            hint = "a SELECT may give other rows when it is asked again"
            raise statement.error(
                "an idempotency key is for rows that are given",
                code="E_UNSUPPORTED_STATEMENT",
                hint=hint,
            )
        home = self._home(statement, statement.table, session)
        entry = self._catalog().external(home.name, statement.table.name)
        child: str | None = None
        if entry is not None:
            layout = self._federation.layout(entry)
        else:
            layout, child = await self._find(home, statement, statement.table)
            self._pointing(statement, statement.table, lambda: refuse_virtual(layout))
        selected = await self._query(statement.select, session)
        if not selected.num_rows:
            return Affected(0)
        bound = await asyncio.to_thread(
            insert.bind_selected, statement, selected, layout, child, self._clock.now()
        )
        if entry is not None:
            return Affected(await asyncio.to_thread(self._federation.write, entry, bound.frame))
        written = 0
        for piece in bound.frame.iter_slices(_PIECE_ROWS):
            receipt = await (
                await self._intake.submit_to(
                    layout, piece, size=int(piece.estimated_size()), told=True
                )
            )
            session.notices.extend(receipt.notices)
            written += receipt.rows
        return Affected(written)

    async def _delete(self, statement: st.Delete, session: Session) -> Affected:
        home = self._home(statement, statement.table, session)
        layout, child = await self._find(home, statement, statement.table)
        self._pointing(statement, statement.table, lambda: refuse_virtual(layout))
        if layout.replicated:
            hint = "rows of a stream table go by its retention; DROP TABLE removes all"
            raise statement.error(
                f"rows of {layout.table} are not deleted one by one",
                statement.table,
                code="E_STREAM_TABLE",
                hint=hint,
            )
        now = self._clock.now() * TICKS_PER_SECOND[layout.precision] // 10**9
        wanted = deleting.bounds(statement, layout, times.zone(session.timezone), now)
        tables = wanted.tables
        if layout.plain:
            tables = (layout.table,) if tables is None or layout.table in tables else ()
        elif child is not None:
            tables = (child,) if tables is None or child in tables else ()
        if tables == () or wanted.low > wanted.high:
            return Affected(0)
        where = await asyncio.to_thread(
            self._definer.delete_rows, layout, tables, wanted.low, wanted.high
        )
        for at, offset in where.items():
            self._publisher.acked[at] = max(offset, self._publisher.acked.get(at, 0))
        return Affected(0)

    # ---------------------------------------------------------------- defining

    async def _define(self, statement: st.Statement, session: Session) -> Affected:
        told = {
            "user": session.user,
            "kind": type(statement).__name__,
            "sql": hidden(statement.text)[:2000],
            "database": session.database,
        }
        audit.write("ddl", remote=session.remote, **told)
        try:
            after = await self._definer.run(
                lambda: self._definitions.apply(statement, session.database, session.timezone),
                session.user,
            )
        except PenstockError as error:
            audit.write("ddl failed", remote=session.remote, code=error.code, **told)
            raise
        except Elsewhere as elsewhere:
            if session.forwarded:
                raise CatalogError(
                    "the catalog changes hands at this moment",
                    code="E_LEASE_HELD",
                    hint="try again in a second",
                ) from None
            await self._forwarder.statement(
                elsewhere.address, session.user, statement.text, session.database, session.timezone
            )
            return Affected()
        if after is not None:
            await asyncio.to_thread(after)
        return Affected()

    # ---------------------------------------------------------------- names

    def _home(self, statement: st.Statement, name: st.Name, session: Session) -> Database:
        home = name.database or session.database
        if home is None:
            hint = f"write database.{name.name}, or send the request to /rest/sql/database"
            raise statement.error("which database?", name, code="E_WHICH_DATABASE", hint=hint)
        return self._pointing(statement, name, lambda: database_of(self._catalog(), home))

    async def _find(
        self, home: Database, statement: st.Statement, name: st.Name
    ) -> tuple[Layout, str | None]:
        try:
            return await self._intake.locate(home.name, name.name)
        except CatalogError as error:
            raise statement.error(error.message, name, code=error.code, hint=error.hint) from error

    @staticmethod
    def _pointing(statement: st.Statement, name: st.Name, action: Callable[[], T]) -> T:
        try:
            return action()
        except CatalogError as error:
            raise statement.error(error.message, name, code=error.code, hint=error.hint) from error


def _require_password(statement: st.AlterUser, session: Session) -> None:
    """Refuse a new password for oneself to who came with a token: whoever finds one does not get
    the account.

    Raises:
        AuthError: E_FORBIDDEN.
    """
    own = statement.password is not None and statement.name.lower() == session.user.lower()
    if own and not session.with_password and not session.forwarded:
        hint = "send user and password; a token or a session does not do"
        raise AuthError(
            "changing one's own password takes the password", code="E_FORBIDDEN", hint=hint
        )


def _plain(catalog: Catalog, need: Need) -> Object | None:
    """What a need is about, unless the name is a table's or child table's."""
    if need.kind == "stream":
        return catalog.stream(need.database, need.name)
    view = catalog.view(need.database, need.name)
    if need.kind == "view":
        return view
    if catalog.table(need.database, need.name) is not None:
        return None
    return catalog.external(need.database, need.name) or (
        catalog.table_by_id(view.target_id) if view is not None else None
    )
