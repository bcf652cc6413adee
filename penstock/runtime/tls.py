"""TLS for the endpoints that services open and for the calls they make, from the same few settings.
The only file that makes ssl contexts.

A service with `tls_cert` and `tls_key` speaks TLS only (1.2 or newer); `tls_ca` is what its calls
trust besides the machine's own authorities. Refused: calls that do not check who answers.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError

if TYPE_CHECKING:
    # clients come here, too, and have no settings
    from penstock.config.settings import Settings


def server(settings: Settings) -> ssl.SSLContext | None:
    """Make the context of listeners, or None for those without TLS. Raises ConfigError."""
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # tickets would come behind the handshake: a client that waits for its socket with `select`, as
    # websockets' threaded one does, takes them for data and then stands in a read, where nothing
    # can wake it and its own writes may get lost
    context.num_tickets = 0
    try:
        context.load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ssl.SSLError) as wrong:
        raise _unusable("PENSTOCK_TLS_CERT and PENSTOCK_TLS_KEY", wrong) from wrong
    return context


def client(ca: Path | str | None = None) -> ssl.SSLContext:
    """For calls: certificates and names are checked, *ca* is trusted too. Raises ConfigError."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca is not None:
        try:
            context.load_verify_locations(ca)
        except (OSError, ssl.SSLError) as wrong:
            raise _unusable(str(ca), wrong) from wrong
    return context


def flight_server(settings: Settings) -> dict[str, Any]:
    """Arguments of a Flight server. Raises ConfigError."""
    if server(settings) is None:
        return {}
    assert settings.tls_cert is not None and settings.tls_key is not None
    return {"tls_certificates": [(settings.tls_cert.read_bytes(), settings.tls_key.read_bytes())]}


def flight_client(url: str, ca: Path | None) -> dict[str, Any]:
    """Arguments of a Flight client of *url*. Raises ConfigError."""
    if not url.startswith("grpc+tls://") or ca is None:
        return {}
    client(ca)  # says what is wrong with it better than gRPC does
    return {"tls_root_certs": ca.read_bytes()}


def _unusable(what: str, wrong: Exception) -> ConfigError:
    return ConfigError(
        f"{what} cannot be used for TLS",
        detail=str(wrong),
        hint="certificate and key are PEM files that belong together",
    )
