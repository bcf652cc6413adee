"""Admission of clients of `/ws`.

Programs send `Authorization`. A page cannot: it offers its token as a subprotocol, or offers
`penstock` and sends the token in its first message, or has the console's cookie. All three count
only on pages of a listed origin. A connection ends with the token or cookie that it came with.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie

from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.typing import Subprotocol

from penstock.auth.cookies import COOKIE, CookieSessions
from penstock.auth.login import Login, is_token
from penstock.auth.tokens import looks_like_one
from penstock.errors import AuthError, OverloadError, PenstockError
from penstock.runtime import log

_log = log.get("services.notifier.admission")
PROTOCOL = Subprotocol("penstock")
#: in front of a token among the subprotocols that a page offers
_BEARER = "bearer."
#: connections that may be waiting for their first message, the login
MOST_WAITING = 64
#: how often tokens and sessions of browsers are looked at
SESSION_CHECK_S = 5.0


@dataclass(frozen=True)
class HubCaller:
    """The user of a connection.

    Attributes:
        cookie: that a browser came with, if it had nothing else; the connection ends with it.
        token: header that the client came with, if it had a token; the connection ends with it.
    """

    user: str
    cookie: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)

    @property
    def ends(self) -> bool:
        """True when the connection ends by itself; one with a password stays open."""
        return self.cookie is not None or self.token is not None


class HubAdmission:
    """One per notifier. Event loop only."""

    def __init__(
        self,
        login: Login,
        sessions: CookieSessions,
        origins: Sequence[str],
        login_seconds: float,
    ) -> None:
        """
        Args:
            origins: pages that browsers may connect from.
            login_seconds: how long a page may take for the message that logs it in.
        """
        self._login = login
        self._sessions = sessions
        self._origins = origins
        self._login_seconds = login_seconds
        self._waiting = 0

    async def of_handshake(self, headers: Headers, remote: str) -> HubCaller | None:
        """Return who connects; None for a page that will say it in its first message.

        Raises:
            AuthError: the page is of another origin, or nothing that came is good.
            OverloadError: too many have to say yet who they are, or guess.
        """
        origin = headers.get("Origin")
        if origin is not None and origin not in self._origins:
            raise AuthError(
                "pages of this origin may not connect; see PENSTOCK_NOTIFIER_ORIGINS",
                code="E_ORIGIN",
            )
        given = headers.get("Authorization")
        if given is not None or origin is None:
            user = await self._login.admit(given, where=remote)
            return HubCaller(user, token=given if given and is_token(given) else None)
        return await self._of_page(headers, remote)

    async def _of_page(self, headers: Headers, remote: str) -> HubCaller | None:
        offered = _offered(headers)
        token = next((one for one in offered if one.startswith(_BEARER)), None)
        if token is not None:
            return await self._by_token(token.removeprefix(_BEARER), remote)
        if PROTOCOL in offered:
            if self._waiting >= MOST_WAITING:
                raise OverloadError("too many connections have not logged in yet")
            return None
        cookie = _cookie_of(headers)
        if cookie is None:
            return HubCaller(await self._login.admit(None, where=remote))  # raises: there is none
        user, _ = await asyncio.to_thread(self._sessions.user_of, cookie)
        return HubCaller(user, cookie)

    async def of_first_message(self, connection: ServerConnection, remote: str) -> HubCaller | None:
        """Return who a page says it is for, or None when it does not: then the connection is
        closed.
        """
        self._waiting += 1
        try:
            async with asyncio.timeout(self._login_seconds):
                text = await connection.recv()
            caller = await self._by_token(_token_in(text), remote)
        except TimeoutError:
            await connection.close(CloseCode.POLICY_VIOLATION, "no login came")
        except ConnectionClosed:
            pass  # it left without logging in
        except PenstockError as error:
            with contextlib.suppress(ConnectionClosed):
                told = {"id": "", "type": "error", **error.to_dict()}
                await connection.send(json.dumps(told))
            await connection.close(CloseCode.POLICY_VIOLATION, error.code)
        else:
            await connection.send(json.dumps({"type": "logged_in", "user": caller.user}))
            return caller
        finally:
            self._waiting -= 1
        return None

    async def watch(self, connection: ServerConnection, caller: HubCaller) -> None:
        """Close the connection once its caller's token or session has ended."""
        while True:
            await asyncio.sleep(SESSION_CHECK_S)
            try:
                if caller.token is not None:
                    self._login.require_current(caller.token)
                elif caller.cookie is not None:
                    await asyncio.to_thread(self._sessions.user_of, caller.cookie)
            except AuthError as ended:
                await connection.close(CloseCode.POLICY_VIOLATION, ended.message)
                return
            except PenstockError as later:
                _log.info("a session cannot be looked at now", reason=later.message)

    async def _by_token(self, token: str, remote: str) -> HubCaller:
        if not looks_like_one(token):
            raise AuthError("this is no token", hint="POST /v1/tokens gives one")
        header = f"Bearer {token}"
        return HubCaller(await self._login.admit(header, where=remote), token=header)


def choose_protocol(_: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """Choose the only subprotocol there is; clients may do without."""
    return PROTOCOL if PROTOCOL in offered else None


def _offered(headers: Headers) -> list[str]:
    """Return the subprotocols that a client offers."""
    lists = headers.get_all("Sec-WebSocket-Protocol")
    return [name.strip() for names in lists for name in names.split(",")]


def _cookie_of(headers: Headers) -> str | None:
    """Return the console's cookie."""
    for text in headers.get_all("Cookie"):
        with contextlib.suppress(CookieError):
            found = SimpleCookie(text).get(COOKIE)
            if found is not None and found.value:
                return found.value
    return None


def _token_in(text: str | bytes) -> str:
    """Return the token of `{"action": "login", "token": "…"}`. Raises AuthError."""
    try:
        sent = json.loads(text)
    except (ValueError, RecursionError):
        sent = None
    if not isinstance(sent, dict) or sent.get("action") != "login":
        raise AuthError("the first message has to log in", hint='{"action": "login", "token": "…"}')
    return str(sent.get("token", ""))
