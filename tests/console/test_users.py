"""The console's page Users: users, roles, rights, tokens and the audit trail, as an operator uses
them, and as somebody without rights sees them.
"""

from __future__ import annotations

import re

import httpx
import pytest

from penstock.mesh.running import RunningMesh
from tests.console.conftest import SCREENS, Visit
from tests.console.using import Open, check_axe, check_width, enter, run

PASSWORD = "Works-0nly!"


def fill_in(one: Visit, button: str, **texts: str) -> None:
    """Open a dialog by its button, write the texts by label, and press its first button."""
    one.page.get_by_role("button", name=button, exact=True).click()
    dialog = one.page.get_by_role("dialog")
    for label, text in texts.items():
        dialog.get_by_label(label).fill(text)
    dialog.get_by_role("button").first.click()
    dialog.wait_for(state="detached")


@pytest.mark.parametrize("screen", SCREENS)
def test_a_user_is_made_given_a_right_and_ended(
    visit: Open, mesh: RunningMesh, screen: str
) -> None:
    end = re.sub(r"\W", "_", screen)
    ann, readers, home = f"ann_{end}", f"readers_{end}", f"rights_{end}"
    run(mesh, f"CREATE DATABASE {home}", f"CREATE TABLE {home}.t (ts TIMESTAMP, v INT)")
    one = enter(visit, mesh, screen)
    one.go("users")
    fill_in(one, "Add a user", Name=ann, Password=PASSWORD)
    fill_in(one, "Add a role", Name=readers)
    users = one.page.get_by_role("table", name="Users", exact=True)
    users.get_by_label(f"Give a role to {ann}").select_option(readers)
    users.get_by_role("button", name=f"Take {readers} from {ann}").wait_for()
    give = one.page.get_by_role("form", name="Give a right")
    give.get_by_role("combobox", name="Give to").select_option(readers)
    give.get_by_role("combobox", name="the right").select_option("READ")
    give.get_by_role("combobox", name="on", exact=True).select_option(home)
    give.get_by_role("button", name="Give").click()
    read = one.page.get_by_label(f"READ on {home}.* for {readers}")
    read.wait_for()
    assert read.is_checked()
    check_width(one)
    login = httpx.BasicAuth(ann, PASSWORD)

    def asks(statement: str) -> int:
        url = f"{mesh.gateway_url}/v1/query"
        return httpx.post(url, content=statement, auth=login, timeout=60).status_code

    assert asks(f"SELECT * FROM {home}.t") == 200
    one.page.get_by_label(f"WRITE on {home}.* for {readers}").check()
    one.page.get_by_role("status").get_by_text("WRITE").wait_for(state="attached")
    assert asks(f"INSERT INTO {home}.t VALUES (now, 1)") == 200
    users.get_by_role("button", name=f"Disable {ann}").click()
    users.get_by_role("button", name=f"Enable {ann}").wait_for()
    assert asks("SELECT 1") == 401
    trail = one.page.get_by_role("table", name="Audit trail")
    one.page.get_by_label("Only lines with").fill(f"CREATE USER `{ann}`")
    trail.get_by_text("***").first.wait_for()
    assert PASSWORD not in trail.inner_text()
    users.get_by_role("button", name=f"Drop {ann}").click()
    one.page.get_by_label("to go on").fill(ann)
    one.page.get_by_role("button", name="Drop it").click()
    users.get_by_text(ann).first.wait_for(state="detached")


def test_without_rights_one_sees_oneself_and_ends_ones_own_tokens(
    visit: Open, mesh: RunningMesh
) -> None:
    run(mesh, f"CREATE USER alone PASS '{PASSWORD}'", "CREATE USER other PASS 'Other-0ne!'")
    one = visit(mesh.gateway_url)
    one.log_in("alone", PASSWORD)
    one.page.keyboard.type("gu")
    users = one.page.get_by_role("table", name="Users", exact=True)
    users.get_by_text("alone").wait_for()
    assert users.get_by_text("other").count() == 0
    assert one.page.get_by_role("heading", name="Audit trail").count() == 0
    buttons = one.page.get_by_role("main").get_by_role("button")
    assert buttons.all_inner_texts() == ["End all my tokens"]
    buttons.click()
    one.page.get_by_label("to go on").fill("alone")
    one.page.get_by_role("button", name="End them").click()
    one.page.get_by_role("button", name="Log in").wait_for()


@pytest.mark.parametrize("screen", SCREENS)
def test_axe_finds_nothing_serious_in_users(visit: Open, mesh: RunningMesh, screen: str) -> None:
    end = re.sub(r"\W", "_", screen)
    run(
        mesh,
        f"CREATE DATABASE axe_{end}",
        f"CREATE ROLE axe_{end}",
        f"GRANT READ, WRITE ON axe_{end}.* TO axe_{end}",
    )
    one = enter(visit, mesh, screen)
    one.go("users")
    one.page.get_by_role("table", name="Audit trail").wait_for()
    one.page.get_by_label(f"READ on axe_{end}.* for axe_{end}").wait_for()
    check_axe(one)
    one.page.get_by_role("button", name="Add a user").click()
    one.page.get_by_label("Password", exact=True).wait_for()
    check_axe(one)
