"""The configuration of the embedded redis-server."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from penstock.mesh import redis_server
from penstock.mesh.layout import Layout, ports_from


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout(tmp_path)
    made.redis.mkdir(parents=True)
    made.secrets.mkdir()
    return made


def test_it_asks_for_its_password_on_loopback_only(layout):
    redis_server.prepare(layout, ports_from(9000))
    config = layout.redis / "redis.conf"
    options = dict(line.split(" ", 1) for line in config.read_text(encoding="utf-8").splitlines())
    password = layout.secret("redis").read_text(encoding="utf-8").strip()
    assert options["requirepass"] == password and len(password) > 15
    assert options["bind"] == "127.0.0.1"
    assert options["port"] == str(ports_from(9000)["redis"])
    assert options["dir"] == str(layout.redis)
    assert (options["appendonly"], options["save"]) == ("yes", '""')


def test_only_its_owner_reads_the_configuration(layout):
    redis_server.prepare(layout, ports_from(9000))
    redis_server.prepare(layout, ports_from(9000))  # again, at the next start
    assert (layout.redis / "redis.conf").stat().st_mode & 0o077 == 0


def test_the_command_names_the_configuration(layout, monkeypatch):
    monkeypatch.setattr(redis_server, "find_redis_server", lambda: Path("/opt/redis-server"))
    assert redis_server.command(layout) == [
        "/opt/redis-server",
        str(layout.redis / "redis.conf"),
    ]


def test_whoever_does_not_listen_is_not_ready(layout):
    # nothing listens on the lowest port there is
    assert not redis_server.is_ready(layout, ports_from(9000, {"redis": 1}))


@pytest.mark.parametrize(
    ("answers", "ready"),
    [
        (b"+OK\r\n+PONG\r\n", True),
        (b"+OK\r\n-LOADING Redis is loading the dataset in memory\r\n", False),
        (b"-WRONGPASS invalid username-password pair or user is disabled.\r\n", False),
        (b"+OK\r\n", False),
        (b"", False),
    ],
    ids=["ready", "loading", "another's", "half an answer", "closed"],
)
def test_ready_is_who_answers_a_ping(layout, answers, ready):
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            client, _ = server.accept()
            with client:
                asked.append(client.recv(4096))
                client.sendall(answers)

        thread = threading.Thread(target=answer)
        thread.start()
        ports = ports_from(9000, {"redis": server.getsockname()[1]})
        assert redis_server.is_ready(layout, ports) is ready
        thread.join()
    password = layout.secret("redis").read_text(encoding="utf-8").strip()
    assert asked == [f"AUTH {password}\r\nPING\r\n".encode()]
