"""Arrow Flight: one SELECT per ticket, after the caller's own writes have arrived.

Ticket (JSON): {"sql": …, "database": …, "timezone": "UTC", "revision": 0, "after":
{"topic:partition": offset}, "positions": false, "parameters": […] or {…}}; or the bare text of a
SELECT. `revision` is that of the catalog which the caller knows; the parameters are for the
placeholders of the SELECT, see `penstock.rows.parameters`. With `positions` the schema's metadata
says, under `penstock.positions`, up to where the log was read. Errors travel as JSON of
`PenstockError.to_dict` in the message, so that the gateway gives its caller the same code, line and
column.
`get_flight_info` takes a SELECT, bare or as a command of Flight SQL, and gives such a ticket. Every
call needs `authorization: Basic …` or `Bearer …` of some user, and READ on each table of the query.
Gateways come as root, having asked for their caller's rights themselves.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from urllib.parse import unquote

import pyarrow.flight as flight

from penstock.auth.access import Access
from penstock.auth.login import Login
from penstock.catalog.model import Table
from penstock.errors import AuthError, BusError, OverloadError, PenstockError
from penstock.rows.parameters import decode
from penstock.runtime import audit
from penstock.runtime.limits import Open
from penstock.runtime.log import get
from services.store import flightsql, prepared
from services.store.partitions import Partitions
from services.store.query import Queries

log = get(__name__)
#: stands for the address of who shakes hands
_HANDSHAKES = "handshake"
#: actions of Flight SQL
_CREATE = "CreatePreparedStatement"
_CLOSE = "ClosePreparedStatement"


class Unimplemented(NotImplementedError):
    """A call that there is not.

    Arrow sends the traceback of what a server raises to the client, except where none can be made:
    `traceback` gives up on an exception that does not tell its cause.
    """

    @property
    def __cause__(self) -> BaseException | None:  # type: ignore[override]
        raise AttributeError("not told")


class _Caller(flight.ServerMiddleware):  # type: ignore[misc]
    """What a call came with. Who sent it is asked where its peer is known, in the call itself."""

    def __init__(self, given: str, answer: str | None) -> None:
        super().__init__()
        self.given = given
        self._answer = answer

    def sending_headers(self) -> dict[str, str]:
        return {} if self._answer is None else {"authorization": self._answer}


class _Handshake(flight.ServerAuthHandler):  # type: ignore[misc]
    """Lets clients shake hands that do so before they ask; who they are is known from the header,
    there as everywhere.
    """

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        """Nothing is exchanged."""

    def is_valid(self, token: bytes) -> str:
        return ""


class _Credentials(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Takes the credentials of each call, and answers handshakes.

    A handshake does not tell its peer's address. Wrong ones are counted together, apart from those
    of calls.
    """

    def __init__(self, login: Login) -> None:
        super().__init__()
        self._login = login

    def start_call(self, info: Any, headers: Mapping[str, list[str]]) -> _Caller:
        given = next((v[0] for k, v in headers.items() if k.lower() == "authorization" and v), "")
        if info.method != flight.FlightMethod.HANDSHAKE:
            return _Caller(given, None)
        user = _admit(self._login, given, _HANDSHAKES)
        # what a handshake answers is sent along with every call from then on
        return _Caller(given, self._answer(user, given))

    def _answer(self, user: str, given: str) -> str:
        """What to send from now on: a token for who came with a password. Raises FlightError."""
        if not given.lower().startswith("basic "):
            return given
        try:
            return f"Bearer {self._login.token(user, where=_HANDSHAKES)}"
        except PenstockError as gone:
            raise flight.FlightUnauthenticatedError(f"E_AUTH: {gone.message}") from None


