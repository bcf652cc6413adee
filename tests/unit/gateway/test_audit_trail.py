"""The audit trail over HTTP: its newest lines, for who has ADMIN."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from gateway.audit_trail import AuditRoutes, newest
from gateway.guard import RequestGuard
from penstock.auth.access import Access
from penstock.catalog.view import Catalog
from tests.unit.gateway.kit import ROOT
from tests.unit.gateway.test_rest import EverybodyIs


def write(path: Path, numbers: Sequence[int]) -> None:
    lines = [
        json.dumps(
            {"timestamp": f"t{n}", "event": "login", "level": "info", "user": "ann", "by": "form"}
        )
        for n in numbers
    ]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


async def ask(user: str, path: str, query: str = "") -> tuple[int, dict[str, Any]]:
    routes = AuditRoutes(Access(Catalog, ROOT), path)
    app = web.Application()
    app.add_routes(routes.routes(cast(RequestGuard, EverybodyIs(user))))
    async with TestClient(TestServer(app)) as client:
        answer = await client.get(f"/v1/audit{query}")
        return answer.status, dict(await answer.json())


def test_the_newest_entries_come_first_and_from_the_file_before_where_too_few(
    tmp_path: Path,
) -> None:
    trail = tmp_path / "audit.log"
    write(tmp_path / "audit.log.1", [1, 2, 3])
    write(trail, [4, 5])
    assert [entry["time"] for entry in newest(trail, 4)] == ["t5", "t4", "t3", "t2"]
    assert newest(trail, 1) == [
        {
            "time": "t5",
            "event": "login",
            "service": "",
            "user": "ann",
            "remote": "",
            "details": {"by": "form"},
        }
    ]


def test_lines_that_are_not_whole_are_left_out(tmp_path: Path) -> None:
    trail = tmp_path / "audit.log"
    write(trail, [1])
    with trail.open("a", encoding="utf-8") as file:
        file.write('{"timestamp": "t2", "eve')
    assert [entry["time"] for entry in newest(trail, 10)] == ["t1"]


def test_of_a_large_file_only_the_end_is_read(tmp_path: Path) -> None:
    trail = tmp_path / "audit.log"
    write(trail, range(30_000))
    found = newest(trail, 30_000)
    assert found[0]["time"] == "t29999"
    assert 1_000 < len(found) < 30_000


async def test_it_is_for_who_has_admin(tmp_path: Path) -> None:
    trail = tmp_path / "audit.log"
    write(trail, [1, 2])
    status, told = await ask("ann", str(trail))
    assert (status, told["error"]["code"]) == (403, "E_FORBIDDEN")
    status, told = await ask(ROOT, str(trail), "?limit=1")
    assert status == 200
    assert (told["kept"], [entry["time"] for entry in told["entries"]]) == (True, ["t2"])


async def test_without_a_file_there_are_none(tmp_path: Path) -> None:
    assert await ask(ROOT, "") == (200, {"kept": False, "entries": []})
    missing = str(tmp_path / "none.log")
    assert await ask(ROOT, missing) == (200, {"kept": True, "entries": []})


@pytest.mark.parametrize("limit", ["0", "1001", "x", "-1", ""])
async def test_a_wrong_limit_is_refused(tmp_path: Path, limit: str) -> None:
    status, told = await ask(ROOT, str(tmp_path / "audit.log"), f"?limit={limit}")
    assert (status, told["error"]["code"]) == (400, "E_BODY")
