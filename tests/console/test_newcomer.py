"""A newcomer's path through the console: from the login link over the demo to a stream of their own,
which breaks, is found and goes on. What the pages offer has to do; nothing is looked up elsewhere.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from websockets.sync.server import serve

from penstock import names
from penstock.mesh.running import RunningMesh, running_mesh
from tests.console.conftest import Visit
from tests.console.test_dead_letters import open_place
from tests.console.test_home import running, wait_until_ready, write_windows
from tests.console.using import (
    Open,
    check_axe,
    check_width,
    client_of,
    enter,
    take_completion,
    take_picture,
)
from tests.stack.conftest import eventually

#: a statement that makes a stream returns when it is live everywhere
LIVE_MS = 150_000
NARROW = "narrow dark"
FIRST = "2026-01-01 00:00:{:02}"


def command(mesh: RunningMesh, text: str) -> subprocess.Popen[str]:
    """Start what a page says to run in a terminal, where the mesh was started."""
    program, *arguments = shlex.split(text)
    assert program == "penstock"
    return subprocess.Popen(
        [sys.executable, "-m", "penstock.cli", *arguments],
        env={**os.environ, "PENSTOCK_DATA_DIR": str(mesh.layout.root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def open_login_link(one: Visit, mesh: RunningMesh) -> None:
    link, _ = command(mesh, "penstock login").communicate()
    one.page.goto(link.strip())
    one.page.get_by_role("heading", name="Home").wait_for()


@contextmanager
def loaded_demo(one: Visit, mesh: RunningMesh) -> Iterator[None]:
    """Run the demo that Home speaks of: the one that goes on until it is ended."""
    steps = one.page.get_by_label("First steps")
    text = steps.locator("code").filter(has_text="penstock demo --live").inner_text()
    demo = command(mesh, text)
    try:
        yield
    finally:
        demo.terminate()
        demo.wait()


def lane_of(one: Visit, label: str) -> Any:
    """Return the line of a window lane whose name begins with *label*."""
    return one.page.get_by_role("img", name=re.compile(f"^{label}"))


def check_windows_move(one: Visit) -> None:
    """Fail unless the lane of a stream goes on by itself."""
    lane = lane_of(one, r".+: \d+ open.* T ").first
    lane.wait_for()
    before = lane.get_attribute("aria-label")
    eventually(lambda: lane.get_attribute("aria-label") != before, deadline=60)


def see_the_demo(one: Visit) -> None:
    """Go from Home, where streams appear, to one whose windows move, and to its rows."""
    one.page.get_by_text("2 of 2").wait_for(timeout=LIVE_MS)
    take_picture(one, "home")
    one.page.get_by_role("link", name="All streams").click()
    one.page.get_by_role("link", name="by_core", exact=True).click()
    check_windows_move(one)
    check_looks(one)
    one.page.get_by_role("link", name="Follow them live").click()
    one.page.get_by_role("gridcell", name="upsert").first.wait_for()
    take_picture(one, "live")
    check_looks(one)


def check_looks(one: Visit) -> None:
    check_width(one)
    check_axe(one)


def run_in_new_tab(one: Visit, text: str, database: str = "") -> None:
    """Run *text* on the page SQL, in a tab of its own."""
    new_tab(one, database)
    one.page.keyboard.insert_text(text)
    run_tab(one)


def new_tab(one: Visit, database: str) -> None:
    one.go("sql")
    one.page.get_by_role("button", name="New tab").click()
    one.page.get_by_text("Ctrl+Enter runs the statement, or").wait_for()
    choice = one.page.get_by_role("combobox", name="Database")
    if database:
        choice.locator(f"option[value={database}]").wait_for(state="attached")
    choice.select_option(database)
    one.page.locator(".cm-content").click()


def run_tab(one: Visit) -> None:
    one.page.keyboard.press("Escape")
    one.page.keyboard.press("ControlOrMeta+Enter")
    one.page.get_by_text("Done. Rows affected").wait_for(timeout=LIVE_MS)


def write_a_stream(one: Visit, database: str) -> None:
    """Make tables, and write a stream over them whose column the editor completes."""
    run_in_new_tab(
        one,
        f"CREATE DATABASE {database};"
        f" CREATE TABLE {database}.sales (ts TIMESTAMP, cakes INT);"
        f" CREATE STABLE {database}.sold (ts TIMESTAMP, cakes TINYINT) TAGS (shop VARCHAR(16))",
    )
    new_tab(one, database)
    after = " AS cakes FROM sales PARTITION BY tbname AS shop INTERVAL(10s)"
    one.page.keyboard.insert_text(
        f"CREATE STREAM tens ON_ERROR STOP INTO sold TAGS (shop) AS SELECT _wstart, {after}"
    )
    for _ in after:
        one.page.keyboard.press("ArrowLeft")
    one.page.keyboard.type("sum(cak")
    take_completion(one, "cakes")
    one.page.locator(".cm-content").get_by_text("sum(cakes) AS cakes").wait_for()
    check_looks(one)
    run_tab(one)


def sell(one: Visit, database: str, *sales: tuple[int, int]) -> None:
    """Insert (second, cakes) by SQL."""
    rows = " ".join(f"('{FIRST.format(second)}', {cakes})" for second, cakes in sales)
    run_in_new_tab(one, f"INSERT INTO sales VALUES {rows}", database)


def check_lane(one: Visit, database: str, windows: str) -> None:
    one.go("streams", database, "tens")
    lane_of(one, f"sales: {windows}").wait_for()


def see_first_windows(one: Visit, database: str) -> None:
    sell(one, database, (1, 5))
    check_lane(one, database, "1 open, 0 closed")
    sell(one, database, (12, 1))
    check_lane(one, database, "1 open, 1 closed")


def find_what_broke(one: Visit, database: str) -> None:
    """Find on Home, in Graph and in Dead letters that the stream failed, and why."""
    stream = f"{database}.tens"
    one.go("")
    one.page.get_by_text(f"stream {stream} stopped").wait_for()
    one.page.keyboard.type("gr")
    still = one.page.get_by_label("What stands still")
    still.get_by_role("listitem").filter(has_text=stream).get_by_text("failed").wait_for()
    take_picture(one, "graph")
    check_looks(one)
    still.get_by_role("link", name=stream).click()
    one.page.get_by_text("A stream that is failed holds no windows").wait_for()
    one.page.keyboard.type("gd")
    one.page.get_by_role("table", name="Dead letters").get_by_text("does not fit").first.wait_for()
    take_picture(one, "dead-letters")
    check_looks(one)
    open_place(one, stream)
    one.page.get_by_text("A result cannot be sent again").wait_for()


def try_to_recalculate(one: Visit) -> None:
    """Be told that a stream that failed cannot, and how it goes on."""
    one.page.get_by_role("button", name="Recalculate E_EXPRESSION 1").click()
    dialog = one.page.get_by_role("dialog")
    dialog.get_by_role("button", name="Recalculate").click()
    dialog.get_by_role("alert").get_by_text("E_STREAM_STATE").wait_for()
    dialog.get_by_role("alert").get_by_text("FILL_HISTORY 1").wait_for()
    dialog.get_by_role("button", name="Cancel").click()


def repair(one: Visit, database: str) -> None:
    """Write the row again with a right value, and have the stream begin anew from its page."""
    sell(one, database, (15, 30))
    one.go("streams", database, "tens")
    one.page.get_by_role("button", name="Begin anew tens").click()
    dialog = one.page.get_by_role("dialog")
    dialog.get_by_text("CREATE OR REPLACE STREAM tens FILL_HISTORY 1 ON_ERROR STOP").wait_for()
    check_looks(one)
    dialog.get_by_role("button", name="Begin anew").click()
    dialog.wait_for(state="detached", timeout=LIVE_MS)


def walk(one: Visit, database: str) -> None:
    """Write a stream, see its windows, break it, find out what broke, and mend it."""
    write_a_stream(one, database)
    see_first_windows(one, database)
    sell(one, database, (15, 300), (21, 1))
    find_what_broke(one, database)
    try_to_recalculate(one)
    repair(one, database)
    check_lane(one, database, "1 open, 2 closed")
    one.page.get_by_role("grid", name="Newest rows of sold").get_by_text("31").first.wait_for()
    sell(one, database, (31, 2))
    check_lane(one, database, "1 open, 3 closed")
    take_picture(one, "windows")
    check_looks(one)
    one.go("graph")
    one.page.get_by_role("table", name="Flows").wait_for()
    still = one.page.get_by_label("What stands still").get_by_role("listitem")
    assert still.filter(has_text=f"{database}.tens").count() == 0


@pytest.mark.timeout(1200)
def test_from_the_login_link_to_windows_that_move_again(visit: Open, tmp_path: Path) -> None:
    environment = {"PENSTOCK_GATEWAY_LIVE_TIMEOUT": "120"}
    with running_mesh(tmp_path, environment=environment) as mesh:
        one = visit(mesh.gateway_url)
        open_login_link(one, mesh)
        with loaded_demo(one, mesh):
            see_the_demo(one)
            walk(one, "bakery")
        one.check()


@pytest.mark.timeout(1200)
def test_the_same_path_on_a_telephone(visit: Open, mesh: RunningMesh) -> None:
    one = visit(mesh.gateway_url, NARROW)
    open_login_link(one, mesh)
    walk(one, "corner")


def test_a_dead_target_is_found_in_the_graph_and_gone_when_it_answers(
    visit: Open, mesh: RunningMesh
) -> None:
    dead = serve(lambda connection: None, "127.0.0.1", 0)
    port = dead.socket.getsockname()[1]
    dead.socket.close()
    with client_of(mesh) as client:
        client.execute(
            "CREATE DATABASE rings; CREATE TABLE rings.t (ts TIMESTAMP, v INT);"
            " CREATE STREAM rings.s TRIGGER AT_ONCE INTO rings.r AS"
            " SELECT _wstart, sum(v) AS n FROM rings.t INTERVAL(10s)"
            f" NOTIFY ('ws://127.0.0.1:{port}/bell') ON ('WINDOW_CLOSE')"
        )
        wait_until_ready(client, "rings")
        write_windows(client, "rings", 3)
        one = enter(visit, mesh)
        one.go("graph")
        still = one.page.get_by_label("What stands still").get_by_role("listitem")
        failing = still.filter(has_text="rings.targets of s")
        failing.get_by_text("failing").wait_for()
        failing.get_by_text(f"ws://127.0.0.1:{port}").wait_for()
        check_axe(one)
        with running(serve(lambda connection: [None for _ in connection], "127.0.0.1", port)):
            failing.wait_for(state="detached", timeout=LIVE_MS)


def test_what_a_wrong_publisher_wrote_is_a_dead_letter_and_windows_go_on(
    visit: Open, mesh: RunningMesh
) -> None:
    with client_of(mesh) as client:
        client.execute(
            "CREATE DATABASE wrong; CREATE TABLE wrong.t (ts TIMESTAMP, v INT);"
            " CREATE STREAM wrong.s INTO wrong.r AS"
            " SELECT _wstart, sum(v) AS n FROM wrong.t INTERVAL(1m)"
        )
        wait_until_ready(client, "wrong")
        topic = names.ingest_topic("wrong")
        producer = Producer(mesh.kafka_client)
        producer.produce(topic, b"v=1, but no Avro", b"t")
        assert producer.flush(60) == 0
        one = enter(visit, mesh)
        one.go("dead-letters")
        letters = one.page.get_by_role("table", name="Dead letters").get_by_role("row")
        letters.filter(has_text=topic).first.get_by_role("link", name=topic).click()
        one.page.get_by_text("v=1, but no Avro").first.wait_for()
        one.page.get_by_text("whoever wrote it", exact=False).first.wait_for()
        check_looks(one)
        write_windows(client, "wrong", 3)
        one.go("streams", "wrong", "s")
        lane_of(one, ".+: 1 open, 2 closed").wait_for()
