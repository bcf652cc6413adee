"""Two deployments and a bad link: the cases are tests of pytest, in `tests/faults/test_federation.py`."""

from __future__ import annotations

from pathlib import Path

import pytest


def run(_rounds: int, _out: Path) -> bool:
    return pytest.main(["-q", str(Path(__file__).with_name("test_federation.py"))]) == 0
