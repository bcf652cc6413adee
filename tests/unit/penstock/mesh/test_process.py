from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil

from penstock.config.environment import MESH_VARIABLE
from penstock.mesh import process
from penstock.mesh.process import ChildProcess, proportional_memory, rotate
from penstock.runtime.mesh_members import members


def child(tmp_path: Path, code: str) -> ChildProcess:
    environment = {**os.environ, MESH_VARIABLE: str(tmp_path)}
    return ChildProcess([sys.executable, "-c", code], environment, tmp_path / "x.log", tmp_path)


def test_output_and_status(tmp_path: Path) -> None:
    started = child(
        tmp_path, "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    )
    assert started.wait(20) and started.exit_status() == 3
    assert sorted((tmp_path / "x.log").read_text().split()) == ["err", "out"]


def test_what_a_child_makes_is_its_owners_alone(tmp_path: Path) -> None:
    code = """if True:
        import os, socket
        open("file", "w").close()
        os.mkdir("directory")
        socket.socket(socket.AF_UNIX).bind("socket")
    """
    assert child(tmp_path, code).wait(20)
    for name in ("file", "directory", "socket"):
        assert (tmp_path / name).stat().st_mode & 0o077 == 0, name


def test_kill_ends_the_group_and_members_sees_grandchildren(tmp_path: Path) -> None:
    code = """if True:
        import subprocess, sys
        below = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        print(below.pid, flush=True)
        below.wait()
    """
    started = child(tmp_path, code)
    log = tmp_path / "x.log"
    while not log.read_text().strip():
        assert not started.wait(0.02)
    grandchild = psutil.Process(int(log.read_text()))
    assert {started.pid, grandchild.pid} <= {p.pid for p in members(tmp_path)}
    assert proportional_memory(started.pid) > proportional_memory(started.pid, children=False) > 0
    started.kill()
    psutil.wait_procs([grandchild], timeout=10)
    assert not members(tmp_path)
    assert proportional_memory(started.pid) == 0


def test_logs_are_rotated_by_size(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(process, "_LOG_BYTES", 10)
    log = tmp_path / "x.log"
    with open(log, "ab") as writer:
        for text in (b"first 10 bytes", b"second 10 bytes", b"third 10 bytes", b"4"):
            writer.write(text)
            writer.flush()
            rotate(log)
    assert log.read_bytes() == b"4"
    assert (tmp_path / "x.log.1").read_bytes() == b"third 10 bytes"
    assert (tmp_path / "x.log.2").read_bytes() == b"second 10 bytes"
    assert not (tmp_path / "x.log.3").exists()
