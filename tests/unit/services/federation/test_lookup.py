"""Tables by the names that requests over a link use, for users with and without rights."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.changes import create_stream
from penstock.catalog.model import Child, Table, TableVersion, View
from penstock.errors import PenstockError
from tests.unit.penstock.catalog.builders import plan
from tests.unit.services.federation.kit import (
    COLUMNS,
    DATABASE,
    FAR,
    PLAIN,
    ROOT,
    STABLE,
    TOPIC,
    VIEW,
    Deployment,
)


def refusal(call: Callable[[], Any]) -> PenstockError:
    with pytest.raises(PenstockError) as wrong:
        call()
    return wrong.value


@pytest.fixture
def here(tmp_path: Path) -> Deployment:
    child = Child(50, "d", STABLE.id, "Kitchen", (1,))
    return Deployment(tmp_path, DATABASE, PLAIN, STABLE, FAR, VIEW, child)


def test_tables_child_tables_and_results_of_views(here: Deployment) -> None:
    find = here.lookup.find
    assert find("d", "meters") == (STABLE, None)
    assert find("", "d.meters") == (STABLE, None)
    assert find("other", "d.meters") == (STABLE, None)
    assert find("d", "kitchen") == (STABLE, "Kitchen"), "in the spelling it was made with"
    assert find("d", "up") == (PLAIN, None)


def test_the_result_of_a_stream(tmp_path: Path) -> None:
    here = Deployment(
        tmp_path,
        dataclasses.replace(DATABASE, name="power"),
        Table(7, "power", "meters", "plain", TOPIC, 1, "ms", (TableVersion(107, COLUMNS),)),
        Table(9, "power", "highs", "plain", TOPIC, 1, "ms", (TableVersion(109, COLUMNS),)),
    )
    made = create_stream(here.catalog, plan(here.catalog, 60, "s", "meters", "highs"), created=0)
    for entry in made.puts:
        here.catalog.put(entry)
    table, child = here.lookup.find("power", "s")
    assert (table.name, child) == ("highs", None)


def test_child_tables_that_only_rows_know(here: Deployment) -> None:
    here.born.add((STABLE.id, "garage"))
    assert refusal(lambda: here.lookup.find("d", "garage")).code == "E_NO_TABLE"
    assert here.lookup.find("d", "garage", born=True) == (STABLE, "garage")
    assert refusal(lambda: here.lookup.find("d", "attic", born=True)).code == "E_NO_TABLE"


def test_what_does_not_exist(here: Deployment) -> None:
    assert refusal(lambda: here.lookup.find("no", "meters")).code == "E_NO_DATABASE"
    assert refusal(lambda: here.lookup.find("d", "no")).code == "E_NO_TABLE"


def test_who_has_no_right_is_not_told_what_exists(here: Deployment) -> None:
    ann = here.allow("ann", "READ")
    bob = here.allow("bob")
    assert here.lookup.find_for(ann, "READ", "d", "meters", False) == (STABLE, None)
    assert refusal(lambda: here.lookup.find_for(ann, "READ", "d", "no", False)).code == "E_NO_TABLE"
    assert (
        refusal(lambda: here.lookup.find_for(ann, "WRITE", "d", "meters", False)).code
        == "E_FORBIDDEN"
    )
    there = refusal(lambda: here.lookup.find_for(bob, "READ", "d", "meters", False))
    nowhere = refusal(lambda: here.lookup.find_for(bob, "READ", "d", "metets", False))
    assert there.code == nowhere.code == "E_FORBIDDEN"
    assert there.message.replace("meters", "metets") == nowhere.message
    spelled = refusal(lambda: here.lookup.find_for(bob, "READ", "", "d.meters", False))
    assert spelled.message == there.message


async def test_what_was_made_just_now_is_waited_for(here: Deployment) -> None:
    fresh = dataclasses.replace(PLAIN, id=70, name="fresh")
    here.late.append(fresh)
    asked: list[bool] = []

    def find(born: bool) -> Any:
        asked.append(born)
        return here.lookup.find("d", "fresh", born=born)

    assert await here.lookup.look(find) == (fresh, None)
    assert asked == [False, True]
    assert await here.lookup.look(find) == (fresh, None)
    assert asked == [False, True, False]


async def test_what_does_not_come_is_refused(here: Deployment) -> None:
    with pytest.raises(PenstockError) as wrong:
        await here.lookup.look(lambda born: here.lookup.find("d", "no", born=born))
    assert wrong.value.code == "E_NO_TABLE"


def test_a_query_needs_read_on_all_its_tables(here: Deployment) -> None:
    carl = here.allow("carl", "READ", on=STABLE.id)
    here.lookup.require_read(carl, "SELECT v FROM meters", "d")
    for sql in ("SELECT a.v FROM meters a JOIN plain b ON a.ts = b.ts", "SELECT v FROM d.plain"):
        assert (
            refusal(lambda sql=sql: here.lookup.require_read(carl, sql, "d")).code == "E_FORBIDDEN"
        )
    assert refusal(lambda: here.lookup.require_read(carl, "SELECT FROM", "d")).code == "E_SYNTAX"
    assert refusal(lambda: here.lookup.require_read(carl, "SELECT 1 FROM x", "d")).code == (
        "E_FORBIDDEN"
    )
    ann = here.allow("ann", "READ")
    here.lookup.require_read(ann, "SELECT 1 FROM nowhere", "d")
    here.lookup.require_read(ROOT, "SELECT FROM", "d")


def test_external_streams_and_views_that_write_them(here: Deployment) -> None:
    assert here.lookup.external("d", "far") is FAR
    assert here.lookup.external("d", "up") is None
    here.catalog.put(View(43, "d", "out", "SELECT * FROM d.meters", STABLE.id, FAR.id))
    assert here.lookup.external("d", "out") is FAR


def test_a_table_as_it_is_now(here: Deployment) -> None:
    changed = dataclasses.replace(PLAIN, keep=None, options={"x": "y"})
    here.catalog.put(changed)
    assert here.lookup.present(PLAIN) is changed
    here.catalog.remove(PLAIN.id)
    assert refusal(lambda: here.lookup.present(PLAIN)).code == "E_NO_TABLE"
