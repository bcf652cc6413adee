"""What tests of the console's pages have in common: statements, a log-in, and how a page looks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.client.connection import Connection, connect
from penstock.client.connection_options import ConnectionOptions
from penstock.mesh.running import RunningMesh
from tests.console.conftest import Visit

Open = Callable[..., Visit]
AXE = Path(__file__).parents[2] / ".ci/console/node_modules/axe-core/axe.min.js"


def client_of(mesh: RunningMesh) -> Connection:
    """Return a client of root's that waits longer than a busy machine takes."""
    patient = ConnectionOptions(timeout=150)
    return connect(mesh.gateway_url, user=mesh.user, password=mesh.password, options=patient)


def run(mesh: RunningMesh, *statements: str, database: str | None = None) -> None:
    with client_of(mesh) as client:
        for statement in statements:
            client.execute(statement, database=database)


def enter(visit: Open, mesh: RunningMesh, screen: str = "wide light") -> Visit:
    one = visit(mesh.gateway_url, screen)
    one.log_in(mesh.user, mesh.password)
    return one


def check_width(one: Visit) -> None:
    """Fail if the page on the screen is wider than it."""
    wider = one.page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wider <= 0, one.page.url


def check_axe(one: Visit) -> None:
    """Fail if axe finds something serious on the page that is shown now."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed: npm install in .ci/console")
    one.page.evaluate(AXE.read_text(encoding="utf-8"))
    found = one.page.evaluate("axe.run().then((result) => result.violations)")
    serious = [
        f"{v['id']}: {v['nodes'][0]['html']}"
        for v in found
        if v["impact"] in ("serious", "critical")
    ]
    assert serious == [], one.page.url
