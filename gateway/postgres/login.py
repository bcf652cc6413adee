"""How a connection of the PostgreSQL wire begins: options of its client, TLS, user and password.

Passwords are kept as argon2id hashes, from which SCRAM-SHA-256 cannot be spoken. So they come as
they are, over TLS, within the machine or from networks that the settings name.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

from gateway.postgres import backend
from gateway.postgres.channel import ClientGone, PgChannel
from gateway.postgres.frontend import (
    CANCEL,
    GSS,
    MAJOR,
    SSL,
    MessageReader,
    PgPassword,
    read_message,
    read_options,
    violation,
)
from penstock.auth.login import Login, is_token
from penstock.errors import AuthError

#: bytes of a message that comes before its sender is known
MOST_UNKNOWN = 10_000
_REQUESTS = 4
_OPTION = re.compile(r"(?:-c\s*|--)([\w.]+)=((?:\\.|[^\s\\])*)")


@dataclass(frozen=True)
class PgStartup:
    """Options of a client, and the minor version of the protocol that it would speak."""

    options: dict[str, str]
    minor: int


@dataclass(frozen=True)
class PgCancel:
    """The key of another connection, whose statement is to end."""

    process: int
    secret: int


@dataclass(frozen=True)
class PgUser:
    """The user of a connection.

    Attributes:
        mark: ties the connection to the password as it was at login.
        expires: when its token ends, in seconds since 1970; None for a password.
    """

    name: str
    mark: str
    expires: int | None


async def begin(
    channel: PgChannel,
    context: ssl.SSLContext | None,
    seconds: float,
    clear: Sequence[IPv4Network | IPv6Network],
) -> PgStartup | PgCancel:
    """Return what a client wants, behind TLS when it asks for that.

    Args:
        context: of the service; None: it has no TLS.
        seconds: in which a handshake has to end.
        clear: networks that passwords may come from without TLS.

    Raises:
        ClientGone: it has ended the connection.
        SchemaError: it speaks something else.
        AuthError: the service speaks TLS only.
    """
    for _ in range(_REQUESTS):
        length = int.from_bytes(await channel.read(4), "big")
        if not 8 <= length <= MOST_UNKNOWN:
            raise violation("the first message has an impossible length")
        body = await channel.read(length - 4)
        code = int.from_bytes(body[:4], "big")
        if code == CANCEL:
            fields = MessageReader(body[4:])
            return PgCancel(fields.number("!I"), fields.number("!I"))
        if code == SSL and context is not None and not channel.tls:
            if channel.waiting:
                # somebody between would have it taken for what comes behind TLS
                raise violation("there are bytes before TLS begins")
            await channel.start_tls(context, backend.YES_TLS, seconds)
        elif code in (SSL, GSS):
            channel.write(backend.NO_TLS)
        elif code >> 16 == MAJOR:
            _require_private(channel, context, clear)
            return PgStartup(read_options(body[4:]), code & 0xFFFF)
        else:
            raise violation("the protocol's version is 3")
    raise violation("it asks for encryption again and again")


def _require_private(
    channel: PgChannel,
    context: ssl.SSLContext | None,
    clear: Sequence[IPv4Network | IPv6Network],
) -> None:
    if context is not None and not channel.tls:
        raise AuthError("this server speaks TLS only", hint="connect with sslmode=require")
    if not channel.is_private(clear):
        raise AuthError(
            "passwords come over TLS or from this machine only",
            hint="give the server a certificate (PENSTOCK_TLS_CERT, PENSTOCK_TLS_KEY) and connect "
            "with sslmode=require; or publish the port at 127.0.0.1 and come through a tunnel; or "
            "name networks that nobody else listens on in PENSTOCK_GATEWAY_POSTGRES_CLEAR",
        )


async def ask_password(channel: PgChannel) -> str:
    """Return the password that a client sends. Raises ClientGone, SchemaError."""
    channel.write(backend.ASK_PASSWORD)
    kind = await channel.read(1)
    length = int.from_bytes(await channel.read(4), "big")
    if kind == b"X":
        raise ClientGone
    if kind != b"p" or not 5 <= length <= MOST_UNKNOWN:
        raise violation("a password is expected")
    message = read_message(kind, await channel.read(length - 4))
    assert isinstance(message, PgPassword)
    return message.text


async def log_in(login: Login, name: str, password: str, where: str) -> PgUser:
    """Return the user that name and password are of; a token is a password, too. Raises AuthError,
    OverloadError.
    """
    token = f"Bearer {password}"
    if not name or not password:
        raise AuthError("authentication failure", hint="send user and password")
    if not is_token(token):
        user = await login.log_in(name, password, where=where)
        return PgUser(user, login.mark(user), None)
    user = await login.admit(token, where=where)
    if user.lower() != name.lower():
        raise AuthError("the token is another user's", hint="connect as the user it was given to")
    return PgUser(user, login.mark(user), login.expiry(token))


def settings_of(options: dict[str, str]) -> dict[str, str]:
    """Return the settings that a client begins with: by themselves, and in `options`."""
    taken = {k.lower(): v for k, v in options.items() if not k.startswith("_pq_.")}
    packed = taken.pop("options", "")
    found = {n.lower(): re.sub(r"\\(.)", r"\1", v) for n, v in _OPTION.findall(packed)}
    for name in ("user", "database", "replication"):
        taken.pop(name, None)
    return {**taken, **found}
