"""Actions of a connection: version, login, its database and its time zone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.wires.tdengine.frames import ActionRequest, Reply
from gateway.wires.tdengine.session import WireSession
from penstock.client.gateway import authorization
from penstock.errors import PenstockError, SchemaError
from penstock.sql.functions.query import SPOKEN_VERSION

#: clients compare its numbers, and not all of them take words behind them
VERSION = SPOKEN_VERSION.partition(" ")[0]
_BI_MODE = 0
_CLEAR = -1
_TIMEZONE = 1


class ConnectionActions:
    """Those of one connection; `BEFORE_LOGIN` names what anybody may ask."""

    BEFORE_LOGIN = frozenset(("version", "conn"))

    def __init__(self, session: WireSession) -> None:
        self._session = session

    def handlers(self) -> Mapping[str, Any]:
        return {
            "version": self._tell_version,
            "conn": self._connect,
            "get_current_db": self._tell_database,
            "get_server_info": self._tell_server,
            "options_connection": self._set_options,
        }

    async def _tell_version(self, request: ActionRequest) -> Reply:
        return request.answer(version=VERSION)

    async def _connect(self, request: ActionRequest) -> Reply:
        _refuse_what_is_not_there(request)
        token = request.text("bearer_token", "")
        user = request.text("user", "")
        password = request.text("password", "")
        database = request.text("db", "")
        tz = request.text("tz", "")
        session = self._session
        # a client whose URL or header logged it in may connect without saying it again
        own = bool(token or user or not session.user)
        if own:
            await session.log_in(authorization(user, password, token or None))
        try:
            session.set_timezone(tz)
            if database:
                await session.use(database)
        except PenstockError:
            if own:
                session.log_out()
            raise
        more: dict[str, Any] = (
            {"list_instances": []} if request.args.get("list_instances") is True else {}
        )
        return request.answer(version=VERSION, **more)

    async def _tell_database(self, request: ActionRequest) -> Reply:
        return request.answer(db=self._session.database or "")

    async def _tell_server(self, request: ActionRequest) -> Reply:
        return request.answer(info=VERSION)

    async def _set_options(self, request: ActionRequest) -> Reply:
        """Set the time zone; other options change nothing here."""
        for option in request.items("options"):
            if not isinstance(option, dict):
                raise SchemaError('"options" holds no objects', code="E_BODY")
            value = option.get("value")
            if option.get("option") == _CLEAR:
                self._session.set_timezone("UTC")
            elif option.get("option") == _TIMEZONE:
                self._session.set_timezone(value if isinstance(value, str) else "UTC")
        return request.answer()


def _refuse_what_is_not_there(request: ActionRequest) -> None:
    """Raise SchemaError where a client asks for other modes or one-time passwords."""
    if request.args.get("mode") not in (None, _BI_MODE):
        raise SchemaError("unexpected mode", code="E_BODY", hint="leave it out")
    if request.text("totp_code", ""):
        raise SchemaError(
            "there are no one-time passwords here", code="E_BODY", hint="leave totp_code out"
        )
