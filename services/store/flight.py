"""Arrow Flight: one SELECT per ticket, after the caller's own writes have arrived.

Ticket (JSON): {"sql": …, "database": …, "timezone": "UTC", "after": {"topic:partition": offset}, "positions": false}; or the bare text of a
SELECT. With `positions` the schema's metadata says, under `penstock.positions`, up to where the log was read. Errors travel as JSON of
`PenstockError.to_dict` in the message, so that the gateway gives its caller the same code, line and column.
Every call needs `authorization: Basic …` or the internal bearer token.
"""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from penstock.errors import OverloadError, PenstockError, SqlError
from penstock.log import get
from services.store.query import Queries
from services.store.shelf import Shelf

log = get(__name__)


class _Credentials(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Refuses calls without the user's password before any of them reaches the server."""

    def __init__(self, user: str, password: str) -> None:
        super().__init__()
        self._basic = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def start_call(self, info: Any, headers: Mapping[str, list[str]]) -> None:
        given = next((v[0] for k, v in headers.items() if k.lower() == "authorization" and v), "")
        if not hmac.compare_digest(given.encode(), self._basic.encode()):
            raise flight.FlightUnauthenticatedError("E_AUTH: user or password is wrong")


class StoreServer(flight.FlightServerBase):  # type: ignore[misc]
    """`do_get` answers a SELECT; `do_action("positions")` says how far every partition has been read."""

    def __init__(self, location: str, queries: Queries, shelf: Shelf, *, user: str, password: str, own_writes_seconds: float) -> None:
        super().__init__(location, middleware={"credentials": _Credentials(user, password)})
        self._queries, self._shelf, self._patience = queries, shelf, own_writes_seconds

    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.RecordBatchStream:
        try:
            request = _request(ticket.ticket)
            self._await(request.get("after") or {})
            database, timezone = request.get("database") or "", request.get("timezone") or "UTC"
            table = self._queries.run(request["sql"], database, timezone, positions=bool(request.get("positions")))
            return flight.RecordBatchStream(table)
        except PenstockError as error:
            raise _flight_error(error) from None
        except (KeyError, ValueError, TypeError) as error:
            raise flight.FlightServerError(json.dumps({"code": "E_REQUEST", "message": f"bad ticket: {error}"})) from None
        except pa.ArrowException:
            raise
        except Exception as error:
            log.exception("query failed")
            raise flight.FlightServerError(json.dumps({"code": "E_INTERNAL", "message": f"query failed: {type(error).__name__}"})) from None

    def _await(self, after: Mapping[str, int]) -> None:
        """Read your own writes: wait until every record the caller names is in the tail."""
        for place, offset in after.items():
            topic, _, partition = place.rpartition(":")
            if not self._shelf.open(topic, int(partition)).wait_for(int(offset), self._patience):
                raise OverloadError(
                    "the store is behind",
                    detail=f"{topic}[{partition}] has not reached offset {offset}",
                    hint="try again; `penstock status` shows the lag",
                )

    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> list[flight.Result]:
        if action.type != "positions":
            raise flight.FlightServerError(json.dumps({"code": "E_REQUEST", "message": f"no action {action.type}"}))
        positions = {f"{t}:{p}": tail.next for (t, p), tail in self._shelf.tails().items()}
        return [flight.Result(json.dumps(positions).encode())]

    def list_actions(self, context: flight.ServerCallContext) -> list[tuple[str, str]]:
        return [("positions", "next offset of every partition the store reads")]


def _request(ticket: bytes) -> dict[str, Any]:
    """What a ticket asks for; a bare SELECT is one, too, so that any Flight client can write it."""
    text = ticket.decode()
    request = json.loads(text) if text.lstrip().startswith("{") else {"sql": text}
    if not isinstance(request.get("sql"), str):
        raise ValueError("it has no sql")
    return dict(request)


def _flight_error(error: PenstockError) -> flight.FlightError:
    kind = flight.FlightServerError
    if isinstance(error, OverloadError):
        kind = flight.FlightUnavailableError
    elif isinstance(error, SqlError):
        kind = flight.FlightServerError
    return kind(json.dumps(error.to_dict()))
