"""Whose password a command takes to which gateway."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from penstock.cli.gateway import connection, mesh_at
from penstock.errors import ConfigError
from penstock.mesh.layout import Layout

URL = "http://127.0.0.1:7700"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Return that of a mesh that runs, as far as its state says, in this process."""
    made = Layout(tmp_path)
    made.make()
    state = {"supervisor": os.getpid(), "settings": {"PENSTOCK_GATEWAY_URL": URL}}
    made.state_file.write_text(json.dumps(state), encoding="utf-8")
    return made


@pytest.mark.parametrize("url", [None, URL, f"{URL}/"])
def test_the_mesh_of_the_data_directory_is_known_by_its_address(
    layout: Layout, url: str | None
) -> None:
    assert mesh_at(layout, url) is not None


@pytest.mark.parametrize("url", ["http://127.0.0.1:7701", f"{URL}0", "http://elsewhere:7700"])
def test_its_password_is_for_no_other_gateway(layout: Layout, url: str) -> None:
    assert mesh_at(layout, url) is None
    with pytest.raises(ConfigError, match="which password"):
        connection(layout.root, url, "root", None)
