"""How a service reaches Redis: one server, or whichever the Sentinels say is the master.

`redis://host:port/0` is a server. `redis+sentinel://host:port,host:port/NAME/0` names Sentinels
that watch a master called NAME: it is asked for anew at every connection, so a failover costs a
reconnect. A promoted replica may lack the last second of writes; leases bear that, because their
epochs are also read from the log. `rediss` in place of `redis` is TLS, to Sentinels as well.
Refused: Redis Cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import redis
import redis.asyncio
import redis.asyncio.sentinel
import redis.sentinel

from penstock.config.settings import Settings
from penstock.errors import BusError, ConfigError

T = TypeVar("T")
#: fields of a hash that one question is about at most: a hash of every child table would keep Redis
#: from everybody else
CHUNK = 2_000
_SCHEME = "redis+sentinel"
_TLS_SCHEME = "rediss+sentinel"
#: how long one Sentinel may take to answer before the next is asked
_SENTINEL_SECONDS = 1.0
# its Sentinel clients carry no types
_Blocking: Any = redis.sentinel.Sentinel
_Async: Any = redis.asyncio.sentinel.Sentinel


@dataclass(frozen=True)
class Sentinels:
    """Who to ask for the master called `name`."""

    hosts: tuple[tuple[str, int], ...]
    name: str
    database: int
    tls: bool = False


def _sentinel(text: str) -> tuple[str, int]:
    """Read host and port of one Sentinel."""
    name, _, port = text.partition(":")
    if not name or not (port or "26379").isdigit():
        raise ConfigError(
            f"not a Sentinel's address: {text!r}",
            hint=f"{_SCHEME}://host:port,host:port/NAME/0",
        )
    return name, int(port or 26379)


def sentinels(url: str) -> Sentinels | None:
    """Read a `redis+sentinel://` or `rediss+sentinel://` address. Return None for that of a server.

    Raises:
        ConfigError: a part of it is missing.
    """
    parts = urlsplit(url)
    if parts.scheme not in (_SCHEME, _TLS_SCHEME):
        return None
    hosts = [_sentinel(host) for host in parts.netloc.rpartition("@")[2].split(",")]
    name, _, database = parts.path.strip("/").partition("/")
    if not name or not (database or "0").isdigit():
        raise ConfigError(
            "which master do the Sentinels watch?", hint=f"{_SCHEME}://host:port,host:port/NAME/0"
        )
    return Sentinels(tuple(hosts), name, int(database or 0), parts.scheme == _TLS_SCHEME)


def connect(settings: Settings, **options: Any) -> redis.Redis:
    """A client; *options* are redis-py's. Nothing is connected before the first command.

    Raises:
        ConfigError: the address is wrong.
    """
    found = sentinels(settings.redis_url)
    if found is None:
        return redis.Redis.from_url(settings.redis_dsn, **options)
    asked = _Blocking(
        list(found.hosts),
        sentinel_kwargs=_to_sentinel(settings, found),
        **_to_master(settings, found, options),
    )
    client: redis.Redis = asked.master_for(found.name)
    return client


def connect_async(settings: Settings, **options: Any) -> redis.asyncio.Redis:
    """The same for asyncio.

    Raises:
        ConfigError: the address is wrong.
    """
    found = sentinels(settings.redis_url)
    if found is None:
        return redis.asyncio.Redis.from_url(settings.redis_dsn, **options)
    asked = _Async(
        list(found.hosts),
        sentinel_kwargs=_to_sentinel(settings, found),
        **_to_master(settings, found, options),
    )
    client: redis.asyncio.Redis = asked.master_for(found.name)
    return client


def _to_master(settings: Settings, found: Sentinels, options: dict[str, Any]) -> dict[str, Any]:
    who = {"username": settings.redis_user or None, "password": _password(settings)}
    return {
        "socket_connect_timeout": 3,
        **options,
        "db": found.database,
        **who,
        **_tls(settings, found),
    }


def _to_sentinel(settings: Settings, found: Sentinels) -> dict[str, Any]:
    # Sentinels have access lists of their own: the user of the master's is nobody there
    waits = {"socket_timeout": _SENTINEL_SECONDS, "socket_connect_timeout": _SENTINEL_SECONDS}
    return {**waits, "password": _password(settings), **_tls(settings, found)}


def _tls(settings: Settings, found: Sentinels) -> dict[str, Any]:
    if not found.tls:
        return {}
    own = {"ssl_ca_certs": str(settings.redis_ca)} if settings.redis_ca is not None else {}
    return {"ssl": True, "ssl_cert_reqs": "required", **own}


def _password(settings: Settings) -> str | None:
    return settings.redis_password.get_secret_value() if settings.redis_password else None


def ask(question: Callable[[], T]) -> T:
    """What *question* finds in Redis, for somebody who waits for the answer. Raises BusError
    (`E_REDIS_DOWN`).
    """
    try:
        return question()
    except redis.RedisError as down:
        raise BusError(
            "Redis does not answer", code="E_REDIS_DOWN", detail=str(down), retryable=True
        ) from down


def hash_items(client: redis.Redis, key: str) -> Iterator[tuple[Any, Any]]:
    """Fields and values of a hash of any size, some at a time; a field that changes meanwhile may
    come twice. Raises redis.RedisError.
    """
    return iter(client.hscan_iter(key, count=CHUNK))


def chunks(wanted: Sequence[T]) -> Iterator[Sequence[T]]:
    """*wanted* in pieces that one question to Redis may be about."""
    return (wanted[at : at + CHUNK] for at in range(0, len(wanted), CHUNK))
