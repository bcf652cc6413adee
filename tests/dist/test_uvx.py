"""The command that shows Penstock to somebody who has nothing of it yet, as the pages have it."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.dist.conftest import UV, built
from tests.documents import ROOT

COMMAND = "uvx --from penstock-mesh penstock demo"
#: what a pipe shows of the replay, once results are there
_RESULTS = re.compile(r"replayed .* rows; [1-9][\d,]* result rows so far")
#: on a quiet machine it is a third of this; a busy one is slow, not wrong
_SECONDS_TO_WINDOWS = 270


@pytest.mark.timeout(1500)
def test_the_mesh_plays_its_demo_without_an_installation(
    tmp_path: Path, cached: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A whole mesh from the wheels that were built, in an environment that uv makes for it."""
    assert f"`{COMMAND}`" in (ROOT / "docs/upgrading.md").read_text(encoding="utf-8")
    pins = tmp_path / "built.txt"
    pins.write_text("\n".join(built()) + "\n", encoding="utf-8")
    said: list[str] = []
    windows: float | None = None
    began = time.monotonic()
    demo = subprocess.Popen(
        [UV.with_name("uvx"), *COMMAND.split()[1:]],
        env=cached | {"UV_CONSTRAINT": str(pins)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
    )
    try:
        assert demo.stdout is not None
        for line in demo.stdout:
            said.append(line)
            if windows is None and _RESULTS.match(line):
                windows = time.monotonic() - began
        status = demo.wait()
    finally:
        demo.terminate()
    seconds = time.monotonic() - began
    text = "".join(said)
    assert status == 0, text[-4000:]
    assert re.search(r"^demo ok: rows=336776 .* mismatches=0 ", text, re.MULTILINE), text
    assert "not provided by package" not in text
    assert windows is not None, text
    with capsys.disabled():
        print(f"\n{COMMAND}: {windows:.0f} s to the first windows, {seconds:.0f} s in all")
    assert windows < _SECONDS_TO_WINDOWS
