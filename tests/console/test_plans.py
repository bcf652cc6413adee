"""EXPLAIN in the console: a plan beside an answer, and a stream's statement that is edited."""

from __future__ import annotations

import re

import pytest

from penstock.mesh.running import RunningMesh
from tests.console.conftest import SCREENS, Visit
from tests.console.test_newcomer import LIVE_MS
from tests.console.test_pages import ask, write
from tests.console.using import Open, check_axe, check_width, enter, run, take_picture

COUNTS = "SELECT _wstart, count(*) AS n FROM t INTERVAL({})"


def check_looks(one: Visit) -> None:
    check_width(one)
    check_axe(one)


@pytest.mark.parametrize("screen", SCREENS)
def test_a_plan_stands_beside_the_answer(visit: Open, mesh: RunningMesh, screen: str) -> None:
    database = "plan_" + screen.replace(" ", "_")
    run(
        mesh,
        f"CREATE DATABASE {database}",
        f"CREATE TABLE {database}.t (ts TIMESTAMP, v INT)",
        f"INSERT INTO {database}.t VALUES ('2026-01-01 00:00:00', 41)",
    )
    one = enter(visit, mesh, screen)
    one.go("sql")
    ask(one, f"SELECT v FROM {database}.t")
    answer = one.page.get_by_role("gridcell", name="41")
    answer.wait_for()
    write(one, f"USE {database}; INSERT INTO t VALUES (now, 1); SELECT max(v) AS top FROM t")
    one.page.keyboard.press("Escape")
    one.page.keyboard.press("ControlOrMeta+e")
    plan = one.page.get_by_role("region", name="Plan")
    plan.get_by_text(re.compile(rf"scan {database}\.t: columns")).wait_for()
    assert plan.get_by_role("term").first.inner_text() == "query"
    assert answer.is_visible()
    grid, beside = one.page.get_by_role("grid", name="Result").bounding_box(), plan.bounding_box()
    assert grid is not None and beside is not None
    narrow = SCREENS[screen][0] < 900
    assert beside["y"] >= grid["y"] + grid["height"] if narrow else beside["x"] > grid["x"]
    check_looks(one)
    take_picture(one, "sql")
    plan.get_by_role("button", name="Close the plan").click()
    plan.wait_for(state="detached")
    assert answer.is_visible()
    ask(one, f"SELECT count(*) AS n FROM {database}.t")
    # the INSERT in front of what was explained was not run
    one.page.get_by_role("gridcell", name="1", exact=True).wait_for()


def test_what_explain_does_not_take_is_told_by_the_gateway(visit: Open, mesh: RunningMesh) -> None:
    one = enter(visit, mesh)
    one.go("sql")
    write(one, "CREATE DATABASE never_made")
    one.page.keyboard.press("Escape")
    one.page.get_by_role("button", name="Explain", exact=True).click()
    plan = one.page.get_by_role("region", name="Plan")
    plan.get_by_role("alert").get_by_text("E_SYNTAX").wait_for()
    write(one, "SELECT 1 AS one")
    one.page.keyboard.press("Escape")
    one.page.keyboard.press("ControlOrMeta+k")
    # until then the editor gets what is typed
    one.page.locator("input[aria-label='Command']:focus").wait_for()
    one.page.keyboard.type("explain")
    one.page.keyboard.press("Enter")
    plan.get_by_text("SELECT 1 AS one").first.wait_for()
    ask(one, "SHOW DATABASES")
    one.page.get_by_role("grid", name="Result").wait_for()
    assert one.page.get_by_role("gridcell", name="never_made").count() == 0


def open_editor(one: Visit, database: str, name: str) -> None:
    one.go("streams", database, name)
    one.page.get_by_role("button", name="Edit", exact=True).click()
    one.page.locator(".cm-content").wait_for()


@pytest.mark.parametrize("screen", SCREENS)
def test_the_statement_of_a_stream_is_edited_checked_and_replaced(
    visit: Open, mesh: RunningMesh, screen: str
) -> None:
    database = "edit_" + screen.replace(" ", "_")
    run(
        mesh,
        f"CREATE DATABASE {database}",
        f"CREATE TABLE {database}.t (ts TIMESTAMP, v INT)",
        f"USE {database}; CREATE STREAM s TRIGGER AT_ONCE INTO r AS {COUNTS.format('1m')}",
        f"INSERT INTO {database}.t VALUES ('2026-01-01 00:00:00', 1) ('2026-01-01 00:01:00', 1)",
    )
    one = enter(visit, mesh, screen)
    open_editor(one, database, "s")
    editor = one.page.locator(".cm-content")
    editor.get_by_text("CREATE OR REPLACE STREAM s").first.wait_for()
    replace = one.page.get_by_role("button", name="Replace", exact=True)
    assert replace.is_disabled()
    text = f"CREATE OR REPLACE STREAM s TRIGGER AT_ONCE INTO r AS {COUNTS.format('5m')}"
    write(one, text)
    for _ in range(3):
        with one.page.expect_response(re.compile("/v1/streams/counters$")):
            pass
    assert editor.inner_text() == text, "an edit survives the page's questions"
    one.page.get_by_role("button", name="Check", exact=True).click()
    one.page.get_by_role("alert").get_by_text("E_STREAM_STATE").wait_for()
    assert replace.is_disabled()
    one.page.get_by_role("button", name="Write FILL_HISTORY 1").click()
    plan = one.page.get_by_role("region", name="Plan")
    plan.get_by_text("open windows are lost").wait_for()
    plan.get_by_text(f"{database}.r is kept with its rows").wait_for()
    check_looks(one)
    plan.scroll_into_view_if_needed()
    take_picture(one, "edit")
    replace.click()
    dialog = one.page.get_by_role("dialog")
    dialog.get_by_text("open windows are lost").wait_for()
    check_looks(one)
    dialog.get_by_label("to go on").fill("s")
    dialog.get_by_role("button", name="Replace it").click()
    dialog.wait_for(state="detached", timeout=LIVE_MS)
    one.page.locator("pre.text").filter(has_text="INTERVAL(5m)").wait_for()
    one.page.get_by_role("button", name="Edit", exact=True).wait_for()


