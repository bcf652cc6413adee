from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import audit, log


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
    assert (line["event"], line["user"], line["room"], line["audit"]) == ("login", "ann", "gateway", True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_was_moved_away_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    audit.open_trail(str(path), "gateway")
    audit.write("login", user="a")
    path.rename(tmp_path / "audit.log.1")
    audit.write("login", user="b")
    assert json.loads(path.read_text())["user"] == "b"


def test_a_file_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    audit.open_trail(str(tmp_path / "file" / "audit.log"), "gateway")
    audit.write("login", user="a")
