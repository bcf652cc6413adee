"""One connection of the PostgreSQL wire: its messages in order, each answered before the next.

An error within the extended protocol has everything skipped until Sync, as PostgreSQL does.
Statements are run one at a time; another connection may end one by its key.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from gateway.postgres import backend, sql_states
from gateway.postgres.channel import ClientGone, PgChannel
from gateway.postgres.frontend import (
    PgBind,
    PgClose,
    PgDescribe,
    PgExecute,
    PgMessage,
    PgParse,
    PgPassword,
    PgPlain,
    PgQuery,
    read_message,
    violation,
)
from gateway.postgres.login import PgUser
from gateway.postgres.placed import PlacedError, placed, split_placed
from gateway.postgres.prepared import PgKept, PgPortal, PgPrepared
from gateway.postgres.rows_out import cells
from gateway.postgres.session import REPORTED, PgAnswer, PgSession
from gateway.postgres.statements import Columns, PgStatements, at_place, columns_of
from gateway.postgres.translate import PgStatement
from gateway.postgres.values_in import bound_values
from penstock import tuning
from penstock.auth.login import Login
from penstock.errors import AuthError, BusError, PenstockError, SqlSemanticError
from penstock.runtime import audit, log
from penstock.runtime.clock import Clock
from penstock.runtime.limits import Rate

_log = log.get("gateway.postgres")
_ROWS_AT_A_TIME = 2000


@dataclass(frozen=True)
class PgLimits:
    """Limits of each connection, from the gateway's settings."""

    message_bytes: int
    result_bytes: int
    body_seconds: float
    rate: Rate


