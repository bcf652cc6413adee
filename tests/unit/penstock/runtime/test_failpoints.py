"""Failpoints are refused when misspelt and count over processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.runtime.failpoints import EXIT_STATUS, Failpoints


@pytest.mark.parametrize(
    "text", ["nowhere:exit:1", "after_state:sleep:1", "after_state:exit:x", "value:exit"]
)
def test_misspelt(text: str) -> None:
    with pytest.raises(ConfigError):
        Failpoints(text)


def test_none_does_nothing() -> None:
    points = Failpoints()
    assert not points
    points.reach("after_state")
    points.scan([b"x", None])


def test_counts_over_processes(tmp_path: Path) -> None:
    code = (
        "import sys; from penstock.runtime.failpoints import Failpoints; "
        "Failpoints('after_state:exit:2', sys.argv[1]).reach('after_state', lambda: print('bye', flush=True))"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, check=False
        )
        for _ in range(3)
    ]
    assert [r.returncode for r in runs] == [0, EXIT_STATUS, 0]
    assert runs[1].stdout == b"bye\n"
