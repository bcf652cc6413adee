"""What the options of a stream without a window mean for its results."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.sql.plan import Key
from penstock.windows.filter_rules import FilterRules
from penstock.windows.groups.groups import Groups
from penstock.windows.groups.table_names import TableNames
from penstock.windows.rows.scope import Scope
from tests.unit.windows.plans import BIGINT, BY_TAG, DOUBLE, TEXT, TIMESTAMP
from tests.unit.windows.test_filter import filter_plan


def rules_of(plan):
    scope = Scope(plan)
    return FilterRules.of(scope, Groups(scope, TableNames()).expressions)


def test_by_default_a_row_written_again_removes_nothing():
    assert rules_of(filter_plan()) == FilterRules(replaces=False, stable=True, retracts=False)


@pytest.mark.parametrize("options", [{"ignore_update": False}, {"source": "virtual"}])
def test_a_row_that_replaces_may_pass_no_longer(options):
    assert rules_of(filter_plan(**options)) == FilterRules(True, True, True)
    assert rules_of(filter_plan(where=None, **options)) == FilterRules(True, True, False)


def test_the_result_of_a_stream_is_a_keyed_table():
    plan = filter_plan()
    assert rules_of(replace(plan, source=replace(plan.source, result_of=3))).replaces


def test_a_key_is_stable_when_it_follows_from_the_row_s_own():
    by_value = (Key("kind", "s", TEXT),)
    assert rules_of(filter_plan(keys=BY_TAG)).stable
    assert not rules_of(filter_plan(keys=by_value)).stable
    moved = (("ts", "ts + i", TIMESTAMP), ("v", "v", DOUBLE))
    assert not rules_of(filter_plan(items=moved)).stable
    assert rules_of(filter_plan(where=None, keys=by_value, ignore_update=False)).retracts


def test_a_composite_key_counts_too():
    items = (("ts", "ts", TIMESTAMP), ("n", "i", BIGINT), ("v", "v", DOUBLE))
    plan = filter_plan(items=items)
    keyed = replace(plan, target=replace(plan.target, key_column="n"))
    assert rules_of(plan).stable
    assert not rules_of(keyed).stable
    assert rules_of(replace(keyed, source=replace(plan.source, key_column="i"))).stable
