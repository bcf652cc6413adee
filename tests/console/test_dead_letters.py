"""The console's page Dead letters and late rows: what was left out is found, understood, and sent
or computed again; who may only read sees no buttons.
"""

from __future__ import annotations

import re

import pytest

from penstock.mesh.running import RunningMesh
from tests.console.conftest import SCREENS, Visit
from tests.console.using import Open, check_axe, check_width, client_of, enter, run
from tests.stack.conftest import eventually

#: no JavaScript number holds it
BIG = 9_007_199_254_740_993
PASSWORD = "Looks-0nly!"


def lose_a_row(mesh: RunningMesh, name: str) -> None:
    """Make a database with a stream without a window that cannot use one of its rows."""
    run(
        mesh,
        f"CREATE DATABASE {name}",
        f"CREATE TABLE {name}.letters (ts TIMESTAMP, weight VARCHAR(16), big BIGINT)",
        f"CREATE STABLE {name}.weights (ts TIMESTAMP, grams INT) TAGS (kind VARCHAR(16))",
    )
    run(
        mesh,
        "CREATE STREAM weigh TRIGGER AT_ONCE INTO weights (ts, grams) TAGS (kind) AS"
        " SELECT ts, weight FROM letters PARTITION BY tbname AS kind",
        f"INSERT INTO letters VALUES ('2026-06-01 08:00:01', 'heavy', {BIG})",
        database=name,
    )


def lose_a_result(mesh: RunningMesh, name: str) -> None:
    """Make a database with a stream of windows whose sum its target cannot hold."""
    run(
        mesh,
        f"CREATE DATABASE {name}",
        f"CREATE TABLE {name}.t (ts TIMESTAMP, v INT)",
        f"CREATE STABLE {name}.sums (ts TIMESTAMP, total TINYINT) TAGS (kind VARCHAR(16))",
    )
    run(
        mesh,
        "CREATE STREAM adds TRIGGER AT_ONCE INTO sums (ts, total) TAGS (kind) AS"
        " SELECT _wstart, sum(v) FROM t PARTITION BY tbname AS kind INTERVAL(1m)",
        "INSERT INTO t VALUES ('2026-06-01 08:00:01', 300)",
        database=name,
    )


