from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.mesh.layout import PORT_NAMES, Layout, free_ports, ports_from, require_free


def test_ports_follow_their_base_but_for_own_ones() -> None:
    ports = ports_from(9000, {"redis": 6379})
    assert (ports["gateway"], ports["kafka"], ports["redis"]) == (9000, 9003, 6379)


@pytest.mark.parametrize(
    ("base", "own", "message"),
    [(9000, {"attic": 1}, "attic"), (65530, {}, "not a port"), (9000, {"kafka": 0}, "kafka=0")],
)
def test_ports_that_cannot_be(base: int, own: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ports_from(base, own)


def test_what_one_mesh_has_picked_no_other_picks() -> None:
    picked = set(free_ports().by_name.values())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other, pytest.raises(OSError):
        other.bind(("127.0.0.1", picked.pop()))


def test_free_ports_are_different_and_free() -> None:
    ports = free_ports()
    assert len(set(ports.by_name.values())) == len(PORT_NAMES)
    require_free(ports, list(PORT_NAMES))


def test_taken_ports_are_named_together() -> None:
    with socket.socket() as one, socket.socket() as two:
        for taken in (one, two):
            taken.bind(("127.0.0.1", 0))
            taken.listen()
        ports = ports_from(9000, {"kafka": one.getsockname()[1], "redis": two.getsockname()[1]})
        with pytest.raises(ConfigError) as wrong:
            require_free(ports, ["kafka", "redis"])
    assert f"kafka {ports['kafka']}, redis {ports['redis']}" in wrong.value.message


def test_secrets_are_made_once_and_for_the_owner_only(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.make()
    path = layout.secret("root")
    first = path.read_text()
    assert layout.secret("root").read_text() == first != layout.secret("redis").read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and len(first.strip()) >= 20


@pytest.mark.parametrize("before", [None, 0o755])
def test_nobody_else_gets_into_the_data_directory(tmp_path: Path, before: int | None) -> None:
    layout = Layout(tmp_path / "mesh")
    if before is not None:
        for directory in (layout.root, layout.secrets):
            directory.mkdir()
            directory.chmod(before)
    layout.make()
    assert (
        stat.S_IMODE(layout.root.stat().st_mode)
        == stat.S_IMODE(layout.secrets.stat().st_mode)
        == 0o700
    )


def test_keys_are_random_made_once_and_their_owners_alone(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.make()
    keys = [layout.token_key, layout.metrics_key]
    texts = [key.read_text() for key in keys]
    assert len(set(texts)) == 2 and all(len(text.strip()) >= 20 for text in texts)
    assert [key.stat().st_mode & 0o777 for key in keys] == [0o600, 0o600]
    assert [key.read_text() for key in (layout.token_key, layout.metrics_key)] == texts
