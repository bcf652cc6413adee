"""Every file of the corpus, played in this process."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.sql.memory_mesh import MemoryMesh
from tests.sql.play import play
from tests.sql.script import read

FILES = sorted(Path(__file__).parent.glob("*.test"))


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_statements_do_what_they_say(path: Path, tmp_path: Path) -> None:
    with closing(MemoryMesh(tmp_path)) as mesh:
        wrong = list(play(read(path), mesh))
    assert not wrong, f"{path.name}, {len(wrong)} records\n\n" + "\n".join(wrong)