class StoreServer(flight.FlightServerBase):  # type: ignore[misc]
    """`do_get` answers a SELECT; `do_action("positions")` says how far every partition has been
    read.
    """

    def __init__(
        self,
        location: str,
        queries: Queries,
        partitions: Partitions,
        *,
        login: Login,
        access: Access,
        reached: Callable[[int, float], object],
        own_writes_seconds: float,
        max_queries: int = 0,
        timed: Callable[[], AbstractContextManager[object]] = nullcontext,
        **options: Any,
    ) -> None:
        """
        Args:
            reached: waits until the catalog is of a revision, for so many seconds at most
                (`CatalogReader.wait_for`).
            max_queries: of one user at a time; 0: as many as come.
            timed: what measures how long a query takes.
        """
        super().__init__(
            location,
            auth_handler=_Handshake(),
            middleware={"credentials": _Credentials(login)},
            **options,
        )
        self._login = login
        self._reached = reached
        self._access = access
        self._timed = timed
        self._open = Open(max_queries)
        self._lock = threading.Lock()
        self._queries = queries
        self._partitions = partitions
        self._patience = own_writes_seconds

    def get_flight_info(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.FlightInfo:
        """Where the rows of a query are: here, behind a ticket. The query runs when they are
        fetched, and says its schema then.
        """
        self._user(context)
        if descriptor.descriptor_type != flight.DescriptorType.CMD:
            raise Unimplemented("descriptors are commands")
        command = descriptor.command
        try:
            ticket = flightsql.ticket_of(command) if command[:1] == b"\n" else command
            request = _request(ticket)
        except NotImplementedError as error:
            raise Unimplemented(str(error)) from None
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise _bad_request(f"bad command: {error}") from None
        return flight.FlightInfo(
            None, descriptor, [flight.FlightEndpoint(_ticket(request), [])], -1, -1
        )

    def do_get(
        self, context: flight.ServerCallContext, ticket: flight.Ticket
    ) -> flight.RecordBatchStream:
        user = self._user(context)
        try:
            request = _request(ticket.ticket)
            self._await(int(request.get("revision") or 0), request.get("after") or {})
            database = request.get("database") or ""
            timezone = request.get("timezone") or "UTC"
            permit = None if user == self._access.root else lambda *what: self._permit(user, *what)
            with self._running(user), self._timed():
                table = self._queries.run(
                    request["sql"],
                    database,
                    timezone,
                    parameters=decode(request.get("parameters")),
                    positions=bool(request.get("positions")),
                    permit=permit,
                )
            return flight.RecordBatchStream(table)
        except PenstockError as error:
            if error.code == "E_FORBIDDEN":
                audit.note_refusal(user, _address(context), error)
            raise _flight_error(error) from None
        except (KeyError, ValueError, TypeError) as error:
            raise _bad_request(f"bad ticket: {error}") from None
        except flight.FlightError:
            raise
        except Exception as error:
            log.exception("query failed")
            raise flight.FlightServerError(
                json.dumps(
                    {"code": "E_INTERNAL", "message": f"query failed: {type(error).__name__}"}
                )
            ) from None

    @contextmanager
    def _running(self, user: str) -> Iterator[None]:
        """Count one more query of *user*; gateways have limits of their own. Raises
        OverloadError.
        """
        if user == self._access.root:
            yield
            return
        with self._lock:
            self._open.enter(user)
        try:
            yield
        finally:
            with self._lock:
                self._open.leave(user)

    def _permit(self, user: str, database: str, name: str, table: Table | None) -> None:
        if table is None:
            self._access.require_named(user, "READ", database, name)
        else:
            self._access.require(user, "READ", table, f"{database}.{name}")

    def _await(self, revision: int, after: Mapping[str, int]) -> None:
        """Read your own writes: wait until every definition the caller knows is here, and every
        record it names is in the tail.
        """
        hint = "try again; `penstock status` shows the lag"
        try:
            self._reached(revision, self._patience)
        except BusError as behind:
            raise OverloadError("the store is behind", detail=behind.detail, hint=hint) from None
        for place, offset in after.items():
            topic, _, partition = place.rpartition(":")
            if not self._partitions.wait_for(topic, int(partition), int(offset), self._patience):
                raise OverloadError(
                    "the store is behind",
                    detail=f"{topic}[{partition}] has not reached offset {offset}",
                    hint=hint,
                )

    def do_action(
        self, context: flight.ServerCallContext, action: flight.Action
    ) -> list[flight.Result]:
        user = self._user(context)
        if action.type == _CREATE:
            try:
                return [flight.Result(prepared.create(action.body.to_pybytes()))]
            except (ValueError, RecursionError) as error:
                raise _bad_request(f"bad action: {error}") from None
        if action.type == _CLOSE:
            return []
        if action.type != "positions":
            # drivers of Flight SQL go on without what is not implemented
            raise Unimplemented(
                json.dumps({"code": "E_REQUEST", "message": f"no action {action.type}"})
            )
        try:
            self._access.require(user, "READ", None)
        except AuthError as error:
            raise _flight_error(error) from None
        positions = {f"{t}:{p}": tail.next for (t, p), tail in self._partitions.tails().items()}
        return [flight.Result(json.dumps(positions).encode())]

    def list_actions(self, context: flight.ServerCallContext) -> list[tuple[str, str]]:
        self._user(context)
        return [
            ("positions", "next offset of every partition the store reads"),
            (_CREATE, "a SELECT with placeholders"),
            (_CLOSE, "nothing is kept of a prepared statement"),
        ]

    def list_flights(self, context: flight.ServerCallContext, criteria: bytes) -> Any:
        raise self._not_here(context, "list_flights")

    def get_schema(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> Any:
        # pyarrow sends tracebacks of its own errors here, too; there is nothing to be known about
        # who asks
        raise Unimplemented(
            json.dumps({"code": "E_REQUEST", "message": "no get_schema: do_get tells it"})
        )

    def do_put(
        self, context: flight.ServerCallContext, descriptor: Any, reader: Any, writer: Any
    ) -> None:
        """Take the values for a prepared statement."""
        self._user(context)
        if descriptor.descriptor_type != flight.DescriptorType.CMD:
            raise Unimplemented("descriptors are commands")
        try:
            writer.write(prepared.bind(descriptor.command, reader))
        except PenstockError as error:
            raise _flight_error(error) from None
        except NotImplementedError as error:
            raise Unimplemented(str(error)) from None
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise _bad_request(f"bad parameters: {error}") from None

    def do_exchange(
        self, context: flight.ServerCallContext, descriptor: Any, reader: Any, writer: Any
    ) -> None:
        raise self._not_here(context, "do_exchange")

    def _not_here(self, context: flight.ServerCallContext, call: str) -> Unimplemented:
        self._user(context)
        return Unimplemented(
            json.dumps({"code": "E_REQUEST", "message": f"no {call}: rows come over do_get"})
        )

    def _user(self, context: flight.ServerCallContext) -> str:
        """Return who makes a call; every call asks before anything else. Raises FlightError."""
        return _admit(self._login, context.get_middleware("credentials").given, _address(context))


def _admit(login: Login, given: str, where: str) -> str:
    try:
        return login.check(given, where=where)
    except AuthError as wrong:
        raise flight.FlightUnauthenticatedError(f"E_AUTH: {wrong.message}") from None
    except PenstockError as later:
        raise flight.FlightUnavailableError(f"{later.code}: {later.message}") from None


def _address(context: flight.ServerCallContext) -> str:
    """Return the peer's address: `ipv4:10.0.0.1:5000` or `ipv6:[::1]:5000` without kind and
    port.
    """
    peer = unquote(context.peer())
    return peer.partition(":")[2].rpartition(":")[0].strip("[]") or peer


def _request(ticket: bytes) -> dict[str, Any]:
    """What a ticket asks for; a bare SELECT is one, too, so that any Flight client can write it."""
    text = ticket.decode()
    request = json.loads(text) if text.lstrip().startswith("{") else {"sql": text}
    if not isinstance(request.get("sql"), str):
        raise ValueError("it has no sql")
    return dict(request)


def _ticket(request: dict[str, Any]) -> bytes:
    """Return the ticket of a query and its parameters."""
    kept = {key: request[key] for key in ("sql", "parameters") if key in request}
    return json.dumps(kept).encode()


def _bad_request(message: str) -> flight.FlightServerError:
    return flight.FlightServerError(json.dumps({"code": "E_REQUEST", "message": message}))


def _flight_error(error: PenstockError) -> flight.FlightError:
    kind = flight.FlightServerError
    if isinstance(error, OverloadError):
        kind = flight.FlightUnavailableError
    elif isinstance(error, AuthError):
        kind = flight.FlightUnauthorizedError
    return kind(json.dumps(error.to_dict()))
