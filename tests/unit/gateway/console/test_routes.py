"""The console over HTTP: types, caching, compression, policy, and no way out of its folder."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import ClientSession, web
from yarl import URL

from gateway.console.routes import Console
from gateway.console.static_files import packaged

Client = tuple[ClientSession, str]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    app = web.Application()
    guard: Any = None  # it asks nobody who they are
    app.add_routes(Console().routes(guard))
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    async with ClientSession(auto_decompress=False) as session:
        yield session, f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


def _path(name: str, version: str | None = None) -> str:
    return f"/console/{version or packaged().version}/{name}"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        (_path("app/main.js"), "text/javascript; charset=utf-8"),
        (_path("app/style/base.css"), "text/css; charset=utf-8"),
        (_path("app/icon.svg"), "image/svg+xml"),
        (_path("vendor/preact.js"), "text/javascript; charset=utf-8"),
        (_path("vendor/LICENSES.txt"), "text/plain; charset=utf-8"),
    ],
)
async def test_each_file_has_its_type_and_the_policy(client: Client, path: str, kind: str) -> None:
    session, url = client
    async with session.get(url + path) as answer:
        assert (answer.status, answer.headers["Content-Type"]) == (200, kind)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_files_of_this_version_stay_and_others_are_asked_for_again(client: Client) -> None:
    session, url = client
    for path, caching in (
        (_path("app/main.js"), "public, max-age=31536000, immutable"),
        (_path("app/main.js", "0123456789abcdef"), "no-cache"),
        ("/", "no-cache"),
    ):
        async with session.get(url + path) as answer:
            assert answer.headers["Cache-Control"] == caching, path


async def test_what_the_browser_has_is_not_sent_again(client: Client) -> None:
    session, url = client
    async with session.get(url + "/") as answer:
        tag = answer.headers["ETag"]
    async with session.get(url + "/", headers={"If-None-Match": tag}) as answer:
        assert (answer.status, await answer.read()) == (304, b"")
    async with session.get(url + "/", headers={"If-None-Match": '"other"'}) as answer:
        assert answer.status == 200


async def test_bodies_are_compressed_for_who_takes_it(client: Client) -> None:
    session, url = client
    path = url + _path("app/main.js")
    async with session.get(path, headers={"Accept-Encoding": "identity"}) as answer:
        assert "Content-Encoding" not in answer.headers
        plain = await answer.read()
    async with session.get(path, headers={"Accept-Encoding": "gzip, br"}) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(await answer.read()) == plain


@pytest.mark.parametrize(
    "path",
    [
        "/console/x/../routes.py",
        "/console/x/%2e%2e/routes.py",
        "/console/x/app/..%2f..%2froutes.py",
        "/console/x/..%5croutes.py",
        "/console/x/%2fetc%2fpasswd",
        "/console/x//etc/passwd",
        "/console/x/app/main.js%00.css",
        "/console/x/app/",
    ],
)
async def test_no_path_leads_out(client: Client, path: str) -> None:
    session, url = client
    async with session.get(URL(url + path, encoded=True)) as answer:
        assert answer.status == 404


@pytest.mark.parametrize("path", ["/console", "/console/"])
async def test_the_console_has_a_name_too(client: Client, path: str) -> None:
    session, url = client
    async with session.get(url + path, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (308, "/")
