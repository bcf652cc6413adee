from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis.asyncio.sentinel
import redis.sentinel

from penstock.config.settings import Settings
from penstock.coordination import redis_link
from penstock.coordination.redis_link import Sentinels, sentinels
from penstock.errors import ConfigError


def test_addresses_of_sentinels() -> None:
    assert sentinels("redis://localhost:6379/0") is None
    assert sentinels("redis+sentinel://a:1,b/main/2") == Sentinels(
        (("a", 1), ("b", 26379)), "main", 2
    )
    assert sentinels("redis+sentinel://a:1/main") == Sentinels((("a", 1),), "main", 0)
    assert sentinels("rediss+sentinel://a:1/main") == Sentinels((("a", 1),), "main", 0, tls=True)


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://a:1",
        "redis+sentinel://a:x/main/0",
        "redis+sentinel:///main/0",
        "redis+sentinel://a/main/x",
    ],
)
def test_wrong_addresses_are_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="entinel"):
        sentinels(url)


def test_clients_ask_the_sentinels_for_the_master_with_the_password() -> None:
    settings = Settings(redis_url="redis+sentinel://a:1,b:2/main/3", redis_password="secret")
    pool = redis_link.connect(settings, decode_responses=True, socket_timeout=4).connection_pool
    assert (
        isinstance(pool, redis.sentinel.SentinelConnectionPool)
        and pool.service_name == "main"
        and pool.is_master
    )
    wanted = {"db": 3, "password": "secret", "decode_responses": True, "socket_timeout": 4}
    assert {k: pool.connection_kwargs[k] for k in wanted} == wanted
    asked = pool.sentinel_manager.sentinels
    assert [
        (
            s.connection_pool.connection_kwargs["host"],
            s.connection_pool.connection_kwargs["password"],
        )
        for s in asked
    ] == [
        ("a", "secret"),
        ("b", "secret"),
    ]
    assert isinstance(
        redis_link.connect_async(settings).connection_pool,
        redis.asyncio.sentinel.SentinelConnectionPool,
    )


def test_sentinels_and_their_master_are_reached_over_tls(tmp_path: Path) -> None:
    settings = Settings(
        redis_url="rediss+sentinel://a:1/main",
        redis_user="rooms",
        redis_password="s",
        redis_ca=tmp_path / "ca.pem",
    )  # type: ignore[arg-type]
    for made, kind in (
        (redis_link.connect(settings), redis.sentinel.SentinelManagedSSLConnection),
        (redis_link.connect_async(settings), redis.asyncio.sentinel.SentinelManagedSSLConnection),
    ):
        pool: Any = made.connection_pool
        assert issubclass(pool.connection_class, kind)
        assert (pool.connection_kwargs["username"], pool.connection_kwargs["ssl_ca_certs"]) == (
            "rooms",
            str(tmp_path / "ca.pem"),
        )
        (asked,) = (s.connection_pool for s in pool.sentinel_manager.sentinels)
        assert issubclass(
            asked.connection_class,
            redis.connection.SSLConnection | redis.asyncio.connection.SSLConnection,
        )
        assert asked.connection_kwargs["ssl_ca_certs"] == str(
            tmp_path / "ca.pem"
        ) and not asked.connection_kwargs.get("username")


def test_one_server_is_reached_as_before() -> None:
    settings = Settings(redis_url="redis://host:7/1", redis_password="s")
    found = redis_link.connect(settings, socket_timeout=4).connection_pool.connection_kwargs
    assert (
        found["host"],
        found["port"],
        found["db"],
        found["password"],
        found["socket_timeout"],
    ) == ("host", 7, 1, "s", 4)
    found = redis_link.connect_async(settings).connection_pool.connection_kwargs
    assert (found["host"], found["password"]) == ("host", "s")
