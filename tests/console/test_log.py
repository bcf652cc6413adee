"""The log on the console's page Mesh: found by text and trace, narrowed, paused, and who sees it."""

from __future__ import annotations

import re

import httpx
import pytest

from penstock.mesh.running import RunningMesh
from tests.console.conftest import SCREENS, Visit
from tests.console.using import Open, check_axe, check_width, enter, run, take_picture
from tests.stack.conftest import eventually
from tests.stack.names import unique

SAID = "rows were not written"


def refuse_a_row(mesh: RunningMesh) -> str:
    """Write a row that the gateway refuses, and return the trace id that it came with."""
    database, trace = unique("log"), unique("refused")
    run(mesh, f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (ts TIMESTAMP, v INT)")
    answer = httpx.post(
        f"{mesh.gateway_url}/v1/tables/{database}/t/rows",
        json=[{"ts": "2026-03-01T09:00:00Z", "v": "no number"}],
        auth=(mesh.user, mesh.password),
        headers={"X-Trace-Id": trace},
        timeout=60,
    )
    assert answer.status_code == 400
    return trace


def is_logged(mesh: RunningMesh, trace: str) -> bool:
    answer = httpx.get(
        f"{mesh.gateway_url}/v1/logs",
        params={"trace": trace},
        auth=(mesh.user, mesh.password),
        timeout=60,
    )
    return SAID in [entry["text"] for entry in answer.raise_for_status().json()["entries"]]


def search(one: Visit, text: str) -> None:
    one.page.get_by_label("Text", exact=True).fill(text)
    one.page.get_by_label("Text", exact=True).press("Enter")


@pytest.mark.parametrize("screen", SCREENS)
def test_a_refused_row_is_found_by_its_trace(visit: Open, mesh: RunningMesh, screen: str) -> None:
    trace = refuse_a_row(mesh)
    one = enter(visit, mesh, screen)
    one.go("mesh")
    one.page.get_by_role("link", name="Log", exact=True).click()
    entries = one.page.get_by_role("list", name="Entries")
    search(one, SAID.upper())
    entries.get_by_role("link", name=trace).click()
    one.page.wait_for_url(re.compile(rf"#/mesh/log/{trace}$"))
    assert one.page.get_by_label("Trace id").input_value() == trace
    entries.get_by_text(SAID).wait_for()
    found = entries.get_by_role("listitem")
    assert found.filter(has_text=trace).count() == found.count()
    check_width(one)
    check_axe(one)
    take_picture(one, "log")


def test_the_log_is_narrowed_to_a_service_and_a_level(visit: Open, mesh: RunningMesh) -> None:
    trace = refuse_a_row(mesh)
    one = enter(visit, mesh)
    one.go("mesh", "log", trace)
    entry = one.page.get_by_role("list", name="Entries").get_by_text(SAID)
    entry.wait_for()
    one.page.get_by_label("Level").select_option("error")
    one.page.get_by_text("There is nothing of this.").wait_for()
    one.page.get_by_label("Level").select_option("info")
    entry.wait_for()
    one.page.get_by_label("Service").select_option("store")
    one.page.get_by_text("There is nothing of this.").wait_for()
    one.page.get_by_label("Service").select_option("gateway")
    entry.wait_for()
    one.page.get_by_label("Trace id").fill("")
    one.page.get_by_label("Trace id").press("Enter")
    one.page.wait_for_url(re.compile(r"#/mesh/log$"))


def test_a_paused_log_stands_still(visit: Open, mesh: RunningMesh) -> None:
    first = refuse_a_row(mesh)
    one = enter(visit, mesh)
    one.go("mesh", "log")
    search(one, SAID)
    entries = one.page.get_by_role("list", name="Entries")
    entries.get_by_role("link", name=first).wait_for()
    one.page.get_by_role("button", name="Pause").click()
    resume = one.page.get_by_role("button", name="Resume")
    resume.wait_for()
    second = refuse_a_row(mesh)
    eventually(lambda: is_logged(mesh, second))
    assert entries.get_by_role("link", name=second).count() == 0
    resume.click()
    entries.get_by_role("link", name=second).wait_for()


def test_without_admin_the_page_says_who_sees_the_log(visit: Open, mesh: RunningMesh) -> None:
    name, password = unique("curious"), "Works-0nly!"
    run(mesh, f"CREATE USER {name} PASS '{password}'")
    one = visit(mesh.gateway_url)
    one.log_in(name, password)
    one.go("mesh", "log")
    one.page.get_by_text("who has ADMIN sees them").wait_for()
    assert one.page.get_by_role("list", name="Entries").count() == 0
    assert one.page.get_by_role("button", name="Pause").count() == 0
