"""The window lane on the page of a stream: windows open, close, and late rows are red."""

from __future__ import annotations

import re

import pytest

from penstock.mesh.running import RunningMesh
from tests.console.conftest import SCREENS
from tests.console.using import Open, check_axe, check_width, enter, run


@pytest.mark.parametrize("screen", SCREENS)
def test_windows_open_close_and_late_rows_are_red(
    visit: Open, mesh: RunningMesh, screen: str
) -> None:
    name = "lane_" + re.sub(r"\W", "_", screen)
    run(
        mesh,
        f"CREATE DATABASE {name} PRECISION 'us'",
        f"CREATE STABLE {name}.m (ts TIMESTAMP, v INT) TAGS (site VARCHAR(8))",
        f"USE {name}; CREATE STREAM s WATERMARK 5s INTO r TAGS (site VARCHAR(8)) AS"
        " SELECT _wstart, count(*) AS n FROM m PARTITION BY site INTERVAL(10s)",
    )

    def insert(site: str, *seconds: int) -> None:
        rows = " ".join(f"('2026-01-01 00:00:{second:02}', 1)" for second in seconds)
        run(mesh, f"INSERT INTO {name}.of_{site} USING {name}.m TAGS ('{site}') VALUES {rows}")

    one = enter(visit, mesh, screen)
    one.go("streams", name, "s")
    one.page.get_by_text("No window has opened yet").wait_for()
    insert("north", 1, 12)
    insert("south", 3)
    # T of north is 7: its first window still waits for late rows
    north = one.page.get_by_role("img", name=re.compile("^north: 2 open, 0 closed"))
    north.wait_for()
    assert "T 2026-01-01 00:00:07" in north.get_attribute("aria-label")
    assert north.locator(".window.open").count() == 2
    assert north.locator(".now").count() == 2
    one.page.get_by_role("img", name=re.compile("^south: 1 open")).wait_for()
    insert("north", 31)
    closed = one.page.get_by_role("img", name=re.compile("^north: 1 open, 2 closed"))
    closed.wait_for()
    assert closed.locator(".window:not(.open)").count() == 2
    insert("north", 2)
    late = one.page.get_by_role("img", name="1 late rows in this time")
    late.locator(".row-late").wait_for(state="attached")
    check_width(one)
    check_axe(one)


def test_a_stream_that_holds_nothing_says_so(visit: Open, mesh: RunningMesh) -> None:
    run(
        mesh,
        "CREATE DATABASE lane_none",
        "CREATE TABLE lane_none.t (ts TIMESTAMP, v INT)",
        "CREATE STABLE lane_none.small (ts TIMESTAMP, n TINYINT) TAGS (kind VARCHAR(9))",
        "USE lane_none; CREATE STREAM breaks TRIGGER AT_ONCE ON_ERROR STOP INTO small TAGS (kind) AS"
        " SELECT _wstart, sum(v) AS n FROM t PARTITION BY tbname AS kind INTERVAL(1m)",
        "USE lane_none; CREATE STREAM rows_only TRIGGER AT_ONCE INTO big AS"
        " SELECT ts, v FROM t WHERE v > 100 PARTITION BY tbname",
        "INSERT INTO lane_none.t VALUES ('2026-01-01 00:00:00', 300)",
    )
    one = enter(visit, mesh)
    one.go("streams", "lane_none", "breaks")
    one.page.get_by_text("A stream that is failed holds no windows").wait_for()
    one.go("streams", "lane_none", "rows_only")
    one.page.get_by_role("heading", name="rows_only", exact=True).wait_for()
    one.page.get_by_role("grid", name="Newest rows of big").wait_for()
    assert one.page.get_by_role("heading", name="Windows", exact=True).count() == 0
