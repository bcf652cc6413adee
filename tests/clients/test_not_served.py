"""Clients that no registry served when these tests were written, so that they have no program."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("client", ["@tdengine/websocket (npm)", "telegraf", "tsbs"])
def test_there_is_no_program(client: str) -> None:
    pytest.skip(f"no registry serves {client}")
