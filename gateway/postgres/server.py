"""The port of the PostgreSQL wire: admits connections, finds out whose they are, and ends them."""

from __future__ import annotations

import asyncio
import secrets
import ssl
from typing import cast

from gateway.postgres import backend, sql_states
from gateway.postgres.channel import ClientGone, PgChannel
from gateway.postgres.connection import PgConnection, PgLimits
from gateway.postgres.login import PgCancel, PgStartup, ask_password, begin, log_in, settings_of
from gateway.postgres.session import PgSession
from gateway.postgres.statements import PgStatements
from gateway.postgres.translate import CATALOG
from gateway.settings import GatewaySettings
from penstock.auth.login import Login
from penstock.errors import BusError, CatalogError, PenstockError, SqlError
from penstock.runtime import log
from penstock.runtime.clock import Clock
from penstock.runtime.connections import Connections
from penstock.runtime.limits import Rate

_log = log.get("gateway.postgres")
#: names of no database that clients connect to by default: all databases are schemas there
_NO_DATABASE = (CATALOG, "postgres", "template1")
_MINOR = 0


class PostgresServer:
    """Event loop only."""

    def __init__(
        self,
        settings: GatewaySettings,
        statements: PgStatements,
        login: Login,
        clock: Clock,
        context: ssl.SSLContext | None,
    ) -> None:
        """
        Args:
            context: of the service; None: it has no TLS.
        """
        self._settings = settings
        self._statements = statements
        self._login = login
        self._clock = clock
        self._context = context
        self._limits = PgLimits(
            settings.max_body,
            settings.max_result_bytes,
            settings.body_seconds,
            Rate(settings.max_requests_per_second, clock),
        )
        self._connections = Connections(settings, refuse=_refuse)
        self._open: dict[int, PgConnection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """Return the port that is listened at."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self) -> None:
        """Listen. Raises OSError: the port is taken."""
        self._server = await asyncio.get_running_loop().create_server(
            lambda: PgChannel(self._connections, self._begin),
            self._settings.host,
            self._settings.postgres_port,
            reuse_address=True,
        )

    async def stop(self) -> None:
        """Listen no more, and end all connections."""
        if self._server is not None:
            self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._statements.close()

    def _begin(self, channel: PgChannel) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._serve(channel))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _serve(self, channel: PgChannel) -> None:
        """Serve a connection to its end; errors that end it are told to its client."""
        try:
            await self._talk(channel)
        except (ClientGone, asyncio.CancelledError):
            pass  # it has left, or the gateway stops
        except TimeoutError:
            _log.debug("a client was too slow", remote=channel.remote)
        except PenstockError as error:
            _tell_end(channel, error)
        except Exception:
            _log.exception("a connection found a bug")
            _tell_end(channel, BusError("this is a bug in the gateway", code="E_INTERNAL"))
        finally:
            channel.close()

    async def _talk(self, channel: PgChannel) -> None:
        seconds = self._settings.header_seconds
        # what has not said who it is has little time
        async with asyncio.timeout(seconds):
            wanted = await begin(channel, self._context, seconds, self._settings.trusted_networks)
            if isinstance(wanted, PgCancel):
                self._cancel(wanted)
                return
            name = wanted.options.get("user", "")
            password = await ask_password(channel)
        user = await log_in(self._login, name, password, channel.remote)
        session = PgSession(user.name, channel.remote, user.expires is None)
        self._connect(session, wanted, name)
        if wanted.minor > _MINOR:
            unknown = [option for option in wanted.options if option.startswith("_pq_.")]
            channel.write(backend.older_protocol(_MINOR, unknown))
        channel.write(backend.LOGGED_IN)
        connection = PgConnection(
            channel,
            session,
            user,
            self._free_number(),
            self._statements,
            self._login,
            self._limits,
            self._clock,
        )
        self._open[connection.process] = connection
        try:
            await connection.serve()
        finally:
            del self._open[connection.process]

    def _connect(self, session: PgSession, wanted: PgStartup, name: str) -> None:
        """Find the database that a client names, and take its settings. Raises PenstockError."""
        asked = wanted.options.get("database") or name
        found = self._statements.seen_by(session.user).database(asked)
        if found is not None:
            session.connected_to = session.database = found.name
        elif asked.lower() in (*_NO_DATABASE, name.lower()):
            session.connected_to = asked
        else:
            raise CatalogError(
                f'there is no database "{asked[:64]}"',
                code="E_NO_DATABASE",
                hint=f"connect to {CATALOG}: databases are schemas there",
            )
        session.begin(settings_of(wanted.options))

    def _cancel(self, wanted: PgCancel) -> None:
        """End a statement of another connection, by its key."""
        connection = self._open.get(wanted.process)
        if connection is not None and secrets.compare_digest(
            connection.secret.to_bytes(4, "big"), wanted.secret.to_bytes(4, "big")
        ):
            connection.cancel()

    def _free_number(self) -> int:
        """Return a number that no connection has."""
        while (number := secrets.randbelow(2**31 - 1) + 1) in self._open:
            pass
        return number


def _tell_end(channel: PgChannel, error: PenstockError) -> None:
    if not isinstance(error, SqlError) and error.code not in ("E_AUTH", "E_BODY", "E_OVERLOAD"):
        _log.info("a connection was refused", remote=channel.remote, code=error.code)
    channel.write(backend.notices(b"E", sql_states.error_fields(error, severity="FATAL")))


def _refuse(transport: asyncio.BaseTransport, message: str, hint: str) -> None:
    """Answer a connection that is one too many, and close it."""
    fields = {"S": "FATAL", "V": "FATAL", "C": "53300", "M": message, "H": hint}
    refused = cast(asyncio.Transport, transport)
    refused.write(backend.notices(b"E", fields))
    refused.close()
