"""Errors as Flight tells them: a gRPC status, and JSON of `PenstockError.to_dict` as the message.

Arrow sends the traceback of what a server raises to the client, except where none can be made:
`traceback` gives up on an exception that does not tell its cause.
"""

from __future__ import annotations

import json

import pyarrow.flight as flight

from penstock.errors import AuthError, BusError, OverloadError, PenstockError, RemoteError

#: errors after which the same call may be tried again
_LATER = (OverloadError, BusError, RemoteError)


class Unimplemented(NotImplementedError):
    """A call that there is not; UNIMPLEMENTED in gRPC."""

    @property
    def __cause__(self) -> BaseException | None:  # type: ignore[override]
        raise AttributeError("not told")


class Refused(ValueError):
    """A call whose sender has to change something; INVALID_ARGUMENT in gRPC."""

    @property
    def __cause__(self) -> BaseException | None:  # type: ignore[override]
        raise AttributeError("not told")


def unimplemented(message: str) -> Unimplemented:
    """Return the error of a call that there is not."""
    return Unimplemented(json.dumps({"code": "E_REQUEST", "message": message}))


def bad_request(message: str) -> Refused:
    """Return the error of bytes that cannot be read."""
    return Refused(json.dumps({"code": "E_REQUEST", "message": message}))


def internal(error: Exception) -> flight.FlightError:
    """Return what is told of an error that nobody expected: its kind, and nothing of its text."""
    message = f"query failed: {type(error).__name__}"
    return flight.FlightInternalError(json.dumps({"code": "E_INTERNAL", "message": message}))


def flight_error(error: PenstockError) -> Exception:
    """Return *error* with the gRPC status that says whose turn it is."""
    told = json.dumps(error.to_dict())
    if isinstance(error, _LATER):
        return flight.FlightUnavailableError(told)  # type: ignore[no-any-return]
    if error.code == "E_AUTH":
        return flight.FlightUnauthenticatedError(told)  # type: ignore[no-any-return]
    if isinstance(error, AuthError):
        return flight.FlightUnauthorizedError(told)  # type: ignore[no-any-return]
    if error.code == "E_INTERNAL":
        return flight.FlightInternalError(told)  # type: ignore[no-any-return]
    return Refused(told)
