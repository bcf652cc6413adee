"""Tables by URI: `resolve("pq://query/scope/table?…")` gives a live table, or a snapshot, of any
deployment one is logged in to.

    from penstock import uri uri.session("http://127.0.0.1:7700", user="root", password=…)      #
    where pq:// names are looked up table =
    uri.resolve("pq://plant/scope/by_minute?columns=_wstart,n")

Owns the sessions of this process: credentials belong to them and never to a URI. The grammar is
`penstock.link.uris`, the live table `penstock.link.mirror.RemoteTable`. Refused: resolving without
a session for the host; schemes that nobody resolves.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import pyarrow as pa

from penstock.client.connection import Connection
from penstock.client.connection_options import ConnectionOptions
from penstock.errors import PenstockError, RemoteError
from penstock.link.address import DEFAULT_PORT, DEFAULT_TLS_PORT, Address
from penstock.link.mirror import RemoteTable
from penstock.link.remote_request import MirrorOptions, RemoteTarget
from penstock.link.snapshot import snapshot
from penstock.link.uris import TableUri, UriError, parse, render

__all__ = [
    "RemoteTable",
    "TableUri",
    "UriError",
    "parse",
    "render",
    "resolve",
    "session",
    "session_for",
]

_lock = threading.Lock()
_sessions: dict[str, UriSession] = {}
_default: list[UriSession] = []


@dataclass(frozen=True)
class UriSession:
    """A deployment, and as whom we go there. `replicas` are the places where its links are
    answered.
    """

    url: str
    replicas: tuple[Address, ...]

    def __repr__(self) -> str:
        return f"Session({self.url!r})"


def session(
    url: str = "http://127.0.0.1:7700",
    *,
    user: str = "root",
    password: str,
    ca_file: str | None = None,
    default: bool | None = None,
) -> UriSession:
    """Log in to a deployment for URIs and remote tables.

    Args:
        url: of its gateway (`http://host:port`), or of its federation service (`ws://host:port`,
            `wss://host:port`).
        user: to log in as.
        password: of that user.
        ca_file: certificates to trust besides the system's.
        default: whether `pq://` names are looked up there; None: if it is the first session.

    Raises:
        AuthError: user or password is wrong.
        RemoteError: nobody is there.
    """
    made = UriSession(url.rstrip("/"), (_address(url, user, password, ca_file),))
    with _lock:
        _sessions[_host_of(url)] = made
        address = made.replicas[0]
        _sessions[f"{address.host}:{address.port}"] = made
        if default or (default is None and not _default):
            _default[:] = [made]
    return made


def session_for(url: str | None = None) -> UriSession:
    """The session of a deployment; None: the default one. Raises RemoteError when nobody has logged
    in there.
    """
    with _lock:
        if url is None:
            if _default:
                return _default[0]
        elif (found := _sessions.get(_host_of(url))) is not None:
            return found
    where = url or "the local deployment"
    raise RemoteError(
        f"there is no session with {where}",
        code="E_NO_SESSION",
        hint="penstock.uri.session(url, user=…, password=…)",
    )


def resolve(text: str | TableUri, *, where: UriSession | None = None) -> RemoteTable | pa.Table:
    """Open the table that a URI names: live, with its first rows here; or with `snapshot` an Arrow
    table that stays as it is.

    Args:
        text: see `penstock.link.uris`.
        where: the deployment of a `pq://` name; by default that of the default session.

    Raises:
        UriError: the URI cannot be read.
        PenstockError: the table is not there, its query does not run, or nobody answers.
    """
    uri = parse(text) if isinstance(text, str) else text
    if uri.proxied is not None:
        # whom the host would ask, it asks as one of us: the inner name is looked up at the host
        # itself
        where = _dh_session(uri)
        uri = replace(uri.proxied, host=uri.host, port=uri.port)
    elif uri.scheme != "pq":
        where = _dh_session(uri) if uri.host is not None else session_for()
    home = where or session_for()
    return _open(uri, home)


def _open(uri: TableUri, home: UriSession) -> RemoteTable | pa.Table:
    target = RemoteTarget(home.replicas, uri.table, uri.query, uri.serial)
    options = MirrorOptions(
        uri.columns,
        uri.on_disconnect,
        uri.retry_window_ms,
        uri.max_retries,
        uri.blink,
        uri.blink_required,
        uri.wait_timeout_ms,
    )
    try:
        return snapshot(target, options) if uri.snapshot else RemoteTable(target, options).start()
    except UriError:
        raise
    except PenstockError as error:
        error.detail = " ".join(x for x in (error.detail, f"resolving {render(uri)}") if x)
        raise


def _dh_session(uri: TableUri) -> UriSession:
    """Who is logged in at the URI's host; its port is the one that the URI says, where that is a
    link's.
    """
    return session_for(f"{'wss' if uri.scheme == 'dh' else 'ws'}://{uri.host}:{uri.port}")


def _host_of(url: str) -> str:
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443, "ws": DEFAULT_PORT, "wss": DEFAULT_TLS_PORT}
    return f"{parts.hostname or ''}:{parts.port or usual.get(parts.scheme, 0)}"


def _address(url: str, user: str, password: str, ca_file: str | None) -> Address:
    parts = urlsplit(url)
    if parts.username or parts.password:
        raise UriError(
            "a URL of a session holds no credentials", hint="session(url, user=…, password=…)"
        )
    if parts.scheme in ("ws", "wss") and parts.hostname:
        secure = parts.scheme == "wss"
        port = parts.port or (DEFAULT_TLS_PORT if secure else DEFAULT_PORT)
        return Address(parts.hostname, port, user, password, secure, ca_file)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UriError(
            f"{url!r} is no deployment's URL",
            hint="http://host:port of its gateway, or ws:// or wss:// of its federation service",
        )
    with Connection(url, user, password, options=ConnectionOptions(timeout=10.0)) as connection:
        link = urlsplit(connection.federation_url())
    host = parts.hostname if link.hostname in ("0.0.0.0", "::", None) else link.hostname
    return Address(host, link.port or DEFAULT_PORT, user, password, link.scheme == "wss", ca_file)
