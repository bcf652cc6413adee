from __future__ import annotations

from pathlib import Path

import pytest

from penstock.mesh import learned
from penstock.mesh.layout import Layout
from penstock.setup.java import Java
from penstock.setup.jvm_programs import JvmProgram

_JAVA = Java(Path("java"), 25)
_PROGRAM = JvmProgram("thing", ("thing.jar",))


def test_a_jvm_records_only_in_a_training_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learned, "cache_options", lambda java, program: ["-XX:AOTCache=there"])
    layout = Layout(tmp_path)
    layout.make()
    assert learned.learned_options(layout, _JAVA, _PROGRAM) == ["-XX:AOTCache=there"]
    layout.recordings.mkdir()
    options = learned.learned_options(layout, _JAVA, _PROGRAM)
    assert f"-XX:AOTConfiguration={layout.recordings / 'thing.aotconf'}" in options
