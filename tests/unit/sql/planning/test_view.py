"""A table as a stream sees it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from penstock.sql.planning.view import TableDef
from tests.unit.sql.planning.binding import MET


@pytest.mark.parametrize(
    ("change", "many"),
    [
        ({}, True),
        ({"kind": "child", "child": "d1"}, False),
        ({"kind": "plain", "tags": ()}, False),
        ({"kind": "virtual"}, True),
        ({"kind": "virtual", "tags": ()}, False),
        ({"kind": "virtual", "child": "v1"}, False),
    ],
)
def test_only_supertables_have_many_timelines(change: dict[str, Any], many: bool) -> None:
    assert dataclasses.replace(MET, **change).many is many


def test_a_child_is_shown_by_its_own_name() -> None:
    child: TableDef = dataclasses.replace(MET, kind="child", child="d1")
    assert (MET.shown, child.shown) == ("db.met", "db.d1")
