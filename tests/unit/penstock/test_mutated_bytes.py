from __future__ import annotations

import os
import subprocess
import sys

import pytest

#: a hundred thousand in the nightly run
COUNT = 100_000 if os.environ.get("PENSTOCK_NIGHTLY") else 3_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_bytes_are_taken_or_refused(seed: int) -> None:
    """In a process of its own: a crash would take the tests with it."""
    command = [sys.executable, "-m", "tests.fuzz.endpoints", str(COUNT // 2), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
