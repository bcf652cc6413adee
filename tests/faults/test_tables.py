"""`make test-faults ONLY=tables [ROUNDS=20] [OUT=DIR]`: stream tables of a raft group; see
`tables.py`. It prints its lines as it goes.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults import tables
from tests.faults.conftest import QUICK


@pytest.mark.timeout(3600)
def test_no_acked_row_is_lost_or_doubled(capsys: pytest.CaptureFixture[str]) -> None:
    rounds = int(os.environ.get("ROUNDS") or (3 if QUICK else 20))
    out = Path(os.environ.get("OUT") or ".penstock/faults/tables")
    with capsys.disabled():
        print()
        assert tables.run(rounds, out)
