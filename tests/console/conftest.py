"""A browser, and a mesh for it to look at.

Debian's chromium (`apt-get install chromium`), driven by playwright, which `make test-console`
installs. Where one of them is missing, every test here is skipped by name.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from gateway.console.routes import Console
from penstock.mesh.running import RunningMesh, running_mesh

#: width, height, and what the system prefers
SCREENS = {"wide light": (1280, 800, "light"), "narrow dark": (390, 844, "dark")}
#: browsers write a line for each answer of 4xx; ours are expected, and shown on the page
_EXPECTED = "Failed to load resource: the server responded with a status of 4"
#: a busy machine is slow, not wrong
PATIENCE_MS = 60_000


@dataclass
class Visit:
    """One page of a browser, with all that it complained of and all whom it asked."""

    page: Any
    url: str
    complaints: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def go(self, *parts: str) -> None:
        self.page.goto(f"{self.url}/#/{'/'.join(parts)}")

    def log_in(self, user: str, password: str) -> None:
        self.page.goto(self.url)
        self.page.get_by_label("User").fill(user)
        self.page.get_by_label("Password").fill(password)
        self.page.get_by_role("button", name="Log in").click()
        self.page.get_by_role("heading", name="Home").wait_for()

    def check(self) -> None:
        assert self.complaints == []
        assert self.hosts <= {urlsplit(self.url).netloc}


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("chromium is not installed")
    with driver.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Visit]]:
    """Return what opens a page of *url* on a screen of SCREENS; ends with `Visit.check`."""
    made: list[Visit] = []

    def open_page(url: str, screen: str = "wide light") -> Visit:
        width, height, scheme = SCREENS[screen]
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        context.set_default_timeout(PATIENCE_MS)
        one = Visit(context.new_page(), url)
        one.page.on("console", lambda said: _note(one, said))
        one.page.on("pageerror", lambda error: one.complaints.append(str(error)))
        one.page.on("request", lambda asked: one.hosts.add(urlsplit(asked.url).netloc))
        made.append(one)
        return one

    yield open_page
    for one in made:
        one.check()
        one.page.context.close()


def _note(visit: Visit, said: Any) -> None:
    if said.type in ("error", "warning") and not said.text.startswith(_EXPECTED):
        visit.complaints.append(said.text)


@pytest.fixture(scope="session")
def files_url() -> Iterator[str]:
    """Return where the console's files are served, without a mesh behind them."""
    # playwright keeps a loop running in this thread, so the server has a thread of its own
    ready = threading.Event()
    found: dict[str, Any] = {}

    async def serve() -> None:
        guard: Any = None  # it asks nobody who they are
        app = web.Application()
        app.add_routes(Console().routes(guard))
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        stop = asyncio.Event()
        found.update(
            url=f"http://127.0.0.1:{runner.addresses[0][1]}",
            stop=partial(asyncio.get_running_loop().call_soon_threadsafe, stop.set),
        )
        ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(PATIENCE_MS / 1000)
    yield found["url"]
    found["stop"]()
    thread.join()


@pytest.fixture(scope="session")
def mesh(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    """Return the session's mesh; it starts after the browser, so none starts in vain."""
    environment = {"PENSTOCK_GATEWAY_LIVE_TIMEOUT": "120"}
    with running_mesh(tmp_path_factory.mktemp("mesh"), environment=environment) as running:
        yield running
