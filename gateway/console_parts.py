"""What the console asks for beside statements and rows, put together: sessions, checks of
statements, health, counters, the audit trail, logs, and rows as they come. Public like all that the
gateway answers.
"""

from __future__ import annotations

from aiohttp import web

from gateway.audit_trail import AuditRoutes
from gateway.backends import Backends
from gateway.check import CheckRoutes
from gateway.dead_letters import DeadLetterReader
from gateway.follow import FollowSocket
from gateway.guard import RequestGuard
from gateway.health import HealthRoutes
from gateway.information.streams import StreamLists
from gateway.information.viewer import Viewer
from gateway.logs import LogRoutes
from gateway.sessions import Sessions
from gateway.settings import GatewaySettings
from gateway.statements.checking import StatementChecker
from gateway.stream_counters import CounterRoutes, StreamSampler
from penstock.auth.access import Access
from penstock.auth.cookies import CookieSessions
from penstock.auth.login import Login
from penstock.runtime import tls
from penstock.runtime.clock import Clock


class ConsoleParts:
    """One per process."""

    def __init__(
        self,
        settings: GatewaySettings,
        backends: Backends,
        access: Access,
        login: Login,
        checker: StatementChecker,
        clock: Clock,
    ) -> None:
        self._backends = backends
        self._access = access
        self._checker = checker
        self._clock = clock
        self._audit_log = settings.audit_log
        self._secure = settings.tls_cert is not None
        self.login = login
        self.cookies = CookieSessions(backends.redis, login, clock)
        everything = self._viewer_of(settings.user)
        self._sampler = StreamSampler(lambda: StreamLists(everything).streams(), clock)
        self.follow = FollowSocket(
            settings.notifier_url,
            tls.client(settings.tls_ca),
            self._sampler,
            self._viewer_of,
            login,
        )

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        backends = self._backends
        letters = DeadLetterReader(
            backends.admin, backends.bootstrap, backends.client_id("letters")
        )
        parts = (
            Sessions(
                self.login,
                self.cookies,
                self._viewer_of,
                backends.redis,
                secure=self._secure,
            ),
            CheckRoutes(self._checker),
            CounterRoutes(self._sampler, self._viewer_of),
            AuditRoutes(self._access, self._audit_log),
            LogRoutes(self._access, backends.redis, self._clock),
            HealthRoutes(self._sampler, self._viewer_of, letters.count, self._clock),
            self.follow,
        )
        return [route for part in parts for route in part.routes(guard)]

    def _viewer_of(self, user: str) -> Viewer:
        return Viewer(self._backends.catalog, self._backends.redis, self._access, user)
