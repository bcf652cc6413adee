"""Arrow Flight and Flight SQL: statements and lists, for any user.

Every call needs `authorization: Basic …` or `Bearer …` of some user, and READ on each table of a
query; the header `database` says in which database names without one are. Gateways come as root,
having asked for their caller's rights themselves. With `positions` in its ticket, the schema's
metadata of an answer says under `penstock.positions` up to where the log was read.

Errors travel as JSON of `PenstockError.to_dict` in the message (`flight_errors`), so that a client
has the same code, line and column as from a gateway.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from penstock.auth.access import Access
from penstock.auth.login import Login
from penstock.errors import PenstockError
from penstock.runtime import audit
from penstock.runtime.log import get
from services.store import flight_session, flightsql, ingest, prepared
from services.store.flight_answers import FlightAnswers
from services.store.flight_errors import (
    Refused,
    Unimplemented,
    bad_request,
    flight_error,
    internal,
    unimplemented,
)
from services.store.flight_lists import FlightLists
from services.store.flight_login import (
    Caller,
    Credentials,
    Handshake,
    address_of,
    caller_of,
    user_of,
)
from services.store.flight_tickets import TicketRequest, read_ticket
from services.store.flight_times import schema_with_zone, with_zone
from services.store.flightsql import FlightCommand
from services.store.gateway_statements import GatewayStatements
from services.store.partitions import Partitions

log = get(__name__)
#: actions of Flight SQL
_CREATE = "CreatePreparedStatement"
_CLOSE = "ClosePreparedStatement"
#: commands
_QUERY = "CommandStatementQuery"
_UPDATE = "CommandStatementUpdate"


class StoreServer(flight.FlightServerBase):  # type: ignore[misc]
    """`do_get` answers a statement; `do_put` takes rows and statements that change something."""

    def __init__(
        self,
        location: str,
        answers: FlightAnswers,
        lists: FlightLists,
        gateway: GatewayStatements,
        partitions: Partitions,
        *,
        login: Login,
        access: Access,
        **options: Any,
    ) -> None:
        super().__init__(
            location,
            auth_handler=Handshake(),
            middleware={"credentials": Credentials(login)},
            **options,
        )
        self._answers = answers
        self._lists = lists
        self._gateway = gateway
        self._partitions = partitions
        self._login = login
        self._access = access

    # ---------------------------------------------------------------- rows

    def get_flight_info(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.FlightInfo:
        """Return a ticket for the rows of a statement, which are here. The statement runs when they
        are fetched, and says its schema then.
        """
        user = user_of(self._login, context)
        with _told(context, user, "command"):
            asked = _asked(context, descriptor)
            schema = None
            if isinstance(asked, FlightCommand):
                schema = self._lists.schema(self._list(asked))
                ticket = descriptor.command
            else:
                ticket = asked.to_bytes()
            return flight.FlightInfo(
                schema, descriptor, [flight.FlightEndpoint(ticket, [])], -1, -1
            )

    def get_schema(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.SchemaResult:
        """Return the schema of what a command gives."""
        try:
            user = user_of(self._login, context)
            with _told(context, user, "command"):
                asked = _asked(context, descriptor)
                if isinstance(asked, FlightCommand):
                    return flight.SchemaResult(self._lists.schema(self._list(asked)))
                schema = self._describe(context, user, asked)
                return flight.SchemaResult(pa.schema([]) if schema is None else schema)
        except flight.FlightError as error:
            # here, of all calls, pyarrow sends the tracebacks of its own errors
            raise Refused(str(error)) from None

    def do_get(
        self, context: flight.ServerCallContext, ticket: flight.Ticket
    ) -> flight.RecordBatchStream:
        user = user_of(self._login, context)
        with _told(context, user, "ticket"):
            if flightsql.is_command(ticket.ticket):
                command = self._list(flightsql.read_command(ticket.ticket))
                return flight.RecordBatchStream(self._lists.table(user, command))
            caller = caller_of(context)
            request = read_ticket(ticket.ticket).in_database(caller.database)
            rows = self._answers.rows(user, caller.given, request)
            return flight.RecordBatchStream(
                with_zone(rows) if _wants_zone(caller, request) else rows
            )

    def _describe(
        self, context: flight.ServerCallContext, user: str, request: TicketRequest
    ) -> pa.Schema | None:
        """Return the schema of what `do_get` gives for *request*."""
        caller = caller_of(context)
        schema = self._answers.describe(user, caller.given, request)
        if schema is None or not _wants_zone(caller, request):
            return schema
        return schema_with_zone(schema)

    def _list(self, command: FlightCommand) -> FlightCommand:
        """Return a command that asks for a list. Raises Unimplemented."""
        if self._lists.knows(command):
            return command
        raise unimplemented(f"{command.name} is not served")

    # ---------------------------------------------------------------- prepared statements, writes

    def do_action(
        self, context: flight.ServerCallContext, action: flight.Action
    ) -> list[flight.Result]:
        user = user_of(self._login, context)
        with _told(context, user, "action"):
            if action.type == _CREATE:
                return [flight.Result(self._prepare(context, user, action.body.to_pybytes()))]
            if action.type == _CLOSE:
                return []
            if action.type in flight_session.ACTIONS:
                database = caller_of(context).database
                body = action.body.to_pybytes()
                return [flight.Result(flight_session.answer(action.type, body, database))]
            if action.type != "positions":
                # drivers of Flight SQL go on without what is not implemented
                raise unimplemented(f"no action {action.type}")
            self._access.require(user, "READ", None)
            positions = {f"{t}:{p}": tail.next for (t, p), tail in self._partitions.tails().items()}
            return [flight.Result(json.dumps(positions).encode())]

    def _prepare(self, context: flight.ServerCallContext, user: str, body: bytes) -> bytes:
        caller = caller_of(context)
        request = TicketRequest(flightsql.prepared_query(body)).in_database(caller.database)
        parameters = self._answers.parameters(user, request)
        answer = self._describe(context, user, request)
        return prepared.created(request, answer, parameters)

    def do_put(
        self, context: flight.ServerCallContext, descriptor: Any, reader: Any, writer: Any
    ) -> None:
        """Take values for a prepared statement, a statement that changes something, or rows."""
        user = user_of(self._login, context)
        with _told(context, user, "command or rows"):
            if descriptor.descriptor_type != flight.DescriptorType.CMD:
                raise unimplemented("descriptors are commands")
            command = flightsql.read_command(descriptor.command)
            caller = caller_of(context)
            change = partial(self._answers.change, user, caller.given)
            if command.name == prepared.QUERY:
                writer.write(prepared.bind(command, reader))
            elif command.name == prepared.UPDATE:
                done = [change(request) for request in prepared.updates(command, reader)]
                writer.write(flightsql.updated(-1 if -1 in done else sum(done)))
            elif command.name == _UPDATE:
                request = TicketRequest(command.text(1) or "").in_database(caller.database)
                writer.write(flightsql.updated(change(request)))
            elif command.name == ingest.COMMAND:
                count = self._ingest(command, reader, caller.given, caller.database)
                writer.write(flightsql.updated(count))
            else:
                raise unimplemented(f"{command.name} is not served")

    def _ingest(self, command: FlightCommand, reader: Any, given: str, database: str) -> int:
        wanted = ingest.read_ingest(command, database)
        for statement in ingest.definitions(wanted, reader.schema):
            self._gateway.define(given, statement, wanted.database)
        send = partial(self._gateway.write, given, wanted.database, wanted.table)
        return ingest.write((chunk.data for chunk in reader), send)

    # ---------------------------------------------------------------- other calls

    def list_actions(self, context: flight.ServerCallContext) -> list[tuple[str, str]]:
        user_of(self._login, context)
        return [
            ("positions", "next offset of every partition the store reads"),
            (_CREATE, "a statement with placeholders"),
            (_CLOSE, "nothing is kept of a prepared statement"),
            *flight_session.ACTIONS.items(),
        ]

    def list_flights(self, context: flight.ServerCallContext, criteria: bytes) -> Any:
        raise self._not_here(context, "list_flights")

    def do_exchange(
        self, context: flight.ServerCallContext, descriptor: Any, reader: Any, writer: Any
    ) -> None:
        raise self._not_here(context, "do_exchange")

    def _not_here(self, context: flight.ServerCallContext, call: str) -> Unimplemented:
        user_of(self._login, context)
        return unimplemented(f"no {call}: rows come over do_get")


def _wants_zone(caller: Caller, request: TicketRequest) -> bool:
    """Tell whether times of an answer say that they are in UTC; services know it."""
    return caller.reads_zones and not request.from_service


def _asked(
    context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
) -> TicketRequest | FlightCommand:
    """Return the statement that a descriptor asks for, or a command for a list. Raises
    ValueError, Unimplemented.
    """
    if descriptor.descriptor_type != flight.DescriptorType.CMD:
        raise unimplemented("descriptors are commands")
    database = caller_of(context).database
    if not flightsql.is_command(descriptor.command):
        return read_ticket(descriptor.command).in_database(database)
    command = flightsql.read_command(descriptor.command)
    if command.name == _QUERY:
        return TicketRequest(command.text(1) or "").in_database(database)
    return prepared.handle_of(command) if command.name == prepared.QUERY else command


@contextmanager
def _told(context: flight.ServerCallContext, user: str, what: str) -> Iterator[None]:
    """Raise whatever goes wrong in a call as Flight tells it.

    Args:
        what: the call was given, as errors name it.
    """
    try:
        yield
    except PenstockError as error:
        if error.code == "E_FORBIDDEN":
            audit.note_refusal(user, address_of(context), error)
        raise flight_error(error) from None
    except (flight.FlightError, Unimplemented):
        raise
    except (KeyError, ValueError, TypeError, RecursionError) as error:
        raise bad_request(f"bad {what}: {error}") from None
    except Exception as error:
        log.exception("a call failed")
        raise internal(error) from None