def test_a_discarded_edit_leaves_the_statement(visit: Open, mesh: RunningMesh) -> None:
    run(
        mesh,
        "CREATE DATABASE discarded",
        "CREATE TABLE discarded.t (ts TIMESTAMP, v INT)",
        f"USE discarded; CREATE STREAM s INTO r AS {COUNTS.format('1m')}",
    )
    one = enter(visit, mesh)
    open_editor(one, "discarded", "s")
    write(one, f"CREATE OR REPLACE STREAM s MAX_STATE 64 INTO r AS {COUNTS.format('1m')}")
    one.page.keyboard.press("Escape")
    one.page.keyboard.press("ControlOrMeta+Enter")
    plan = one.page.get_by_role("region", name="Plan")
    plan.get_by_text("kept: it goes on with its open windows").wait_for()
    plan.get_by_text("MAX_STATE 64 (was 0)").wait_for()
    one.page.get_by_role("button", name="Discard", exact=True).click()
    assert "MAX_STATE" not in one.page.locator("pre.text").first.inner_text()
    open_editor(one, "discarded", "s")
    write(one, f"CREATE OR REPLACE STREAM another INTO r2 AS {COUNTS.format('1m')}")
    one.page.keyboard.press("Escape")
    one.page.keyboard.press("ControlOrMeta+Enter")
    one.page.get_by_text("It does not replace discarded.s").wait_for()
    assert one.page.get_by_role("button", name="Replace", exact=True).is_disabled()


def test_who_may_not_replace_a_stream_sees_no_edit(visit: Open, mesh: RunningMesh) -> None:
    run(
        mesh,
        "CREATE DATABASE unedited",
        "CREATE TABLE unedited.t (ts TIMESTAMP, v INT)",
        f"USE unedited; CREATE STREAM s INTO r AS {COUNTS.format('1m')}",
        "CREATE USER onlooker PASS 'Looks-0nly!'",
        "GRANT READ, ALTER ON unedited.* TO onlooker",
    )
    one = visit(mesh.gateway_url)
    one.log_in("onlooker", "Looks-0nly!")
    one.go("streams", "unedited", "s")
    one.page.get_by_role("button", name="Open in SQL").wait_for()
    assert one.page.get_by_role("button", name="Edit", exact=True).count() == 0


def test_a_statement_with_hidden_passwords_is_edited_in_sql(visit: Open, mesh: RunningMesh) -> None:
    run(
        mesh,
        "CREATE DATABASE secretive",
        "CREATE TABLE secretive.t (ts TIMESTAMP, v INT)",
        f"USE secretive; CREATE STREAM s AS {COUNTS.format('1m')}"
        " NOTIFY ('ws://me:pa55word@192.0.2.1:9/x') ON ('WINDOW_CLOSE')",
    )
    one = enter(visit, mesh)
    one.go("streams", "secretive", "s")
    one.page.get_by_role("button", name="Edit", exact=True).click()
    one.page.get_by_role("tab", name="CREATE OR REPLACE STREAM").wait_for()
    one.page.locator(".cm-content").get_by_text("***").first.wait_for()


def test_a_stretch_of_time_is_computed_again(visit: Open, mesh: RunningMesh) -> None:
    run(
        mesh,
        "CREATE DATABASE again",
        "CREATE TABLE again.t (ts TIMESTAMP, v INT)",
        f"USE again; CREATE STREAM s TRIGGER AT_ONCE IGNORE UPDATE 1 INTO r AS {COUNTS.format('1m')}",
        "INSERT INTO again.t VALUES ('2026-01-01 00:00:00', 1) ('2026-01-01 00:00:01', 1)",
        "INSERT INTO again.t VALUES ('2026-01-01 00:00:01', 2)",
    )
    one = enter(visit, mesh)
    one.go("streams", "again", "s")
    # a row that was written again counted again
    results = one.page.get_by_role("grid", name="Newest rows of r")
    results.get_by_role("gridcell", name="3", exact=True).wait_for(timeout=LIVE_MS)
    one.page.get_by_role("button", name="Recalculate s").click()
    dialog = one.page.get_by_role("dialog")
    dialog.get_by_label("From").fill("no time")
    dialog.get_by_role("button", name="Recalculate").click()
    dialog.get_by_text("this is not a range of times").wait_for()
    dialog.get_by_label("From").fill("2026-01-01 00:00:00")
    dialog.get_by_label("To").fill("2026-01-01 00:01:00")
    check_looks(one)
    dialog.get_by_role("button", name="Recalculate").click()
    dialog.wait_for(state="detached")
    results.get_by_role("gridcell", name="2", exact=True).wait_for(timeout=LIVE_MS)
