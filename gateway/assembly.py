"""The parts of a gateway, put together: what is made from which settings, and which routes its HTTP
server has. Nothing here starts or stops; see `app.py`.
"""

from __future__ import annotations

import asyncio
from importlib.metadata import PackageNotFoundError, version

from aiohttp import web

from gateway.api.routes import ApiDocuments
from gateway.backends import Backends
from gateway.children import Children
from gateway.console.routes import Console
from gateway.console_parts import ConsoleParts
from gateway.ddl.assembly import DdlParts
from gateway.dead_letters import DeadLetterReader
from gateway.forward import Forwarder, internal_token
from gateway.forwarded import ForwardedDefinitions
from gateway.guard import RequestGuard
from gateway.information.schema import Information
from gateway.ingest import RowRoutes
from gateway.intake import WriteIntake
from gateway.latest import LatestRoutes
from gateway.postgres.catalog_answers import CatalogAnswers
from gateway.postgres.server import PostgresServer
from gateway.postgres.statements import PgStatements
from gateway.registry.levels import SubjectLevels
from gateway.registry.routes import SchemaRegistryRoutes
from gateway.registry.subjects import VisibleSubjects
from gateway.rest import SqlRoutes
from gateway.select import StoreClient
from gateway.settings import GatewaySettings
from gateway.statements.checking import StatementChecker
from gateway.statements.executor import Executor
from gateway.statements.permissions import Permissions
from gateway.statements.queries import ReadStatements
from gateway.statements.resolution import NameResolver
from gateway.statements.shows import ShowStatements
from gateway.statements.writes import WriteStatements
from gateway.tokens import TokenRoutes
from gateway.websocket import Socket
from gateway.wires.assembly import WireParts
from gateway.wires.point_writer import PointWriter
from gateway.wires.tdengine.assembly import TdengineParts
from gateway.write_path import WritePath
from penstock.auth.access import Access
from penstock.auth.login import Login
from penstock.runtime import tls
from penstock.runtime.clock import SystemClock
from penstock.runtime.connections import prepare
from penstock.runtime.health import Health
from penstock.runtime.limits import Open, Rate, Turns


