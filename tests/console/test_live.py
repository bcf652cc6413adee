"""The console's page Live: rows as they come, and a long table of which only what is seen is sent."""

from __future__ import annotations

import re
import time
from urllib.parse import quote

import polars as pl
import pytest

from penstock.mesh.running import RunningMesh
from tests.console.conftest import SCREENS, Visit
from tests.console.using import Open, check_axe, check_width, client_of, enter, run

MANY = 1_000_000
AT_ONCE = 250_000
#: rows of the grid that are in the page at most: what is seen, and some on both sides
MOST_IN_PAGE = 60
#: where a flight over the grid stops for a moment; there are four flights
PLACES = 100
T0 = 1_577_836_800_000  # 2020-01-01


def open_live(one: Visit, database: str, table: str) -> None:
    one.go("live", database, table)
    one.page.get_by_text("● live", exact=True).wait_for()


def body_rows(one: Visit) -> list[list[str]]:
    """Return the cells of the rows that are in the page."""
    rows = one.page.get_by_role("grid").locator(".body [role=row]")
    return [r.get_by_role("gridcell").all_inner_texts() for r in rows.all()]


def meters(mesh: RunningMesh, database: str) -> None:
    run(
        mesh,
        f"CREATE DATABASE {database}",
        f"CREATE STABLE {database}.meters (ts TIMESTAMP, volts DOUBLE) TAGS (site VARCHAR(8))",
        f"INSERT INTO {database}.m1 USING {database}.meters TAGS ('north')"
        " VALUES ('2026-01-01 00:00:00', 201.5) ('2026-01-01 00:00:01', 202.5)",
    )


def insert(mesh: RunningMesh, database: str, second: int, volts: float) -> None:
    run(
        mesh,
        f"INSERT INTO {database}.m2 USING {database}.meters TAGS ('south')"
        f" VALUES ('2026-01-01 00:01:{second:02}', {volts})",
    )


@pytest.mark.parametrize("screen", SCREENS)
def test_rows_are_on_top_as_they_come_and_wait_while_paused(
    visit: Open, mesh: RunningMesh, screen: str
) -> None:
    name = "live_" + re.sub(r"\W", "_", screen)
    meters(mesh, name)
    one = enter(visit, mesh, screen)
    open_live(one, name, "meters")
    grid = one.page.get_by_role("grid", name="Rows of meters")
    # a narrow screen has no room for the columns behind the time
    grid.get_by_text("00:00:01.000Z").wait_for()
    insert(mesh, name, 0, 301.5)
    grid.get_by_text("00:01:00.000Z").wait_for()
    assert [row[:3] for row in body_rows(one)] == [
        ["upsert", "m2", "2026-01-01T00:01:00.000Z"],
        ["", "m1", "2026-01-01T00:00:01.000Z"],
        ["", "m1", "2026-01-01T00:00:00.000Z"],
    ]
    one.page.get_by_role("button", name="Pause").click()
    one.page.get_by_text("❚❚ paused", exact=True).wait_for()
    insert(mesh, name, 1, 302.5)
    one.page.get_by_role("button", name="Show 1 new").wait_for()
    assert grid.get_by_text("00:01:01.000Z").count() == 0
    one.page.get_by_role("button", name="Resume").click()
    grid.get_by_text("00:01:01.000Z").wait_for()
    one.page.get_by_text("2 received").wait_for()
    one.page.get_by_label("A line for each").select_option("site")
    one.page.get_by_role("img", name="volts by site").locator("canvas").wait_for()
    lines = one.page.get_by_role("list", name="Lines")
    assert [text.strip() for text in lines.get_by_role("listitem").all_inner_texts()] == [
        "north",
        "south",
    ]
    check_width(one)


@pytest.mark.parametrize("screen", SCREENS)
def test_axe_finds_nothing_serious_in_live(visit: Open, mesh: RunningMesh, screen: str) -> None:
    name = "liveaxe_" + re.sub(r"\W", "_", screen)
    meters(mesh, name)
    one = enter(visit, mesh, screen)
    open_live(one, name, "meters")
    one.page.get_by_role("grid").get_by_text("00:00:01.000Z").wait_for()
    check_axe(one)


