"""Who makes a call over Flight: credentials in its headers, and handshakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow.flight as flight

from penstock.auth.login import Login
from penstock.errors import AuthError, PenstockError
from services.store.flight_times import reads_zones

#: stands for the address of who shakes hands
_HANDSHAKES = "handshake"
#: the header with the database of names that have none
_DATABASE = "database"
_USER_AGENT = "user-agent"


class Caller(flight.ServerMiddleware):  # type: ignore[misc]
    """What a call came with. Who sent it is asked where its peer is known, in the call itself.

    Attributes:
        given: the `authorization` header.
        database: of names that have none, when the ticket does not say one.
        reads_zones: times of answers can have a zone.
    """

    def __init__(
        self, given: str, database: str, *, answer: str | None, reads_zones: bool = True
    ) -> None:
        super().__init__()
        self.given = given
        self.database = database
        self.reads_zones = reads_zones
        self._answer = answer

    def sending_headers(self) -> dict[str, str]:
        return {} if self._answer is None else {"authorization": self._answer}


class Handshake(flight.ServerAuthHandler):  # type: ignore[misc]
    """Lets clients shake hands that do so before they ask; who they are is known from the header,
    there as everywhere.
    """

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        """Nothing is exchanged."""

    def is_valid(self, token: bytes) -> str:
        return ""


class Credentials(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Takes the credentials of each call, and answers handshakes.

    A handshake does not tell its peer's address. Wrong ones are counted together, apart from those
    of calls.
    """

    def __init__(self, login: Login) -> None:
        super().__init__()
        self._login = login

    def start_call(self, info: Any, headers: Mapping[str, list[str]]) -> Caller:
        given = _first(headers, "authorization")
        database = _first(headers, _DATABASE)
        if info.method != flight.FlightMethod.HANDSHAKE:
            zones = reads_zones(_first(headers, _USER_AGENT))
            return Caller(given, database, answer=None, reads_zones=zones)
        user = _admit(self._login, given, _HANDSHAKES)
        # what a handshake answers is sent along with every call from then on
        return Caller(given, database, answer=self._answer(user, given))

    def _answer(self, user: str, given: str) -> str:
        """What to send from now on: a token for who came with a password. Raises FlightError."""
        if not given.lower().startswith("basic "):
            return given
        try:
            return f"Bearer {self._login.token(user, where=_HANDSHAKES)}"
        except PenstockError as gone:
            raise flight.FlightUnauthenticatedError(f"E_AUTH: {gone.message}") from None


def caller_of(context: flight.ServerCallContext) -> Caller:
    """Return what a call came with."""
    caller: Caller = context.get_middleware("credentials")
    return caller


def user_of(login: Login, context: flight.ServerCallContext) -> str:
    """Return who makes a call. Raises FlightError."""
    return _admit(login, caller_of(context).given, address_of(context))


def address_of(context: flight.ServerCallContext) -> str:
    """Return the peer's address: `ipv4:10.0.0.1:5000` or `ipv6:[::1]:5000` without kind and
    port.
    """
    peer = unquote(context.peer())
    return peer.partition(":")[2].rpartition(":")[0].strip("[]") or peer


def _first(headers: Mapping[str, list[str]], name: str) -> str:
    """Return the first value of a header; "": there is none, or it is no text."""
    found = next((v[0] for k, v in headers.items() if k.lower() == name and v), "")
    return found if isinstance(found, str) else ""


def _admit(login: Login, given: str, where: str) -> str:
    try:
        return login.check(given, where=where)
    except AuthError as wrong:
        raise flight.FlightUnauthenticatedError(f"E_AUTH: {wrong.message}") from None
    except PenstockError as later:
        raise flight.FlightUnavailableError(f"{later.code}: {later.message}") from None
