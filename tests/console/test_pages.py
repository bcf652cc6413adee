"""Each page of the console, used as its user would, against a real mesh."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.mesh.running import RunningMesh, running_mesh
from tests.console.conftest import SCREENS, Visit
from tests.console.using import Open, check_axe, check_width, enter, run, take_completion

BIG = 9_007_199_254_740_993
PAGES = (
    "",
    "sql",
    "streams",
    "graph",
    "live",
    "tables",
    "dead-letters",
    "dead-letters/late",
    "connect",
    "users",
    "mesh",
    "mesh/log",
)


def write(one: Visit, text: str) -> None:
    """Write *text* into the editor in place of what it holds."""
    one.page.locator(".cm-content").click()
    one.page.keyboard.press("ControlOrMeta+a")
    one.page.keyboard.insert_text(text)


def ask(one: Visit, text: str) -> None:
    write(one, text)
    one.page.keyboard.press("Escape")
    one.page.keyboard.press("ControlOrMeta+Enter")


def test_an_empty_mesh_says_what_to_do_first(visit: Open, tmp_path: Path) -> None:
    with running_mesh(tmp_path) as mesh:
        one = enter(visit, mesh)
        steps = one.page.get_by_label("First steps")
        steps.get_by_text(re.compile(r"^penstock demo --url")).wait_for()
        steps.get_by_role("link", name="open SQL").click()
        one.page.get_by_role("tab", name="CREATE DATABASE plant").wait_for()


@pytest.mark.parametrize("screen", SCREENS)
def test_log_in_and_out(visit: Open, mesh: RunningMesh, screen: str) -> None:
    one = visit(mesh.gateway_url, screen)
    one.page.goto(mesh.gateway_url)
    one.page.get_by_label("User").fill(mesh.user)
    one.page.get_by_label("Password").fill("wrong")
    one.page.get_by_role("button", name="Log in").click()
    one.page.get_by_role("alert").get_by_text("E_AUTH").wait_for()
    one.log_in(mesh.user, mesh.password)
    one.page.reload()
    one.page.get_by_role("heading", name="Home").wait_for()
    one.page.get_by_label(f"Logged in as {mesh.user}").click()
    one.page.get_by_role("button", name="Log out", exact=True).click()
    one.page.get_by_role("button", name="Log in").wait_for()


def test_a_used_link_leads_to_a_page_that_helps(visit: Open, mesh: RunningMesh) -> None:
    one = visit(mesh.gateway_url)
    one.page.goto(f"{mesh.gateway_url}/login?token=used")
    one.page.get_by_text("That link was used before").wait_for()
    one.page.get_by_text("penstock login").wait_for()
    assert one.page.url == f"{mesh.gateway_url}/"


def test_sql_shows_whole_numbers_exactly_and_errors_with_a_caret(
    visit: Open, mesh: RunningMesh
) -> None:
    one = enter(visit, mesh)
    one.go("sql")
    ask(one, f"SELECT {BIG} AS big")
    one.page.get_by_role("gridcell", name=str(BIG)).wait_for()
    ask(one, "SELECT * FRM t")
    alert = one.page.get_by_role("alert")
    alert.get_by_text("E_SYNTAX").wait_for()
    assert "^" in alert.locator("pre").inner_text()
    one.page.reload()
    one.page.get_by_role("tab", name="SELECT * FRM t").wait_for()
    one.page.get_by_text("History").last.click()
    one.page.get_by_role("button", name=f"SELECT {BIG}").click()
    one.page.get_by_role("tab", name=f"SELECT {BIG}").wait_for()


def test_sql_completes_names_and_marks_mistakes(visit: Open, mesh: RunningMesh) -> None:
    run(
        mesh,
        "CREATE DATABASE complete",
        "CREATE TABLE complete.readings (ts TIMESTAMP, temperature DOUBLE)",
    )
    one = enter(visit, mesh)
    one.go("sql")
    write(one, "SELECT  FROM complete.readings")
    one.page.keyboard.press("Home")
    for _ in "SELECT ":
        one.page.keyboard.press("ArrowRight")
    one.page.keyboard.type("temp")
    take_completion(one, "temperature")
    one.page.get_by_text("SELECT temperature FROM").first.wait_for()
    write(one, "SELECT tempereture FROM complete.readings")
    mark = one.page.locator(".cm-lintRange-error")
    mark.wait_for()
    assert mark.inner_text() == "tempereture"


def test_what_is_written_over_a_selection_takes_its_place(visit: Open, mesh: RunningMesh) -> None:
    one = enter(visit, mesh)
    one.go("sql")
    write(one, "SELECT 1 AS one")
    one.page.keyboard.press("ControlOrMeta+a")
    one.page.keyboard.type("SELECT 2 ", delay=20)
    one.page.get_by_role("tab", name="SELECT 2").wait_for()
    one.page.keyboard.press("ControlOrMeta+z")
    one.page.get_by_role("tab", name="SELECT 1 AS one").wait_for()


def test_sql_sorts_downloads_and_opens_the_schema(visit: Open, mesh: RunningMesh) -> None:
    run(
        mesh,
        "CREATE DATABASE sorted",
        "CREATE STABLE sorted.m (ts TIMESTAMP, v BIGINT) TAGS (site VARCHAR(8))",
        "INSERT INTO sorted.m1 USING sorted.m TAGS ('a') VALUES"
        f" ('2026-01-01 00:00:00', 2) ('2026-01-01 00:00:01', {BIG}) ('2026-01-01 00:00:02', NULL)",
    )
    one = enter(visit, mesh)
    one.go("sql")
    ask(one, "SELECT v FROM sorted.m ORDER BY ts")
    head = one.page.get_by_role("columnheader", name="v")
    head.get_by_role("button").click()
    head.get_by_role("button").click()
    cells = one.page.get_by_role("gridcell")
    assert cells.all_inner_texts() == [str(BIG), "2", "NULL"]
    with one.page.expect_download() as download:
        one.page.get_by_role("button", name="Download CSV").click()
    assert download.value.path().read_bytes() == f"v\r\n2\r\n{BIG}\r\n\r\n".encode()
    tree = one.page.get_by_label("Schema")
    tree.get_by_text("sorted", exact=True).click()
    tree.get_by_text("m supertable").click()
    tree.get_by_text("VARCHAR(8), tag").wait_for()
    tree.get_by_text("Child tables").click()
    tree.get_by_role("button", name="m1").click()
    one.page.get_by_text("SELECT * FROM `sorted`.`m1`").first.wait_for()


@pytest.mark.parametrize("screen", SCREENS)
def test_a_stream_is_paused_resumed_and_dropped(
    visit: Open, mesh: RunningMesh, screen: str
) -> None:
    name = re.sub(r"\W", "_", screen)
    run(
        mesh,
        f"CREATE DATABASE d_{name}",
        f"CREATE TABLE d_{name}.t (ts TIMESTAMP, v INT)",
        f"USE d_{name}; CREATE STREAM s_{name} TRIGGER AT_ONCE INTO r AS"
        " SELECT _wstart, count(*) AS n FROM t INTERVAL(1m)",
        f"INSERT INTO d_{name}.t VALUES ('2026-01-01 00:00:00', 1)",
    )
    one = enter(visit, mesh, screen)
    one.go("streams")
    link = one.page.get_by_role("link", name=f"s_{name}", exact=True)
    row = one.page.get_by_role("row").filter(has=link)
    row.get_by_text("ready").wait_for()
    row.get_by_role("button", name="Pause").click()
    row.get_by_text("paused").wait_for()
    row.get_by_role("button", name="Resume").click()
    row.get_by_text("ready").wait_for()
    one.go("streams", f"d_{name}", f"s_{name}")
    one.page.get_by_role("grid", name="Newest rows of r").wait_for()
    one.page.get_by_role("button", name=f"Drop s_{name}").click()
    drop = one.page.get_by_role("button", name="Drop it")
    assert drop.is_disabled()
    one.page.get_by_label("to go on").fill(f"s_{name}")
    drop.click()
    one.page.get_by_text(f"There is no stream s_{name}").wait_for()


def test_who_may_only_read_sees_no_buttons_that_would_fail(visit: Open, mesh: RunningMesh) -> None:
    run(
        mesh,
        "CREATE DATABASE quiet",
        "CREATE TABLE quiet.t (ts TIMESTAMP, v INT)",
        "USE quiet; CREATE STREAM looked_at INTO r AS SELECT _wstart, count(*) AS n FROM t"
        " INTERVAL(1m)",
        "CREATE USER looker PASS 'Looks-0nly!'",
        "GRANT READ ON quiet.* TO looker",
    )
    one = visit(mesh.gateway_url)
    one.log_in("looker", "Looks-0nly!")
    one.go("streams")
    row = one.page.get_by_role("row").filter(has_text="looked_at")
    row.wait_for()
    assert row.get_by_role("button").count() == 0


def test_tables_show_columns_rows_and_streams(visit: Open, mesh: RunningMesh) -> None:
    run(
        mesh,
        "CREATE DATABASE shown",
        "CREATE STABLE shown.meters (ts TIMESTAMP, big BIGINT) TAGS (site VARCHAR(8))",
        "USE shown; CREATE STREAM reads INTO r AS SELECT _wstart, count(*) AS n FROM meters"
        " INTERVAL(1m)",
        f"INSERT INTO shown.m1 USING shown.meters TAGS ('a') VALUES ('2026-01-01 00:00:00', {BIG})",
    )
    one = enter(visit, mesh)
    one.go("tables", "shown")
    one.page.get_by_role("link", name="meters", exact=True).click()
    for grid in ("Newest rows of meters", "Latest rows of meters"):
        cells = one.page.get_by_role("grid", name=grid)
        cells.get_by_role("gridcell", name=str(BIG)).wait_for()
    shown = one.page.get_by_role("table", name="Columns")
    shown.get_by_role("row").filter(has_text="site").get_by_text("tag").wait_for()
    one.page.get_by_role("row").filter(has_text="reads").get_by_role("link").wait_for()


def test_mesh_shows_each_service(visit: Open, mesh: RunningMesh) -> None:
    one = enter(visit, mesh)
    one.go("mesh")
    services = one.page.get_by_role("table", name="Services")
    for name in ("gateway", "store", "notifier"):
        services.get_by_role("row").filter(has_text=name).first.wait_for()


def test_the_palette_goes_to_a_page_without_the_mouse(visit: Open, mesh: RunningMesh) -> None:
    one = enter(visit, mesh)
    one.page.keyboard.press("ControlOrMeta+k")
    one.page.keyboard.type("mesh")
    one.page.keyboard.press("Enter")
    one.page.get_by_role("heading", name="Mesh", exact=True).wait_for()
    one.page.keyboard.type("gt")
    one.page.get_by_role("heading", name="Tables", exact=True).wait_for()


@pytest.mark.parametrize("screen", SCREENS)
def test_no_page_is_wider_than_its_screen(visit: Open, mesh: RunningMesh, screen: str) -> None:
    one = enter(visit, mesh, screen)
    for path in PAGES:
        one.go(path)
        one.page.locator("main h1").first.wait_for(state="attached")
        check_width(one)


@pytest.mark.parametrize("screen", SCREENS)
def test_axe_finds_nothing_serious(visit: Open, mesh: RunningMesh, screen: str) -> None:
    one = enter(visit, mesh, screen)
    for path in PAGES:
        one.go(path)
        one.page.locator("main h1").first.wait_for(state="attached")
        one.page.wait_for_timeout(1000)
        check_axe(one)
