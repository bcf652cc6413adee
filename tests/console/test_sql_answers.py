"""SQL: long answers in Arrow, exactly as JSON has them, and streams that are followed."""

from __future__ import annotations

import re
import time
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from penstock.mesh.running import RunningMesh
from tests.console.conftest import PATIENCE_MS, Visit
from tests.console.test_pages import ask
from tests.console.using import Open, check_axe, check_width, client_of, enter, run

MILLION = 1_000_000
T0 = 1_577_836_800_000_000_000  # 2020-01-01 in nanoseconds
#: rows of the grid that are in the page at most
MOST_IN_PAGE = 60
#: the cells of an answer in JSON, by the console's own modules
_BY_JSON = """async ([base, sql]) => {
    const { query } = await import(base + "core/query.js");
    const { cell } = await import(base + "core/format.js");
    const { columns, rows } = await query(sql);
    return [columns.map(({ name, type }) => `${name} ${type}`), rows.map((row) => row.map(cell))];
}"""


def base_of(one: Visit) -> str:
    """Return where the console's modules are."""
    source = one.page.locator("script[type=module]").first.evaluate("one => one.src")
    return re.sub(r"app/.*", "app/", source)


def grid_of(one: Visit) -> tuple[list[str], list[list[str]]]:
    grid = one.page.get_by_role("grid", name="Result")
    grid.wait_for()
    titles = (
        grid.get_by_role("columnheader")
        .locator("button")
        .evaluate_all("all => all.map(one => one.title)")
    )
    rows = grid.locator(".body [role=row]").all()
    return titles, [row.get_by_role("gridcell").all_inner_texts() for row in rows]


def test_each_type_is_shown_as_json_has_it(visit: Open, mesh: RunningMesh) -> None:
    run(
        mesh,
        "CREATE DATABASE kinds PRECISION 'ns'",
        "CREATE TABLE kinds.t (ts TIMESTAMP, b BIGINT, u BIGINT UNSIGNED, f FLOAT, g DOUBLE,"
        " d DECIMAL(38,10), w BOOL, x VARBINARY(4), n NCHAR(8), s VARCHAR(20))",
        "INSERT INTO kinds.t VALUES"
        f" ({T0 + 1}, 9223372036854775807, 18446744073709551615, 0.1, 0.30000000000000004,"
        " '1234567890123456789012345678.0000000001', true, '\\x01ff', 'zähl', 'it''s')"
        f" ({T0 + 2}, -9223372036854775808, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '')",
    )
    one = enter(visit, mesh)
    one.go("sql")
    for sql in (
        "SELECT * FROM kinds.t ORDER BY ts",
        "SELECT b, count(*) AS c, avg(f) AS a, max(ts) - min(ts) AS span FROM kinds.t GROUP BY b",
        "SELECT CAST(d AS VARCHAR) AS d, first(ts), b % 7 AS r FROM kinds.t GROUP BY d, b",
        "SHOW CREATE TABLE kinds.t",
        "DESCRIBE kinds.t",
    ):
        ask(one, sql)
        wanted = one.page.evaluate(_BY_JSON, [base_of(one), sql])
        check_grid(one, sql, *wanted)


def check_grid(one: Visit, sql: str, titles: list[str], rows: list[list[str]]) -> None:
    """Wait until the grid has these rows, as far as it is seen, in any order."""
    end = time.monotonic() + PATIENCE_MS / 1000
    while True:
        found_titles, found = grid_of(one)
        seen = len(found_titles)
        wanted = sorted(str(row[:seen]) for row in rows)
        if found_titles == titles[:seen] and sorted(map(str, found)) == wanted:
            return
        assert time.monotonic() < end, (sql, found_titles, found, wanted)
        one.page.wait_for_timeout(100)


