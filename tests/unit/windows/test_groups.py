"""Groups: exact numbers, target names, tags, state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import names
from penstock.rows.partition import partition
from penstock.windows.groups import key_index as module
from penstock.windows.groups.groups import Groups
from penstock.windows.groups.key_index import KeyIndex
from penstock.windows.groups.table_names import TableNames
from penstock.windows.rows.scope import Scope
from tests.nightly import drawn
from tests.unit.windows.plans import BY_TABLE, BY_TAG, frame, window_plan


def about_all(groups):
    return groups.targets.of(np.arange(len(groups)))


@settings(max_examples=drawn(50), deadline=None)
@given(
    st.lists(
        st.lists(
            st.tuples(st.none() | st.sampled_from("abcdefgh"), st.none() | st.integers(0, 3)),
            max_size=20,
        ),
        max_size=8,
    )
)
def test_equal_keys_get_equal_numbers_in_order_of_appearance(calls):
    index = KeyIndex({"a": pl.String(), "b": pl.Int64()})
    known: dict[object, int] = {}
    for call in calls:
        keys = pl.DataFrame(call, schema={"a": pl.String, "b": pl.Int64}, orient="row")
        expected = [known.setdefault(key, len(known)) for key in call]
        assert index.numbers(keys).tolist() == expected
    assert index.keys.rows() == list(known)


def test_many_keys_in_many_calls():
    index = KeyIndex({"tbname": pl.String()})
    everything = [f"d{n}" for n in range(50_000)]
    for start in range(0, 50_000, 1000):
        index.numbers(pl.DataFrame({"tbname": everything[: start + 1000][-3000:]}))
    assert np.array_equal(index.numbers(pl.DataFrame({"tbname": everything})), np.arange(50_000))


def test_keys_with_one_hash_are_told_apart_by_the_other(monkeypatch):
    honest = module._hash
    monkeypatch.setattr(
        module, "_hash", lambda keys: (np.zeros(keys.height, np.uint64), honest(keys)[1])
    )
    index = KeyIndex({"a": pl.Int64()})
    assert index.numbers(pl.DataFrame({"a": [5, 7, 5, 9]})).tolist() == [0, 1, 0, 2]
    assert index.numbers(pl.DataFrame({"a": [9, 11]})).tolist() == [2, 3]


def groups(**given_):
    return Groups(Scope(window_plan(**given_)), TableNames())


def numbers(made, rows):
    return made.numbers(rows.with_columns(made.expressions)).tolist()


def test_child_tables_have_automatic_names_and_a_group_id():
    made = groups(keys=BY_TABLE)
    assert numbers(made, frame([[("d1", 1, 1.0), ("d2", 1, 1.0), ("d1", 2, 1.0)]])) == [0, 1, 0]
    about = about_all(made)
    identity = names.group_id("out", ("d1",))
    assert about.drop("_hash").row(0) == (
        names.automatic_child("out", identity),
        identity,
        identity,
        "d1",
    )
    assert [h % 7 for h in about["_hash"]] == [partition(n, 7) for n in about["tbname"]]
    assert made.solo and made.whole


@pytest.mark.parametrize("keys", [BY_TABLE, BY_TAG])
def test_results_go_where_what_they_are_made_of_is(keys):
    plan = window_plan(keys=keys)
    made = Groups(Scope(replace(plan, target=replace(plan.target, beside=True))), TableNames())
    numbers(
        made,
        frame([[("d1", 1, 1.0), ("d2", 1, 1.0), ("d3", 2, 1.0)]]).with_columns(
            loc=pl.Series(["x", "y", "z"])
        ),
    )
    about = about_all(made)
    there = (
        [partition(d, 4) for d in ("d1", "d2", "d3")]
        if keys == BY_TABLE
        else [group % 4 for group in about["_group"]]
    )
    assert [partition(n, 4) for n in about["tbname"]] == [h % 4 for h in about["_hash"]] == there
    assert [n[:-2] for n in about["tbname"]] == [
        names.automatic_child("out", group)[:-2] for group in about["_group"]
    ]


def test_without_partition_by_there_is_one_group_with_id_zero():
    made = groups(keys=())
    assert len(made) == 0
    assert numbers(made, frame([[("d1", 1, 1.0), ("d2", 1, 1.0)]])) == [0, 0]
    assert about_all(made).drop("_hash").rows() == [(names.automatic_child("out", 0), 0, 0)]
    plan = window_plan(keys=())
    near = Groups(Scope(replace(plan, target=replace(plan.target, beside=True))), TableNames())
    numbers(near, frame([[("d1", 1, 1.0)]]))
    # all that have no groups would be in one partition
    assert about_all(near).equals(about_all(made))
    assert not made.solo
    assert groups(keys=(), source="plain").solo


def test_a_tag_groups_several_tables_and_null_is_a_group():
    made = groups(keys=BY_TAG)
    rows = frame([[("d1", 1, 1.0), ("d22", 1, 1.0), ("d3", 1, 1.0)]]).with_columns(
        loc=pl.Series(["x", None, "x"])
    )
    assert numbers(made, rows) == [0, 1, 0]
    assert about_all(made)["loc"].to_list() == ["x", None]
    assert not made.solo


def test_state_comes_back_in_pieces():
    made = groups()
    copy = groups()
    numbers(made, frame([[("d1", 1, 1.0)]]))
    copy.restore(made.delta())
    numbers(made, frame([[("d1", 1, 1.0), ("d2", 1, 1.0)]]))
    copy.restore(made.delta())
    assert about_all(copy).equals(about_all(made))
    assert made.delta().height == 0
