"""The embedded redis-server: loopback, a generated password, an append-only file."""

from __future__ import annotations

import socket
from pathlib import Path

from penstock.mesh.layout import Layout, Ports
from penstock.setup.redis_server import find_redis_server

#: a server on this machine answers at once, or is not ready
_ANSWER_SECONDS = 1.0


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
    asks again. The supervisor needs no client of Redis for two lines.
    """
    password = layout.secret("redis").read_text(encoding="utf-8").strip()
    try:
        with (
            socket.create_connection(("127.0.0.1", ports["redis"]), _ANSWER_SECONDS) as server,
            server.makefile("rb") as answers,
        ):
            server.sendall(f"AUTH {password}\r\nPING\r\n".encode())
            return answers.readline() == b"+OK\r\n" and answers.readline() == b"+PONG\r\n"
    except OSError:
        return False


def _config(layout: Layout) -> Path:
    return layout.redis / "redis.conf"
