"""The console's page Connect: what it copies is run, by the programs that it is for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading

import pytest

from penstock.mesh.running import RunningMesh
from tests.console.conftest import SCREENS, Visit
from tests.console.using import Open, check_axe, check_width, enter, run

PATIENCE_S = 120


def copied(one: Visit, title: str) -> str:
    """Press a program's button; return what is on the clipboard then."""
    region = one.page.get_by_role("region", name=title, exact=True)
    region.get_by_role("button").click()
    region.get_by_text("Copied", exact=True).wait_for()
    return str(one.page.evaluate("navigator.clipboard.readText()"))


def output_of(*command: str, stdin: str = "") -> str:
    ended = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def first_rows(program: str, password: str) -> str:
    """Return the first line that a program prints which never ends by itself."""
    with subprocess.Popen(
        [sys.executable, "-u", "-c", program],
        stdout=subprocess.PIPE,
        env={**os.environ, "PENSTOCK_PASSWORD": password},
        text=True,
    ) as process:
        assert process.stdout is not None
        late = threading.Timer(PATIENCE_S, process.kill)
        late.start()
        try:
            return process.stdout.readline()
        finally:
            late.cancel()
            process.kill()


@pytest.mark.parametrize("screen", SCREENS)
def test_a_token_by_one_click_stands_in_programs_that_work(
    visit: Open, mesh: RunningMesh, screen: str
) -> None:
    name = "reach_" + re.sub(r"\W", "_", screen)
    run(
        mesh,
        f"CREATE DATABASE {name}",
        f"CREATE TABLE {name}.meters (ts TIMESTAMP, volts DOUBLE)",
        f"INSERT INTO {name}.meters VALUES ('2026-01-01 00:00:00', 230.5)",
    )
    one = enter(visit, mesh, screen)
    one.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    one.go("connect")
    addresses = one.page.get_by_role("table", name="Addresses")
    for address in (mesh.gateway_url, mesh.store_url, mesh.kafka_bootstrap, mesh.notifier_url):
        addresses.get_by_text(address, exact=True).wait_for()
    one.page.get_by_role("combobox", name="Database").select_option(name)
    one.page.get_by_text(f"FROM `{name}`.`meters`").first.wait_for()
    one.page.get_by_role("button", name="Make a token").click()
    token = one.page.locator("#token").inner_text()
    one.page.get_by_text("It ends on").wait_for()
    check_width(one)
    assert token in copied(one, "Python")
    assert "230.5" in output_of(sys.executable, "-", stdin=copied(one, "Python"))
    assert "230.5" in output_of("sh", stdin=copied(one, "curl"))
    assert "230.5" in output_of(sys.executable, "-", stdin=copied(one, "Arrow Flight"))
    assert output_of("sh", stdin=copied(one, "Line protocol")) == ""
    if screen == "wide light":  # the next one would wait until the group forgets this one
        assert "230.5" in first_rows(copied(one, "Kafka"), mesh.password)
    jdbc = copied(one, "JDBC")
    assert f"{mesh.gateway_url.replace('http', 'jdbc:TAOS-RS')}/{name}" in jdbc


@pytest.mark.parametrize("screen", SCREENS)
def test_axe_finds_nothing_serious_in_connect(visit: Open, mesh: RunningMesh, screen: str) -> None:
    one = enter(visit, mesh, screen)
    one.go("connect")
    one.page.get_by_role("button", name="Make a token").click()
    one.page.get_by_text("It ends on").wait_for()
    check_axe(one)


def test_connect_is_reached_and_used_without_the_mouse(visit: Open, mesh: RunningMesh) -> None:
    one = enter(visit, mesh)
    one.page.keyboard.type("gc")
    button = one.page.get_by_role("button", name="Make a token")
    button.focus()
    one.page.keyboard.press("Enter")
    one.page.get_by_text("It ends on").wait_for()
