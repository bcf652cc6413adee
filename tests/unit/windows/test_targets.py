"""What groups are in the target, for many at once and one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from penstock import names
from penstock.windows.groups.targets import GroupTargets
from penstock.windows.rows.scope import Scope
from tests.unit.windows.plans import BY_TAG, TEXT, window_plan

KEYS = pl.DataFrame({"_k0": [f"l{i}" for i in range(200)]})


class Targets:
    """Targets of groups by a tag, and for which groups their keys were asked."""

    def __init__(self, plan):
        self.asked = []
        self.targets = GroupTargets(Scope(plan), {"_k0": TEXT}, None, self._keys_of)

    def _keys_of(self, groups):
        self.asked += groups.tolist()
        return KEYS[groups]


def test_each_group_is_worked_out_once():
    made = Targets(window_plan(keys=BY_TAG))

    found = made.targets.of(np.array([150, 3, 150]))

    ids = [names.group_id("out", (f"l{i}",)) for i in (150, 3, 150)]
    assert found.get_column("_group").to_list() == ids
    assert found.get_column("loc").to_list() == ["l150", "l3", "l150"]
    assert made.targets.of(np.array([3])).equals(found[1:2])
    assert made.asked == [3, 150]
    assert made.targets.of(np.empty(0, np.int64)).height == 0


def test_one_group_is_the_same_as_values():
    made = Targets(window_plan(keys=BY_TAG))
    child, place, _, *tags = made.targets.of(np.array([7])).row(0)

    assert made.targets.one(7) == (child, place, tuple(tags))
    assert made.targets.one(7) is made.targets.one(7)
    assert made.asked == [7]


def test_a_child_is_named_as_the_plan_says_where_that_is_a_name():
    plan = window_plan(keys=BY_TAG)
    subtable = "CASE WHEN _k0 = 'l1' THEN NULL ELSE concat('x_', _k0) END"
    plan = replace(plan, target=replace(plan.target, subtable_sql=subtable))

    found = Targets(plan).targets.of(np.array([0, 1]))

    group = names.group_id("out", ("l1",))
    named = names.child_name("x_l0", "out", names.group_id("out", ("l0",)))
    assert found.get_column("tbname").to_list() == [named, names.automatic_child("out", group)]
