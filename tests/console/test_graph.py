"""The console's page Graph: what flows into what, seen, walked by keyboard and read as a list."""

from __future__ import annotations

import re

import pytest

from penstock.mesh.running import RunningMesh
from tests.console.conftest import SCREENS
from tests.console.using import Open, check_axe, check_width, enter, run


def make(mesh: RunningMesh, screen: str) -> str:
    """Make a database in which a stream feeds a second one; return its name."""
    name = "graph_" + re.sub(r"\W", "_", screen)
    run(
        mesh,
        f"CREATE DATABASE {name}",
        f"CREATE TABLE {name}.readings (ts TIMESTAMP, v INT)",
        f"USE {name}; CREATE STREAM minutes INTO by_minute AS SELECT _wstart, count(*) AS n"
        " FROM readings INTERVAL(1m)",
        f"USE {name}; CREATE STREAM hours INTO by_hour AS SELECT _wstart, sum(n) AS n"
        " FROM by_minute INTERVAL(1h)",
    )
    return name


@pytest.mark.parametrize("screen", SCREENS)
def test_rows_flow_from_table_to_table_and_each_leads_to_its_page(
    visit: Open, mesh: RunningMesh, screen: str
) -> None:
    name = make(mesh, screen)
    one = enter(visit, mesh, screen)
    one.go("graph")
    picture = one.page.get_by_role("group", name="What flows into what")
    picture.get_by_role("link", name=f"stream {name}.minutes").wait_for()
    assert picture.get_by_role("link", name=f"table {name}.by_minute").count() == 1
    choice = one.page.get_by_label("Database")
    if choice.count():
        choice.select_option(name)
    rows = one.page.get_by_role("table", name="Flows").get_by_role("row")
    minutes = rows.filter(has=one.page.get_by_role("link", name=f"{name}.minutes", exact=True))
    minutes.filter(has_text="stream").get_by_role("link", name=f"{name}.by_minute").wait_for()
    check_width(one)
    check_axe(one)
    # by keyboard alone: from the picture to the page of a stream
    link = picture.get_by_role("link", name=f"stream {name}.hours")
    one.page.get_by_role("region", name="Graph, scrolls").focus()
    for _ in range(len(picture.get_by_role("link").all())):
        one.page.keyboard.press("Tab")
        if link.evaluate("(node) => node === document.activeElement"):
            break
    one.page.keyboard.press("Enter")
    one.page.get_by_role("heading", name="hours", exact=True).wait_for()


@pytest.mark.parametrize("screen", SCREENS)
def test_what_stands_still_is_named_on_top(visit: Open, mesh: RunningMesh, screen: str) -> None:
    name = "still_" + re.sub(r"\W", "_", screen)
    run(
        mesh,
        f"CREATE DATABASE {name}",
        f"CREATE TABLE {name}.t (ts TIMESTAMP, v INT)",
        f"CREATE STABLE {name}.small (ts TIMESTAMP, n TINYINT) TAGS (kind VARCHAR(9))",
        f"USE {name}; CREATE STREAM breaks TRIGGER AT_ONCE ON_ERROR STOP INTO small TAGS (kind) AS"
        " SELECT _wstart, sum(v) AS n FROM t PARTITION BY tbname AS kind INTERVAL(1m)",
        f"INSERT INTO {name}.t VALUES ('2026-01-01 00:00:00', 300)",
    )
    one = enter(visit, mesh, screen)
    one.go("graph")
    still = one.page.get_by_label("What stands still")
    still.get_by_role("listitem").filter(has_text=f"{name}.breaks").wait_for()
    node = one.page.locator("a.node.bad").filter(has_text="breaks")
    node.first.wait_for()
    assert "failed" in (node.first.text_content() or "")
    check_axe(one)
    still.get_by_role("link", name=f"{name}.breaks").click()
    one.page.get_by_role("heading", name="breaks", exact=True).wait_for()


def test_without_anything_that_flows_it_says_how_to_begin(visit: Open, mesh: RunningMesh) -> None:
    run(mesh, "CREATE USER sees_nothing PASS 'Sees-n0thing!'")
    one = visit(mesh.gateway_url)
    one.log_in("sees_nothing", "Sees-n0thing!")
    one.page.keyboard.type("gr")
    one.page.get_by_text("Nothing flows yet").wait_for()
    check_axe(one)
    one.page.get_by_role("link", name="Write a stream").click()
    one.page.get_by_role("tab", name="CREATE STREAM").wait_for()
