"""The page of a table, used as its user would: facts, latest rows of child tables, a row written."""

from __future__ import annotations

import re

import pytest

from penstock.mesh.running import RunningMesh
from tests.console.conftest import SCREENS
from tests.console.using import Open, check_axe, check_width, enter, run, take_picture

BIG = 9_007_199_254_740_993


def test_facts_of_a_table_and_of_a_child_table(visit: Open, mesh: RunningMesh) -> None:
    run(
        mesh,
        "CREATE DATABASE facts KEEP 3650 PARTITIONS 2",
        "CREATE STABLE facts.meters (ts TIMESTAMP, v INT) TAGS (site VARCHAR(8)) KEEP 100"
        " COMMENT 'in the cellar'",
        "CREATE TABLE facts.plain (ts TIMESTAMP, v INT)",
        "INSERT INTO facts.m1 USING facts.meters TAGS ('north') VALUES (NOW, 1)"
        " facts.m2 USING facts.meters TAGS ('south') VALUES (NOW, 2)",
    )
    one = enter(visit, mesh)
    one.go("tables", "facts", "meters")
    facts = one.page.get_by_label("Facts")
    facts.get_by_text("supertable", exact=True).wait_for()
    facts.get_by_text("100d, by its own KEEP; the database's is 3650d").wait_for()
    facts.get_by_text("in the cellar").wait_for()
    facts.get_by_text(re.compile(r"^2(, \d of them in no file yet)?$")).nth(2).wait_for()
    facts.get_by_text(re.compile(r"B in \d files?$")).wait_for()
    take_picture(one, "table")
    one.go("tables", "facts", "plain")
    facts.get_by_text("3650d, by the database's KEEP").wait_for()
    one.go("tables", "facts", "m1")
    facts.get_by_text("north").wait_for()
    facts.get_by_role("link", name="meters").click()
    one.page.get_by_role("heading", name="meters", exact=True).wait_for()


def test_latest_rows_come_a_hundred_child_tables_at_a_time(visit: Open, mesh: RunningMesh) -> None:
    children = " ".join(
        f"c{at:03} USING m TAGS ({at}) VALUES ('2026-01-01', {BIG + at}) ('2026-01-02', {at})"
        for at in range(120)
    )
    run(
        mesh,
        "CREATE DATABASE newest",
        "USE newest; CREATE STABLE m (ts TIMESTAMP, v BIGINT) TAGS (g INT)",
        "CREATE TABLE newest.b_empty USING newest.m TAGS (7)",
        f"USE newest; INSERT INTO {children}",
        f"INSERT INTO newest.c000 VALUES ('2026-01-03', {BIG})",
    )
    one = enter(visit, mesh)
    one.go("tables", "newest", "m")
    one.page.get_by_text("From b_empty to c098; 1 of these 100 have no row.").wait_for()
    latest = one.page.get_by_role("grid", name="Latest rows of m")
    latest.get_by_role("gridcell", name=str(BIG)).wait_for()
    one.page.get_by_role("button", name="Next 100").click()
    one.page.get_by_text("From c099 to c119.").wait_for()
    assert one.page.get_by_role("button", name="Next 100").count() == 0
    one.page.get_by_role("button", name="Previous 100").click()
    one.page.get_by_text("From b_empty to c098").wait_for()
    one.page.get_by_label("Child table", exact=True).fill("c119")
    one.page.keyboard.press("Enter")
    one.page.get_by_role("heading", name="c119").wait_for()