class PgConnection:
    """Event loop only."""

    def __init__(
        self,
        channel: PgChannel,
        session: PgSession,
        user: PgUser,
        process: int,
        statements: PgStatements,
        login: Login,
        limits: PgLimits,
        clock: Clock,
    ) -> None:
        """
        Args:
            process: the number that a request to cancel names it by.
        """
        self._channel = channel
        self._session = session
        self._user = user
        self.process = process
        self.secret = secrets.randbits(32)
        self._statements = statements
        self._login = login
        self._limits = limits
        self._clock = clock
        self._kept = PgKept(limits.message_bytes, limits.result_bytes)
        self._running: asyncio.Task[None] | None = None
        self._told: dict[str, str] = {}

    def cancel(self) -> None:
        """End the statement that runs, if one does."""
        if self._running is not None:
            self._running.cancel()

    async def serve(self) -> None:
        """Answer until the client leaves. Raises ClientGone."""
        self._tell_settings()
        self._channel.write(backend.key_data(self.process, self.secret))
        self._channel.write(backend.ready(self._session.status))
        skipping = False
        while True:
            message = await self._receive()
            if message == PgPlain("X"):
                return
            if message == PgPlain("S"):
                skipping = False
                if self._session.status == "I":
                    self._kept.drop_portals()
                self._ready()
            elif not skipping:
                skipping = not await self._answer(message)
            await self._channel.drain()

    # ---------------------------------------------------------------- messages

    async def _receive(self) -> PgMessage:
        kind = await self._channel.read(1)
        async with asyncio.timeout(self._limits.body_seconds):
            length = int.from_bytes(await self._channel.read(4), "big")
            if not 4 <= length <= self._limits.message_bytes:
                raise violation(f"a message has at most {self._limits.message_bytes} bytes")
            return read_message(kind, await self._channel.read(length - 4))

    async def _answer(self, message: PgMessage) -> bool:
        """Answer a message; return whether that went well. Raises AuthError when the user may no
        longer be here.
        """
        if isinstance(message, PgQuery):
            await self._guard(self._simple(message.text))
            self._ready()
        elif isinstance(message, PgParse):
            return await self._guard(self._parse(message))
        elif isinstance(message, PgBind):
            return await self._guard(self._bind(message))
        elif isinstance(message, PgDescribe):
            return await self._guard(self._describe(message))
        elif isinstance(message, PgExecute):
            return await self._guard(self._execute(message))
        elif isinstance(message, PgClose):
            drop = self._kept.drop_statement if message.kind == "S" else self._kept.drop_portal
            drop(message.name)
            self._channel.write(backend.CLOSED)
        elif isinstance(message, PgPassword):
            raise violation("nobody has asked for a password")
        return True

    async def _guard(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do *work*, and tell its errors; return whether there were none."""
        task = asyncio.ensure_future(work)
        self._running = task
        statement: PgStatement | None = None
        try:
            async with asyncio.timeout(self._session.seconds):
                await task
            return True
        except PlacedError as placed:
            statement = placed.statement
            error = placed.error
        except PenstockError as plain:
            if plain.code == AuthError.code:
                raise
            error = plain
        except TimeoutError:
            error = SqlSemanticError(
                "the statement takes longer than statement_timeout", code="E_TIMEOUT"
            )
        except asyncio.CancelledError:
            here = asyncio.current_task()
            if here is None or here.cancelling():
                raise
            error = SqlSemanticError("the statement was cancelled", code="E_CANCELLED")
        except ClientGone:
            raise
        except Exception:
            _log.exception("a statement found a bug")
            error = BusError(
                "this is a bug in the gateway; its log has the details", code="E_INTERNAL"
            )
        finally:
            self._running = None
        self._tell_error(error, statement)
        return False

    def _tell_error(self, error: PenstockError, statement: PgStatement | None) -> None:
        if error.code == "E_FORBIDDEN":
            audit.note_refusal(self._session.user, self._session.remote, error)
        if self._session.status == "T":
            self._session.status = "E"
        position = at_place(error, statement) if statement is not None else 0
        self._channel.write(backend.notices(b"E", sql_states.error_fields(error, position)))

    def _ready(self) -> None:
        self._tell_settings()
        self._channel.write(backend.ready(self._session.status))

    def _tell_settings(self) -> None:
        """Tell those settings that clients follow and that have changed."""
        for name, spelled in REPORTED.items():
            value = self._session.value(name) or ""
            if self._told.get(name) != value:
                self._told[name] = value
                self._channel.write(backend.parameter_status(spelled, value))

    def _require_user(self) -> None:
        """Raise AuthError when the user is gone, or has another password or an old token."""
        expires = self._user.expires
        if expires is not None and expires <= self._clock.now() // 10**9:
            raise AuthError("the token has expired", hint="connect again with a new one")
        self._login.still(self._user.name, self._user.mark)
        self._limits.rate.spend(self._user.name)

    # ---------------------------------------------------------------- the simple protocol

    async def _simple(self, text: str) -> None:
        self._kept.drop_statement("")
        self._kept.drop_portal("")
        found = split_placed(text)
        if not found:
            self._channel.write(backend.EMPTY)
        for statement in found:
            answer = await self._run(statement, ())
            if answer.table is not None:
                columns = columns_of(answer.table)
                forms = (0,) * len(columns)
                self._channel.write(backend.row_description(columns, forms))
                await self._send_rows(answer, columns, forms, 0, answer.table.num_rows)
            self._complete(answer)

    async def _run(self, statement: PgStatement, values: Any) -> PgAnswer:
        self._require_user()
        if statement.first_word == "DEALLOCATE":
            return self._deallocate(statement)
        if statement.theirs.upper().split() == ["DISCARD", "ALL"]:
            self._kept.drop_statements()
        told: list[str] = []
        answer = await placed(
            statement,
            self._statements.run(statement, self._session, self.process, values, told),
        )
        for words in told:
            fields = {"S": "NOTICE", "V": "NOTICE", "C": "00000", "M": words}
            self._channel.write(backend.notices(b"N", fields))
        return answer

    def _deallocate(self, statement: PgStatement) -> PgAnswer:
        name = statement.theirs.split()[-1]
        if name.upper() == "ALL":
            self._kept.drop_statements()
        else:
            self._kept.drop_statement(name.strip('"') if '"' in name else name.lower())
        return PgAnswer(None, "DEALLOCATE")

    def _complete(self, answer: PgAnswer) -> None:
        rows = answer.table.num_rows if answer.table is not None else 0
        self._channel.write(backend.complete(answer.tag or f"SELECT {rows}"))

    async def _send_rows(
        self, answer: PgAnswer, columns: Columns, forms: Any, start: int, end: int
    ) -> None:
        """Send rows [start, end) of an answer, some at a time."""
        table = answer.table
        assert table is not None
        zone = self._session.timezone

        def render(at: int, count: int) -> bytes:
            some = table.slice(at, count)
            if not columns:
                return backend.empty_rows(some.num_rows)
            pairs = zip(some.columns, columns, forms, strict=True)
            return backend.data_rows([cells(c, kind, form, zone) for c, (_, kind), form in pairs])

        for at in range(start, end, _ROWS_AT_A_TIME):
            count = min(_ROWS_AT_A_TIME, end - at)
            if count * len(columns) < tuning.CELLS_RENDERED_IN_LOOP:
                data = render(at, count)
            else:
                data = await asyncio.to_thread(render, at, count)
            self._channel.write(data)
            await self._channel.drain()

    # ---------------------------------------------------------------- the extended protocol

    async def _parse(self, message: PgParse) -> None:
        found = split_placed(message.text)
        if len(found) > 1:
            raise SqlSemanticError(
                "a prepared statement is one statement", code="E_SEVERAL_STATEMENTS"
            )
        size = len(message.text) + 8 * len(message.types)
        prepared = PgPrepared(found[0] if found else None, message.types, size)
        self._kept.add_statement(message.name, prepared)
        self._channel.write(backend.PARSED)

    async def _bind(self, message: PgBind) -> None:
        prepared = self._kept.statement(message.statement)
        oids: tuple[int, ...] = ()
        if prepared.statement is not None and message.values:
            oids = self._oids(prepared)
        values = bound_values(message, oids)
        size = sum(len(v) for v in message.values if v is not None)
        portal = PgPortal(prepared, values, message.result_formats, size)
        self._kept.add_portal(message.portal, portal)
        self._channel.write(backend.BOUND)

    def _oids(self, prepared: PgPrepared) -> tuple[int, ...]:
        if prepared.description is not None:
            return prepared.description.oids
        assert prepared.statement is not None
        return self._statements.parameters(prepared.statement, self._session, prepared.declared)

    async def _describe(self, message: PgDescribe) -> None:
        if message.kind == "P":
            portal = self._kept.portal(message.name)
            await self._fill(portal)
            answer = portal.answer
            if answer is None or answer.table is None:
                self._channel.write(backend.NO_DATA)
            else:
                self._channel.write(backend.row_description(portal.columns, portal.formats))
            return
        prepared = self._kept.statement(message.name)
        if prepared.statement is None:
            self._channel.write(backend.parameter_description(()) + backend.NO_DATA)
            return
        if prepared.description is None:
            self._require_user()
            prepared.description = await placed(
                prepared.statement,
                self._statements.describe(
                    prepared.statement, self._session, self.process, prepared.declared
                ),
            )
        prepared.told = True
        told = prepared.description
        self._channel.write(backend.parameter_description(told.oids))
        if told.columns is None:
            self._channel.write(backend.NO_DATA)
        else:
            forms = (0,) * len(told.columns)
            self._channel.write(backend.row_description(told.columns, forms))

    async def _fill(self, portal: PgPortal) -> None:
        """Run a portal's statement, unless that was done."""
        statement = portal.prepared.statement
        if portal.answer is not None or statement is None:
            return
        answer = await self._run(statement, portal.values)
        if answer.table is not None:
            columns = columns_of(answer.table)
            told = portal.prepared.description if portal.prepared.told else None
            if told is not None and told.columns is not None and len(told.columns) == len(columns):
                columns = told.columns
            portal.columns = columns
            portal.formats = _each_format(portal.formats, len(columns))
        portal.answer = answer
        self._kept.require_held()

    async def _execute(self, message: PgExecute) -> None:
        portal = self._kept.portal(message.portal)
        if portal.prepared.statement is None:
            self._channel.write(backend.EMPTY)
            return
        await self._fill(portal)
        answer = portal.answer
        assert answer is not None
        if answer.table is None:
            self._complete(answer)
            return
        total = answer.table.num_rows
        end = min(portal.sent + message.most, total) if message.most else total
        await self._send_rows(answer, portal.columns, portal.formats, portal.sent, end)
        count = end - portal.sent
        portal.sent = end
        if message.most and count == message.most:
            self._channel.write(backend.SUSPENDED)
        else:
            self._channel.write(backend.complete(answer.tag or f"SELECT {count}"))


def _each_format(formats: Any, count: int) -> tuple[int, ...]:
    """Return the format of each of so many columns. Raises SqlSemanticError."""
    if len(formats) in (0, 1):
        return (formats[0] if formats else 0,) * count
    if len(formats) != count:
        raise SqlSemanticError(
            f"there are {len(formats)} formats for {count} columns", code="E_PARAMETER"
        )
    return tuple(formats)
