from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.gateway.wires.kit import Wires


@pytest.fixture
async def wires(tmp_path: Path) -> AsyncIterator[Wires]:
    made = Wires(tmp_path)
    made.gateway.define("CREATE DATABASE d PARTITIONS 2")
    await made.client.start_server()
    yield made
    await made.close()
