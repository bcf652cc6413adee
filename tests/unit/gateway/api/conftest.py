from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.gateway.api.kit import WholeGateway


@pytest.fixture
async def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[WholeGateway]:
    made = WholeGateway(tmp_path, monkeypatch)
    await made.start()
    yield made
    await made.close()
