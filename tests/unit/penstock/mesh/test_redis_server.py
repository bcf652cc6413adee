"""The configuration of the embedded redis-server."""

from __future__ import annotations

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


def test_whoever_does_not_answer_is_asked_once(layout, monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr("redis.retry.sleep", slept.append)
    # nothing listens on the lowest port there is
    assert not redis_server.is_ready(layout, ports_from(9000, {"redis": 1}))
    assert slept == []
