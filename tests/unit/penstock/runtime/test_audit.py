from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.runtime import audit, log
from tests.documents import ROOT


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    log.configure("gateway", "ERROR")
    yield
    audit.open_trail("", "gateway")


def test_lines_go_to_a_file_of_their_own_whatever_the_log_level(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "audit.log"
    audit.open_trail(str(path), "gateway")
    audit.write("login", user="ann", remote="10.0.0.1", by="password")
    log.get("gateway").error("not for the trail")
    (line,) = [json.loads(text) for text in path.read_text().splitlines()]
    assert (line["event"], line["user"], line["service"], line["audit"]) == (
        "login",
        "ann",
        "gateway",
        True,
    )
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_was_moved_away_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    audit.open_trail(str(path), "gateway")
    audit.write("login", user="a")
    path.rename(tmp_path / "audit.log.1")
    audit.write("login", user="b")
    assert json.loads(path.read_text())["user"] == "b"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    audit.open_trail(str(tmp_path / "file" / "audit.log"), "gateway")
    audit.write("login", user="a")


def test_a_file_that_has_grown_is_moved_on_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    audit.open_trail(str(path), "gateway", 1000, 2)
    for number in range(100):
        audit.write("login", user=f"u{number}")
    files = sorted(p.name for p in tmp_path.iterdir())
    assert files == ["audit.log", "audit.log.1", "audit.log.2"]
    assert all(stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600 for name in files)
    assert all((tmp_path / name).stat().st_size < 1300 for name in files)
    users = [
        json.loads(line)["user"]
        for name in reversed(files)
        for line in (tmp_path / name).read_text().splitlines()
    ]
    assert users == [f"u{n}" for n in range(100 - len(users), 100)], (
        "nothing is lost between the files"
    )


def test_no_older_file_is_kept_when_none_is_wanted(tmp_path: Path) -> None:
    audit.open_trail(str(tmp_path / "audit.log"), "gateway", 300, 0)
    for number in range(20):
        audit.write("login", user=f"u{number}")
    assert [p.name for p in tmp_path.iterdir()] == ["audit.log"]


def test_zero_is_never_moved(tmp_path: Path) -> None:
    audit.open_trail(str(tmp_path / "audit.log"), "gateway", 0, 2)
    for number in range(50):
        audit.write("login", user=f"u{number}")
    assert [p.name for p in tmp_path.iterdir()] == ["audit.log"]


_WRITER = """
import sys
from penstock.runtime import audit, log
log.configure("gateway", "ERROR")
audit.open_trail(sys.argv[1], "gateway", 4000, 100)
sys.stdin.readline()
for number in range(200):
    audit.write("login", user=f"{sys.argv[2]}-{number}")
"""


def test_processes_that_share_a_file_lose_no_line_over_its_moves(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    command = [sys.executable, "-c", _WRITER, str(path)]
    writers = [
        subprocess.Popen([*command, str(n)], stdin=subprocess.PIPE, cwd=ROOT) for n in range(4)
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"\n")
        writer.stdin.close()
    assert [writer.wait(120) for writer in writers] == [0] * 4
    lines = [line for p in tmp_path.iterdir() for line in p.read_text().splitlines()]
    assert sorted(json.loads(line)["user"] for line in lines) == sorted(
        f"{w}-{n}" for w in range(4) for n in range(200)
    )
    assert len(list(tmp_path.iterdir())) > 5


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "audit.log").symlink_to(tmp_path / "victim")
    audit.open_trail(str(tmp_path / "audit.log"), "gateway")
    audit.write("login", user="a")
    assert (tmp_path / "victim").read_text() == "mine"