@pytest.fixture(scope="session")
def million(mesh: RunningMesh) -> str:
    """Return a table of a million rows in nanoseconds."""
    with client_of(mesh) as client:
        client.execute(
            "CREATE DATABASE million PRECISION 'ns'; CREATE TABLE million.t (ts TIMESTAMP, v BIGINT)"
        )
        for first in range(0, MILLION, MILLION // 4):
            n = pl.int_range(first, first + MILLION // 4, eager=True)
            client.write("million.t", pl.DataFrame({"ts": T0 + n, "v": n * 7919 % MILLION}))
        client.drain("million")
    return "million.t"


def test_an_answer_with_times_and_numbers_has_a_chart(visit: Open, mesh: RunningMesh) -> None:
    run(
        mesh,
        "CREATE DATABASE drawn",
        "CREATE TABLE drawn.t (ts TIMESTAMP, v INT, site VARCHAR(8))",
        f"INSERT INTO drawn.t VALUES ({T0 // 10**6}, 1, 'n') ({T0 // 10**6 + 1}, 2, 's')"
        f" ({T0 // 10**6 + 2}, NULL, 's')",
    )
    one = enter(visit, mesh)
    one.go("sql")
    ask(one, "SELECT site FROM drawn.t")
    grid_of(one)
    assert one.page.get_by_role("button", name="Chart", exact=True).count() == 0
    ask(one, "SELECT ts, v, site FROM drawn.t ORDER BY ts")
    one.page.get_by_role("button", name="Chart", exact=True).click()
    one.page.get_by_role("img", name="v", exact=True).wait_for()
    one.page.get_by_label("A line for each").select_option("site")
    one.page.get_by_role("img", name="v by site").wait_for()
    lines = one.page.get_by_role("list", name="Lines").get_by_role("listitem")
    assert [text.strip() for text in lines.all_inner_texts()] == ["n", "s"]
    check_width(one)
    check_axe(one)


def test_a_million_rows_are_shown_sorted_and_saved(
    visit: Open, mesh: RunningMesh, million: str
) -> None:
    one = enter(visit, mesh)
    one.go("sql")
    ask(one, f"SELECT * FROM {million} ORDER BY ts")
    one.page.get_by_text("1,000,000 rows", exact=True).wait_for()
    grid = one.page.get_by_role("grid", name="Result")
    assert grid.locator(".body [role=row]").count() <= MOST_IN_PAGE
    grid.evaluate("grid => (grid.scrollTop = grid.scrollHeight)")
    grid.get_by_text("2020-01-01T00:00:00.000999999Z").wait_for()
    began = one.page.evaluate("performance.now()")
    grid.get_by_role("columnheader", name="v").get_by_role("button").click()
    grid.get_by_text(str(MILLION - 1), exact=True).wait_for()
    took = one.page.evaluate("performance.now()") - began
    used = heap_of(one)
    print(f"a million rows: sorted in {took:.0f} ms, {used / 1e6:.0f} MB of JavaScript")
    check_saved(one)


def heap_of(one: Visit) -> float:
    """Return the bytes that the page's scripts hold, typed arrays among them."""
    client: Any = one.page.context.new_cdp_session(one.page)
    client.send("HeapProfiler.collectGarbage")
    found = client.send("Runtime.getHeapUsage")
    client.detach()
    return float(found["usedSize"]) + float(found.get("backingStorageSize", 0))


def check_saved(one: Visit) -> None:
    """Fail if the files of a million rows have others than the grid."""
    with one.page.expect_download() as download:
        one.page.get_by_role("button", name="Download CSV").click()
    lines = download.value.path().read_text().splitlines()
    assert len(lines) == MILLION + 1
    assert lines[1:3] == ["2020-01-01T00:00:00.000000000Z,0", "2020-01-01T00:00:00.000000001Z,7919"]
    with one.page.expect_download() as download:
        one.page.get_by_role("button", name="Download Parquet").click()
    saved = pl.from_arrow(pq.read_table(download.value.path()))
    assert isinstance(saved, pl.DataFrame)
    assert saved["ts"].dtype == pl.Datetime("ns", "UTC")
    assert saved["ts"].cast(pl.Int64).to_list() == list(range(T0, T0 + MILLION))
    assert saved["v"][1] == 7919


def test_a_select_from_a_stream_follows_its_results(visit: Open, mesh: RunningMesh) -> None:
    run(
        mesh,
        "CREATE DATABASE flow",
        "CREATE TABLE flow.t (ts TIMESTAMP, v INT)",
        "USE flow; CREATE STREAM each TRIGGER AT_ONCE INTO r AS"
        " SELECT _wstart, count(*) AS n, sum(v) AS total FROM t INTERVAL(1s)",
        "INSERT INTO flow.t VALUES ('2026-01-01 00:00:00', 5)",
    )
    one = enter(visit, mesh)
    one.go("sql")
    ask(one, "USE flow; SELECT _wstart, total FROM each")
    one.page.get_by_text("● live", exact=True).wait_for()
    grid = one.page.get_by_role("grid", name="Rows of r")
    grid.get_by_text("5", exact=True).wait_for()
    assert one.page.locator(".cm-lintRange-error").count() == 0
    run(mesh, "INSERT INTO flow.t VALUES ('2026-01-01 00:00:01', 6)")
    grid.get_by_text("6", exact=True).wait_for()
    heads = grid.get_by_role("columnheader").all_inner_texts()
    assert [text.strip() for text in heads] == ["op", "_wstart", "total"]
    one.page.get_by_role("button", name="Pause").click()
    run(mesh, "INSERT INTO flow.t VALUES ('2026-01-01 00:00:02', 7)")
    one.page.get_by_role("button", name="Show 1 new").click()
    grid.get_by_text("7", exact=True).wait_for()
    check_width(one)
    check_axe(one)
    one.page.get_by_role("button", name="Stop").click()
    one.page.get_by_text("■ stopped", exact=True).wait_for()
    run(mesh, "INSERT INTO flow.t VALUES ('2026-01-01 00:00:03', 8)")
    with client_of(mesh) as client:
        client.drain("flow")
    one.page.wait_for_timeout(1000)
    assert grid.get_by_text("8", exact=True).count() == 0
    assert grid.get_by_text("7", exact=True).count() == 1
    ask(one, "SELECT total FROM flow.each WHERE total > 5")
    one.page.get_by_role("alert").get_by_text("E_").first.wait_for()
    ask(one, "SELECT total FROM flow.r ORDER BY total DESC")
    one.page.get_by_role("grid", name="Result").get_by_text("8", exact=True).wait_for()