class GatewayParts:
    """One per process; the attributes are what is started, watched and stopped."""

    def __init__(
        self, settings: GatewaySettings, health: Health, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._settings = settings
        self._clock = SystemClock()
        self.backends = Backends(settings, health, self._clock)
        self._access = Access(self.backends.catalog, settings.user)
        children = Children(self.backends.redis)
        self.writes = WritePath(settings, self.backends, loop, self._clock)
        self.ddl = DdlParts(
            settings,
            self.backends,
            self._access,
            children,
            self.writes.publisher.confirmed.note_own,
            loop,
            self._clock,
        )
        self._intake = WriteIntake(
            self.writes.publisher,
            children,
            self.writes.ledger,
            self.backends.catalog,
            self._access,
            self.ddl.stream_tables.write,
            self.ddl.foreign_topics.write,
        )
        self.store = _store(settings)
        self.forwarder = Forwarder(
            self.backends.reader,
            internal_token(settings.root_password),
            self.writes.publisher.confirmed.note_own,
            tls.client(settings.tls_ca),
        )
        self.socket = Socket(self._intake, settings.window, settings.max_body)
        self._executor, checker = self._make_statements()
        rights = self.ddl.kafka_rights
        login = Login(
            self.backends.catalog,
            settings.user,
            settings.root_password,
            self._clock,
            settings.signing_key,
            learn=rights.learn if rights is not None else None,
        )
        self.console = ConsoleParts(
            settings, self.backends, self._access, login, checker, self._clock
        )

    def application(self) -> web.Application:
        """Return the HTTP server's routes."""
        settings = self._settings
        backends = self.backends
        login = self.console.login
        guard = RequestGuard(
            login,
            self.console.cookies,
            settings.allowed_origins,
            Rate(settings.max_requests_per_second, self._clock),
            Open(settings.max_open_per_address),
        )
        about: dict[str, str | bool] = {
            "version": _version(),
            "notifier_url": settings.notifier_url,
            "store_url": settings.store_url,
            "federation_url": settings.federation_url,
            "kafka_bootstrap": settings.kafka_bootstrap,
            "kafka_security": settings.kafka_security,
            "kafka_users": settings.kafka_users,
        }
        wires = self._make_wires()
        app = prepare(web.Application(client_max_size=settings.max_body))
        app.on_shutdown.append(wires.close)
        for part in (
            SqlRoutes(self._executor, login, self._clock, about),
            RowRoutes(self._intake, settings.max_body),
            self.ddl.stream_tables,
            LatestRoutes(self._intake, backends.redis),
            self.socket,
            wires,
            self._make_registry(),
            self.ddl.drain,
            TokenRoutes(login, self._executor),
            ApiDocuments(_version()),
            self.console,
            Console(),
        ):
            app.router.add_routes(part.routes(guard))
        forwarded = ForwardedDefinitions(self._executor, self.ddl.definer)
        app.router.add_routes(self.forwarder.routes(forwarded.run))
        return app

    def postgres(self) -> PostgresServer | None:
        """Return the port of the PostgreSQL wire; None: the settings do not want it."""
        if not self._settings.postgres:
            return None
        settings = self._settings
        turns = Turns(settings.max_queries_per_user, settings.max_waiting_queries)
        catalogs = CatalogAnswers(self.backends.catalog, self._access, turns)
        return PostgresServer(
            settings,
            PgStatements(self._executor, catalogs, self.backends.catalog, self._access),
            self.console.login,
            self._clock,
            tls.server(settings),
        )

    def _make_wires(self) -> WireParts:
        writer = PointWriter(
            self._intake, self.ddl.definer, self.forwarder, self._access, self._clock
        )
        return WireParts(
            writer,
            self._executor,
            self.backends.catalog,
            self._access,
            self._clock,
            self._settings.max_body,
            TdengineParts(
                self._executor,
                self._intake,
                writer,
                self.console.login,
                self._settings.max_body,
                self._settings.max_result_bytes,
            ),
        )

    def _make_registry(self) -> SchemaRegistryRoutes:
        catalog = self.backends.catalog
        return SchemaRegistryRoutes(
            VisibleSubjects(catalog, self._access),
            SubjectLevels(catalog, self._access, self.ddl.definer, self.forwarder),
        )

    def _make_statements(self) -> tuple[Executor, StatementChecker]:
        """Return what runs statements, and what only looks at them."""
        backends = self.backends
        names = NameResolver(backends.catalog, self._intake)
        letters = DeadLetterReader(
            backends.admin, backends.bootstrap, backends.client_id("letters")
        )
        information = Information(
            backends.catalog, backends.redis, _version(), self._access, letters=letters.read
        )
        queries = ReadStatements(
            backends.catalog,
            names,
            self.store,
            self.writes.publisher,
            information,
            self.ddl.streams,
            self.ddl.definer.topics,
        )
        writes = WriteStatements(
            backends.catalog,
            names,
            self._intake,
            self.ddl.remote_insert,
            queries,
            self.ddl.removal,
            self.writes.publisher,
            self._clock,
        )
        permissions = Permissions(self._access, backends.catalog, self._intake)
        executor = Executor(
            backends.catalog,
            permissions,
            queries,
            writes,
            self.ddl.definer,
            self.ddl.definitions,
            ShowStatements(names, queries, information),
            self.forwarder,
        )
        checker = StatementChecker(backends.catalog, permissions, queries, writes, self.ddl.streams)
        return executor, checker


def _store(settings: GatewaySettings) -> StoreClient:
    return StoreClient(
        settings.store_url,
        settings.user,
        settings.root_password,
        max_rows=settings.max_result_rows,
        max_bytes=settings.max_result_bytes,
        timeout=settings.query_timeout,
        turns=Turns(settings.max_queries_per_user, settings.max_waiting_queries),
        ca=settings.tls_ca,
    )


def _version() -> str:
    try:
        return version("penstock")
    except PackageNotFoundError:
        return "0"
