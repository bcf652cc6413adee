"""What tests of the console's pages have in common: statements, a log-in, and how a page looks."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from penstock.client.connection import Connection, connect
from penstock.client.connection_options import ConnectionOptions
from penstock.mesh.running import RunningMesh
from tests.console.conftest import SCREENS, Visit

Open = Callable[..., Visit]
#: a directory for pictures of the pages, such as docs/pictures; without it none are taken
PICTURES = os.environ.get("PENSTOCK_PICTURES")


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


def take_completion(one: Visit, name: str) -> None:
    """Take *name*, which the editor offers. It leaves out an Enter of the first 75 ms: whoever types
    on has not seen the offer.
    """
    one.page.locator(".cm-tooltip-autocomplete").get_by_text(name).first.wait_for()
    seen = one.page.evaluate("performance.now()")
    one.page.wait_for_function("seen => performance.now() > seen + 75", arg=seen)
    one.page.keyboard.press("Enter")


def check_width(one: Visit) -> None:
    """Fail if the page on the screen is wider than it."""
    wider = one.page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wider <= 0, one.page.url


@cache
def axe() -> Path:
    """Return axe-core's file, which a package of Python brings: tests need no Node."""
    package = find_spec("axe_playwright_python")
    assert package is not None and package.origin is not None, "see make test-console"
    return Path(package.origin).with_name("axe.min.js")


def check_axe(one: Visit) -> None:
    """Fail if axe finds something serious on the page that is shown now."""
    one.page.evaluate(axe().read_text(encoding="utf-8"))
    found = one.page.evaluate("axe.run().then((result) => result.violations)")
    serious = [
        f"{v['id']}: {v['nodes'][0]['html']}"
        for v in found
        if v["impact"] in ("serious", "critical")
    ]
    assert serious == [], one.page.url


def take_picture(one: Visit, name: str) -> None:
    """Keep how the page looks on a wide screen now, where pictures are asked for."""
    width, height, _ = SCREENS["wide light"]
    if PICTURES is not None and one.page.viewport_size == {"width": width, "height": height}:
        one.page.screenshot(path=Path(PICTURES) / f"console-{name}.png")