@pytest.mark.parametrize("screen", SCREENS)
def test_a_row_is_written_with_the_keyboard(visit: Open, mesh: RunningMesh, screen: str) -> None:
    home = "w_" + screen.replace(" ", "_")
    run(
        mesh,
        f"CREATE DATABASE {home}",
        f"CREATE STABLE {home}.m (ts TIMESTAMP, n BIGINT, s VARCHAR(8), b BOOL, x VARBINARY(4))"
        " TAGS (site VARCHAR(8), g INT)",
    )
    one = enter(visit, mesh, screen)
    one.go("tables", home, "m")
    one.page.get_by_role("button", name="Insert a row").press("Enter")
    form = one.page.get_by_role("form", name="Insert a row")
    one.page.locator("input:focus").wait_for()
    one.page.keyboard.type("it's")
    form.get_by_label("ts TIMESTAMP").fill("2026-01-01 00:00:00")
    form.get_by_label("n BIGINT").fill("many")
    form.get_by_label("s VARCHAR(8)").fill("a\\b")
    form.get_by_label("b BOOL").select_option("true")
    form.get_by_label("x VARBINARY").fill("00ff")
    form.get_by_label("site VARCHAR(8), tag").fill("north")
    statement = form.get_by_label("The statement")
    statement.filter(
        has_text=f"INSERT INTO `{home}`.`it's` USING `{home}`.`m` (`site`, `g`) TAGS ('north', NULL)"
        " (`ts`, `n`, `s`, `b`, `x`)"
        r" VALUES ('2026-01-01 00:00:00', 'many', 'a\\b', true, '\\x00ff')"
    ).wait_for()
    one.page.keyboard.press("Enter")
    form.get_by_role("alert").filter(has_text="'many' is not BIGINT").wait_for()
    number = form.get_by_label("n BIGINT")
    assert number.evaluate("(field) => field === document.activeElement")
    assert number.get_attribute("aria-invalid") == "true"
    check_axe(one)
    check_width(one)
    number.fill(str(BIG))
    one.page.keyboard.press("Enter")
    form.get_by_text("The row is written.").wait_for()
    form.get_by_text("It exists, with site = north, g = NULL.").wait_for()
    form.get_by_role("button", name="Now for ts").press("Enter")
    form.get_by_label("n BIGINT").fill("")
    form.get_by_label("s is NULL").press("Space")
    statement.filter(
        has_text=f"INSERT INTO `{home}`.`it's` (`ts`, `n`, `s`, `b`, `x`)"
        r" VALUES (NOW, NULL, NULL, true, '\\x00ff')"
    ).wait_for()
    form.get_by_role("button", name="Insert").press("Enter")
    form.get_by_text("The row is written.").wait_for()
    newest = one.page.get_by_role("grid", name="Newest rows of m")
    newest.get_by_role("gridcell", name="NULL").first.wait_for()
    newest.get_by_role("gridcell", name=str(BIG)).wait_for()


def test_who_may_not_write_has_no_form(visit: Open, mesh: RunningMesh) -> None:
    run(
        mesh,
        "CREATE DATABASE only_read",
        "CREATE TABLE only_read.t (ts TIMESTAMP, v INT)",
        "CREATE TABLE only_read.both (ts TIMESTAMP, v INT)",
        "USE only_read; CREATE VTABLE room (ts TIMESTAMP, v INT FROM t.v)",
        "CREATE USER peeks PASS 'Peeks-0nly!'",
        "GRANT READ ON only_read.* TO peeks",
        "GRANT WRITE ON only_read.both TO peeks",
    )
    one = visit(mesh.gateway_url)
    one.log_in("peeks", "Peeks-0nly!")
    insert = one.page.get_by_role("button", name="Insert a row")
    one.go("tables", "only_read", "both")
    insert.wait_for()
    one.go("tables", "only_read", "t")
    one.page.get_by_label("Facts").wait_for()
    assert insert.count() == 0
    of_root = enter(visit, mesh)
    of_root.go("tables", "only_read", "room")
    of_root.page.get_by_label("Facts").get_by_text("virtual table").wait_for()
    assert of_root.page.get_by_role("button", name="Insert a row").count() == 0


def test_a_stream_shows_its_quotas_and_what_it_uses(visit: Open, mesh: RunningMesh) -> None:
    run(
        mesh,
        "CREATE DATABASE limits",
        "CREATE TABLE limits.t (ts TIMESTAMP, v INT)",
        "USE limits; CREATE STREAM bounded MAX_RESULTS 1000 INTO r AS"
        " SELECT _wstart, count(*) AS n FROM t INTERVAL(1m)",
    )
    one = enter(visit, mesh)
    one.go("streams", "limits", "bounded")
    one.page.get_by_label("Results of MAX_RESULTS").wait_for()
    one.page.get_by_text("of 1,000/s (MAX_RESULTS)").wait_for()
    one.page.get_by_text("no quota (MAX_STATE)").wait_for()
    check_axe(one)
    one.page.get_by_role("link", name="Change them in SQL").click()
    text = "ALTER STREAM `limits`.`bounded` MAX_RESULTS 1000 MAX_STATE 0"
    one.page.locator(".cm-content").filter(has_text=text).wait_for()
