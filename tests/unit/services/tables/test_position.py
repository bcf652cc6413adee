"""How far a copy's files go is read as it was written, and only for its own table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from services.tables.position import CopyPosition, read_position, write_position
from services.tables.stamp import Fence, WritePart

POSITION = CopyPosition(
    7, 40, Fence(3, 6, "N1.ab"), [WritePart("p", 9, 2, 2), WritePart("o:act", 12, 0, 0)]
)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_position(tmp_path, POSITION.to_json(5))
    assert read_position(tmp_path, 5) == POSITION
    assert [p.name for p in tmp_path.iterdir()] == ["position.json"], "nothing is left beside it"


def test_a_later_position_replaces_the_one_before(tmp_path: Path) -> None:
    write_position(tmp_path, POSITION.to_json(5))
    later = CopyPosition(8, 41, Fence(3, 7, "N1.ab"), [])
    write_position(tmp_path, later.to_json(5))
    assert read_position(tmp_path, 5) == later


def test_a_position_of_another_table_is_not_taken(tmp_path: Path) -> None:
    write_position(tmp_path, POSITION.to_json(5))
    with pytest.raises(ValueError, match="another table"):
        read_position(tmp_path, 6)


@pytest.mark.parametrize(
    "text", ["", "{", "{}", json.dumps(POSITION.to_json(5) | {"fence": 3}), "[]"]
)
def test_a_damaged_position_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "position.json").write_text(text, encoding="utf-8")
    with pytest.raises((ValueError, KeyError, TypeError)):
        read_position(tmp_path, 5)


def test_no_position_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_position(tmp_path, 5)