def test_what_is_followed_is_named_in_many_ways(visit: Open, mesh: RunningMesh) -> None:
    meters(mesh, "named")
    run(
        mesh,
        "CREATE STREAM named.minutes TRIGGER AT_ONCE INTO named.by_minute AS"
        " SELECT _wstart, count(*) AS n FROM named.meters INTERVAL(1m)",
    )
    one = enter(visit, mesh)
    one.page.keyboard.type("gl")
    field = one.page.get_by_label("Table, stream or pq:// URI")
    field.fill("named.meters")
    one.page.keyboard.press("Enter")
    one.page.get_by_role("heading", name="named.meters").wait_for()
    options = one.page.locator("#followable option")
    options.and_(one.page.locator("[value='named.minutes']")).wait_for(state="attached")
    one.go("live", "named", "minutes")
    one.page.get_by_role("heading", name="named.by_minute").wait_for()
    for text, heading in (
        ("pq://named/scope/meters", "named.meters"),
        ("pq://named.minutes/scope/by_minute", "named.by_minute"),
    ):
        one.go("live", quote(text, safe=""))
        one.page.get_by_role("heading", name=heading).wait_for()
    one.go("live", quote("pq://named.minutes/scope/other", safe=""))
    one.page.get_by_role("alert").get_by_text("E_NO_TABLE").wait_for()
    one.go("live", "named", "nothing")
    one.page.get_by_role("alert").get_by_text("DESCRIBE `named`.`nothing`").wait_for()
    one.go("tables", "named", "meters")
    one.page.get_by_role("link", name="Follow it live").click()
    one.page.get_by_role("heading", name="named.meters").wait_for()


def test_rows_that_come_too_fast_are_counted_and_loaded(visit: Open, mesh: RunningMesh) -> None:
    run(
        mesh,
        "CREATE DATABASE fast PARTITIONS 1",
        "CREATE TABLE fast.t (ts TIMESTAMP, v INT)",
        "INSERT INTO fast.t VALUES ('2020-01-01 00:00:00', -1)",
    )
    one = enter(visit, mesh)
    open_live(one, "fast", "t")
    one.page.get_by_role("grid").get_by_text("-1", exact=True).wait_for()
    count = 5000
    with client_of(mesh) as client:
        at = pl.int_range(1, count + 1, eager=True)
        client.write("fast.t", pl.DataFrame({"ts": T0 + at * 1000, "v": at}))
        client.drain("fast")
    one.page.get_by_text("5,000 received").wait_for()
    one.page.get_by_text("rows were left out").wait_for()
    one.page.get_by_role("button", name="Load them").click()
    one.page.get_by_text("5,001 shown").wait_for()
    assert one.page.get_by_text("rows were left out").count() == 0


@pytest.fixture(scope="session")
def long_table(mesh: RunningMesh) -> str:
    """Return a table of a million rows: the first half within minutes, the others over weeks."""
    with client_of(mesh) as client:
        client.execute("CREATE DATABASE long; CREATE TABLE long.t (ts TIMESTAMP, v INT)")
        for first in range(0, MANY, AT_ONCE):
            v = pl.int_range(first, first + AT_ONCE, eager=True)
            late = (v - MANY // 2).clip(0)
            client.write("long.t", pl.DataFrame({"ts": T0 + v + late * 5000, "v": v}))
        client.drain("long")
    return "t"


@pytest.mark.parametrize("screen", SCREENS)
def test_of_a_million_rows_only_what_is_seen_is_asked_for(
    visit: Open, mesh: RunningMesh, long_table: str, screen: str
) -> None:
    one = enter(visit, mesh, screen)
    asked: list[str] = []
    one.page.on("request", lambda r: asked.append(r.url) if r.url.endswith("/v1/query") else None)
    open_live(one, "long", long_table)
    one.page.get_by_role("grid").get_by_text(str(MANY - 1), exact=True).wait_for()
    one.page.get_by_text("1,000,000 shown").wait_for()
    opened = len(asked)
    for share in (0.25, 0.5, 0.75, 1.0):
        fly_to(one, share)
        check_rows_of(one, share, MANY)
    assert len(asked) - opened <= PLACES, "of a flight over the table only its ends count"
    check_width(one)


def fly_to(one: Visit, share: float) -> None:
    """Scroll to a place of the grid, past as many others as a slow machine shows one by one."""
    one.page.get_by_role("grid").evaluate(
        """async (grid, [share, places]) => {
            const room = grid.scrollHeight - grid.clientHeight;
            const from = grid.scrollTop;
            for (let step = 1; step <= places; step += 1) {
                grid.scrollTop = from + ((share * room - from) * step) / places;
                await new Promise(requestAnimationFrame);
            }
        }""",
        [share, PLACES],
    )


def check_rows_of(one: Visit, share: float, many: int) -> None:
    """Wait for the rows there; fail unless each is the one of its place, and only some are there."""
    rows = one.page.get_by_role("grid").locator(".body [role=row]")
    end = time.monotonic() + 60
    while True:
        found = rows.evaluate_all(
            "all => all.map(row => [Number(row.ariaRowIndex), row.lastElementChild.textContent])"
        )
        if all(text != "…" for _, text in found):
            break
        assert time.monotonic() < end, found[:3]
        one.page.wait_for_timeout(50)
    assert 10 < len(found) <= MOST_IN_PAGE
    assert abs(found[len(found) // 2][0] / many - share) < 0.01
    # row 1 is the head
    assert [text for _, text in found] == [str(many - 1 - (row - 2)) for row, _ in found]
