"""A connection of TDengine's WebSocket: who it is, and what its statements are read with.

Its login is looked at again before each message, so a changed password, a user that is gone and an
expired token end it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway import times
from gateway.answers import Answer
from gateway.statements.context import RequestContext
from gateway.statements.executor import Executor
from penstock.auth.login import Login, is_token
from penstock.errors import AuthError, CatalogError
from penstock.rows.parameters import Parameters
from penstock.sql.words import in_backticks


@dataclass(frozen=True)
class SessionServices:
    """What all connections share."""

    executor: Executor
    login: Login


class WireSession:
    """One connection. Event loop only."""

    def __init__(self, services: SessionServices, remote: str) -> None:
        self._services = services
        self.remote = remote
        self._credentials = ""
        self._context = RequestContext(remote=remote)

    @property
    def user(self) -> str:
        """The name; empty before the login."""
        return self._context.user

    @property
    def database(self) -> str | None:
        return self._context.database

    async def log_in(self, credentials: str) -> None:
        """Become the user of *credentials*, which are as in an `Authorization` header.

        Raises:
            AuthError: they are wrong, or somebody is logged in already.
            OverloadError: too many were wrong.
        """
        if self.user:
            raise AuthError(
                "duplicate connections",
                code="E_FORBIDDEN",
                detail=f"this connection is {self.user}'s",
                hint="open another one",
            )
        user = await self._services.login.admit(credentials, where=self.remote)
        self._credentials = credentials
        self._context = replace(self._context, user=user, with_password=not is_token(credentials))

    def log_out(self) -> None:
        """Be nobody again."""
        self._credentials = ""
        self._context = RequestContext(remote=self.remote)

    async def require_login(self) -> None:
        """Raise AuthError when nobody is logged in, or may no longer be."""
        if not self.user:
            raise AuthError(
                "server not connected", hint='send {"action": "conn"} with user and password'
            )
        login = self._services.login
        if login.recall(self._credentials) is None:
            await login.admit(self._credentials, where=self.remote)

    def set_timezone(self, name: str) -> None:
        """Read and show times without a zone in this one. Raises SqlSemanticError."""
        times.zone(name)
        self._context = replace(self._context, timezone=name or "UTC")

    async def use(self, database: str) -> None:
        """Make *database* the current one. Raises PenstockError."""
        await self.run(f"USE {in_backticks(database.strip('`'))}")

    async def run(self, text: str, parameters: Parameters | None = None) -> tuple[Answer, str]:
        """Run statements; return the last one's answer, and what there is to say beside it. Raises
        PenstockError.
        """
        context = replace(self._context, parameters=parameters, notices=[])
        answer, after = await self._services.executor.run_in(text, context)
        self._context = replace(self._context, database=after.database)
        return answer, "; ".join(context.notices)

    def require_database(self) -> str:
        """Return the current database. Raises CatalogError."""
        if self.database is None:
            raise CatalogError(
                "no database is selected",
                code="E_WHICH_DATABASE",
                hint="send USE, or connect to one",
            )
        return self.database
