"""The embedded redis-server: loopback, a generated password, an append-only file."""

from __future__ import annotations

from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from penstock.mesh.layout import Layout, Ports
from penstock.setup.redis_server import find_redis_server


def prepare(layout: Layout, ports: Ports) -> None:
    """Write the server's configuration; it holds the password, so only its owner may read it."""
    options = {
        "bind": "127.0.0.1",
        "port": ports["redis"],
        "dir": layout.redis,
        "requirepass": layout.secret("redis").read_text(encoding="utf-8").strip(),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": '""',
        "daemonize": "no",
        # its title would overwrite its environment, by which `penstock down` knows its own
        "set-proc-title": "no",
        "databases": 16,
    }
    config = _config(layout)
    config.touch(mode=0o600)
    config.write_text(
        "".join(f"{key} {value}\n" for key, value in options.items()), encoding="utf-8"
    )


def command(layout: Layout) -> list[str]:
    return [str(find_redis_server()), str(_config(layout))]


def is_ready(layout: Layout, ports: Ports) -> bool:
    """True when it answers PING, which it does not while loading its file. Ask once: the caller
    asks again, and the client's own retries would take seconds.
    """
    password = layout.secret("redis").read_text(encoding="utf-8").strip()
    try:
        with redis.Redis(
            port=ports["redis"],
            password=password,
            socket_timeout=1,
            socket_connect_timeout=1,
            retry=Retry(NoBackoff(), 0),
        ) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


def _config(layout: Layout) -> Path:
    return layout.redis / "redis.conf"
