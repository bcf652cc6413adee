"""Opening the WebSocket of a link: allowed addresses, TLS, the log-in, and what a refusal means."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping

from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from penstock.basic_auth import basic_header
from penstock.errors import AuthError, CatalogError, PenstockError, RemoteError
from penstock.link.address import Address, LinkLost
from penstock.link.frames import (
    CREDIT,
    MAX_FRAME,
    ORIGIN_HEADER,
    PATH,
    VERSION,
    VERSION_HEADER,
)
from penstock.outbound.targets import reason_of


def open_socket(address: Address, timeout: float, ping_seconds: float) -> ClientConnection:
    """Connect and log in.

    Raises:
        LinkLost: nobody answers there, or not as a federation service does.
        RemoteError: the certificate is not trusted, or the versions of the link differ.
        AuthError: user or password is wrong.
        CatalogError: the address is not one of those allowed, or this mesh itself answers there.
    """
    scheme = "wss" if address.secure else "ws"
    host = f"[{address.host}]" if ":" in address.host else address.host
    headers = {
        "Authorization": basic_header(address.user, address.password),
        VERSION_HEADER: str(VERSION),
    }
    if address.allowed is not None and address.allowed.own.identity:
        headers[ORIGIN_HEADER] = address.allowed.own.identity
    try:
        return connect(
            f"{scheme}://{host}:{address.port}{PATH}",
            sock=_dial_checked(address, timeout),
            ssl=_tls(address),
            compression=None,
            max_size=MAX_FRAME,
            open_timeout=timeout,
            ping_interval=ping_seconds,
            ping_timeout=ping_seconds * 2,
            close_timeout=1.0,
            max_queue=CREDIT,
            proxy=None,
            legacy=True,
            additional_headers=headers,
        )
    except InvalidStatus as refused:
        raise _refusal(refused, address, headers) from None
    except ssl.SSLCertVerificationError as untrusted:
        raise RemoteError(
            f"the certificate of {address.shown} is not trusted",
            code="E_TLS",
            detail=untrusted.verify_message,
            hint="renew it, or name its authority with ca_file",
        ) from None
    except (ssl.SSLError, InvalidHandshake) as wrong:
        port = "for secure links" if address.secure else "of the federation service"
        raise LinkLost(
            f"{address.shown} does not answer as a federation service does",
            detail=reason_of(wrong),
            hint=f"is that the port {port}?",
        ) from None
    except (OSError, WebSocketException, EOFError) as down:
        raise LinkLost(f"{address.shown} cannot be reached", detail=reason_of(down)) from None


def _refusal(refused: InvalidStatus, address: Address, headers: Mapping[str, str]) -> PenstockError:
    """Make the error for an answer that is no upgrade to a WebSocket."""
    status = refused.response.status_code
    if status in (401, 403):
        return AuthError(
            f"{address.shown} refuses user {address.user}",
            hint="check user and password of the external stream",
        )
    if status == 421 and ORIGIN_HEADER in headers:
        return CatalogError(
            f"{address.shown} may not be connected to",
            code="E_EXTERNAL_HOST",
            detail="this mesh itself answers there",
            hint="SELECT, streams and subscriptions read the mesh's own tables",
        )
    if status == 426:
        return RemoteError(
            f"{address.shown} speaks another version of the link",
            code="E_LINK_VERSION",
            detail=f"this side speaks {VERSION}",
        )
    return LinkLost(f"{address.shown} refuses the link", detail=reason_of(refused))


def _dial_checked(address: Address, timeout: float) -> socket.socket | None:
    """Connect to an address that was checked, so that a name which means another one a moment
    later gains nothing. Return None where links may go anywhere. Raises CatalogError, OSError.
    """
    if address.allowed is None:
        return None
    failed: OSError = socket.gaierror("nobody has that name")
    for place in address.allowed.addresses(address.host, address.port):
        try:
            connection = socket.create_connection((place, address.port), timeout)
        except OSError as down:
            failed = down
        else:
            connection.settimeout(None)
            return connection
    raise failed


def _tls(address: Address) -> ssl.SSLContext | None:
    if not address.secure:
        return None
    try:
        return ssl.create_default_context(cafile=address.ca_file)
    except (OSError, ssl.SSLError) as wrong:
        raise RemoteError(
            "the file of certificates to trust cannot be read",
            code="E_TLS",
            detail=str(wrong)[:200],
        ) from None