def lose_a_late_row(mesh: RunningMesh, name: str) -> None:
    run(mesh, f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (ts TIMESTAMP, big BIGINT)")
    run(
        mesh,
        "CREATE STREAM strict INTO minutes AS SELECT _wstart, count(*) AS n FROM t INTERVAL(1m)",
        "INSERT INTO t VALUES ('2026-06-01 08:00:10', 1)",
        "INSERT INTO t VALUES ('2026-06-01 08:02:20', 1)",
        f"INSERT INTO t VALUES ('2026-06-01 08:00:50', {BIG})",
        database=name,
    )


def first(mesh: RunningMesh, text: str) -> object:
    """Return the first value of an answer, or None."""
    with client_of(mesh) as client:
        rows = client.query(text).rows
    return rows[0][0] if rows else None


def narrow_to(one: Visit, stream: str) -> None:
    one.page.get_by_role("combobox", name="Stream or view").select_option(stream)


def open_place(one: Visit, stream: str) -> None:
    """Open the detail of the only letter of *stream*."""
    narrow_to(one, stream)
    letters = one.page.get_by_role("table", name="Dead letters")
    rows = letters.get_by_role("row").filter(has_text=stream)
    rows.first.wait_for()
    rows.first.get_by_role("link", name=re.compile("^in\\.")).click()


@pytest.mark.parametrize("screen", SCREENS)
def test_a_row_is_shown_exactly_and_sent_again_with_its_value(
    visit: Open, mesh: RunningMesh, screen: str
) -> None:
    name = "lost_" + re.sub(r"\W", "_", screen)
    lose_a_row(mesh, name)
    count = (
        "SELECT count(*) FROM information_schema.ins_dead_letters"
        f" WHERE db_name = '{name}' AND `value` LIKE '%{BIG}%' AND reason LIKE '%heavy%'"
    )
    eventually(lambda: first(mesh, count) == 1, deadline=120)
    one = enter(visit, mesh, screen)
    one.page.keyboard.type("gd")
    one.page.get_by_role("heading", name="Dead letters and late rows").wait_for()
    open_place(one, f"{name}.weigh")
    one.page.get_by_text("heavy does not fit column grams").first.wait_for()
    one.page.get_by_text("The table has the rows").wait_for()
    if one.page.viewport_size["width"] > 1000:  # a narrow grid draws its first columns
        one.page.get_by_role("gridcell", name=str(BIG)).wait_for()
    assert "1970" not in one.page.get_by_role("main").inner_text()
    check_width(one)
    one.page.get_by_role("button", name="Send again E_EXPRESSION 1").click()
    dialog = one.page.get_by_role("dialog")
    dialog.get_by_text(f"'heavy', {BIG}").wait_for()
    dialog.get_by_role("button", name="Send again").click()
    one.page.get_by_text("Sent again", exact=True).first.wait_for()
    # it fails as before, so it is there twice: nothing of it was lost on the way
    eventually(lambda: first(mesh, count) == 2, deadline=120)


@pytest.mark.parametrize("screen", SCREENS)
def test_a_result_is_not_sent_again_but_computed_again(
    visit: Open, mesh: RunningMesh, screen: str
) -> None:
    name = "sums_" + re.sub(r"\W", "_", screen)
    lose_a_result(mesh, name)
    count = f"SELECT count(*) FROM information_schema.ins_dead_letters WHERE db_name = '{name}'"
    eventually(lambda: first(mesh, count) == 1, deadline=120)
    one = enter(visit, mesh, screen)
    one.go("dead-letters")
    open_place(one, f"{name}.adds")
    one.page.get_by_text("A result cannot be sent again").wait_for()
    main = one.page.get_by_role("main")
    assert "1970" not in main.inner_text()
    assert main.get_by_role("button", name=re.compile("^Send")).count() == 0
    check_width(one)
    run(mesh, f"INSERT INTO {name}.t VALUES ('2026-06-01 08:00:01', 30)")
    main.get_by_role("button", name="Recalculate E_EXPRESSION 1").click()
    dialog = one.page.get_by_role("dialog")
    dialog.get_by_text(f"RECALCULATE STREAM `{name}`.`adds` FROM 1780300800000").wait_for()
    dialog.get_by_role("button", name="Recalculate").click()
    one.page.get_by_text("It is computed again", exact=True).first.wait_for()
    sums = f"SELECT total FROM {name}.sums WHERE ts = '2026-06-01 08:00:00'"
    eventually(lambda: first(mesh, sums) == 30, deadline=120)


@pytest.mark.parametrize("screen", SCREENS)
def test_windows_of_chosen_late_rows_are_computed_again(
    visit: Open, mesh: RunningMesh, screen: str
) -> None:
    name = "late_" + re.sub(r"\W", "_", screen)
    lose_a_late_row(mesh, name)
    one = enter(visit, mesh, screen)
    count = f"SELECT count(*) FROM information_schema.ins_late_rows WHERE db_name = '{name}'"
    eventually(lambda: first(mesh, count) == 1, deadline=120)
    one.go("dead-letters")
    one.page.get_by_role("navigation", name="What was left out").get_by_role(
        "link", name="Late rows"
    ).click()
    narrow_to(one, f"{name}.strict")
    table = one.page.get_by_role("table", name="Late rows")
    late = table.get_by_role("row").filter(has_text=f"{name}.strict")
    late.get_by_text(str(BIG)).wait_for()
    one.page.get_by_label("To (UTC)").fill("2001-01-01T00:00")
    one.page.get_by_text("None of the late rows that are kept is like that").wait_for()
    one.page.get_by_role("button", name="Show all").click()
    narrow_to(one, f"{name}.strict")
    late.get_by_role("checkbox").check()
    check_width(one)
    one.page.get_by_role("button", name="Recalculate the chosen one").click()
    one.page.get_by_role("dialog").get_by_role("button", name="Recalculate").click()
    one.page.get_by_text("It is computed again", exact=True).first.wait_for()
    minutes = f"SELECT n FROM {name}.minutes WHERE _wstart = '2026-06-01 08:00:00'"
    eventually(lambda: first(mesh, minutes) == 2, deadline=120)


def test_who_may_only_read_sees_reasons_and_no_buttons(visit: Open, mesh: RunningMesh) -> None:
    lose_a_row(mesh, "seen")
    run(
        mesh,
        f"CREATE USER sees PASS '{PASSWORD}'",
        "GRANT READ ON seen.* TO sees",
        f"CREATE USER blind PASS '{PASSWORD}'",
    )
    count = "SELECT count(*) FROM information_schema.ins_dead_letters WHERE db_name = 'seen'"
    eventually(lambda: first(mesh, count) == 1, deadline=120)
    one = visit(mesh.gateway_url)
    one.log_in("sees", PASSWORD)
    one.go("dead-letters")
    letters = one.page.get_by_role("table", name="Dead letters")
    letters.get_by_text("heavy does not fit column grams").wait_for()
    main = one.page.get_by_role("main")
    assert main.get_by_role("button").count() == main.get_by_role("checkbox").count() == 0
    open_place(one, "seen.weigh")
    if one.page.viewport_size["width"] > 1000:  # a narrow grid draws its first columns
        one.page.get_by_role("gridcell", name=str(BIG)).wait_for()
    assert main.get_by_role("button", name=re.compile("Send|Recalculate")).count() == 0
    other = visit(mesh.gateway_url)
    other.log_in("blind", PASSWORD)
    other.go("dead-letters")
    other.page.get_by_role("heading", name="There are no dead letters").wait_for()
    other.go("dead-letters", "late")
    other.page.get_by_role("heading", name="There are no late rows").wait_for()
    check_axe(other)


def test_chosen_letters_are_sent_again_without_the_mouse(visit: Open, mesh: RunningMesh) -> None:
    lose_a_row(mesh, "keyed")
    run(mesh, "INSERT INTO keyed.letters VALUES ('2026-06-01 08:00:02', 'light', 1)")
    count = "SELECT count(*) FROM information_schema.ins_dead_letters WHERE db_name = 'keyed'"
    eventually(lambda: first(mesh, count) == 2, deadline=120)
    one = enter(visit, mesh)
    one.go("dead-letters")
    narrow_to(one, "keyed.weigh")
    one.page.get_by_role("table", name="Dead letters").get_by_text("light does not").wait_for()
    one.page.get_by_role("button", name="Choose all").focus()
    one.page.keyboard.press("Enter")
    one.page.get_by_text("2 chosen", exact=True).wait_for()
    one.page.get_by_role("button", name="Send again the chosen 2").focus()
    one.page.keyboard.press("Enter")
    dialog = one.page.get_by_role("dialog")
    dialog.get_by_text("'light', 1").wait_for()
    one.page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    assert first(mesh, count) == 2
    one.page.keyboard.press("Enter")
    dialog.get_by_text("'light', 1").wait_for()
    dialog.get_by_role("button", name="Send again").focus()
    one.page.keyboard.press("Enter")
    one.page.get_by_text("Sent again", exact=True).first.wait_for()
    # both rows are in one record now, which one letter may be about
    for word in ("heavy", "light"):
        again = f"{count} AND `value` LIKE '%{word}%'"
        eventually(lambda again=again: first(mesh, again) == 2, deadline=120)


@pytest.mark.parametrize("screen", SCREENS)
def test_axe_finds_nothing_serious_in_dead_letters(
    visit: Open, mesh: RunningMesh, screen: str
) -> None:
    name = "axed_" + re.sub(r"\W", "_", screen)
    lose_a_row(mesh, name)
    count = f"SELECT count(*) FROM information_schema.ins_dead_letters WHERE db_name = '{name}'"
    eventually(lambda: first(mesh, count) == 1, deadline=120)
    one = enter(visit, mesh, screen)
    one.go("dead-letters")
    narrow_to(one, f"{name}.weigh")
    one.page.get_by_role("button", name="Choose all").click()
    one.page.get_by_text("1 chosen", exact=True).wait_for()
    check_axe(one)
    check_width(one)
    open_place(one, f"{name}.weigh")
    one.page.get_by_role("gridcell").first.wait_for()
    check_axe(one)
    one.page.get_by_role("button", name=re.compile("^Send")).click()
    one.page.get_by_role("dialog").get_by_text(str(BIG)).wait_for()
    check_axe(one)
