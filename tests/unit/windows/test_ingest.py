"""Source rows become prepared rows: numbered, evaluated once, none of them judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from penstock.sql.plan import Session, State, StreamPlan
from penstock.windows.accumulate.aggregates import Aggregates
from penstock.windows.assign.cut import make_cutter
from penstock.windows.assign.ingest import Ingest
from penstock.windows.kernel import EARLIEST, LATEST
from penstock.windows.rows.scope import Scope
from tests.unit.windows.assembly import groups_of
from tests.unit.windows.plans import BY_TABLE, BY_TAG, INT, duration, frame, window_plan


def _ingest(plan: StreamPlan | None = None, **given: Any) -> Ingest:
    plan = plan or window_plan(**given)
    scope = Scope(plan)
    return Ingest(scope, groups_of(plan), Aggregates(scope), make_cutter(scope))


_WRITES = [[("d1", 10, 1.0), ("d22", 20, 2.0)], [("d1", 30, None)]]


def test_rows_are_numbered_by_partition_and_by_arrival():
    ingest = _ingest()
    made, failed = ingest.prepare(frame(_WRITES))
    assert failed is None
    assert made.get_column("_g").to_list() == [0, 1, 0]
    assert made.get_column("_seq").to_list() == [0, 1, 2]
    assert made.get_column("_step").to_list() == [0, 0, 1]
    again, _ = ingest.prepare(frame([[("d22", 40, 1.0), ("d3", 40, 1.0)]], first=2))
    assert again.get_column("_g").to_list() == [1, 2]
    assert again.get_column("_seq").to_list() == [3, 4]


def test_a_prepared_row_holds_what_windows_need_and_counts_everywhere():
    ingest = _ingest(replace(window_plan(), window=State("i", INT)))
    made, _ = ingest.prepare(frame(_WRITES))
    assert made.columns[: len(ingest.columns)] == ingest.columns
    assert made.get_column("_state").to_list() == [1, 2, None]
    assert made.get_column("_x0").to_list() == [1.0, 2.0, None]
    assert set(made.get_column("_floor")) == {EARLIEST}
    assert set(made.get_column("_ceiling")) == {LATEST}
    assert "loc" not in made.columns


def test_where_is_noted_and_null_does_not_pass():
    made, _ = _ingest(where="v > 1").prepare(frame(_WRITES))
    assert made.get_column("_pass").to_list() == [False, True, False]


def test_where_groups_are_no_tables_both_are_numbered():
    ingest = _ingest(keys=BY_TAG)
    made, _ = ingest.prepare(frame([[("d1", 10, 1.0), ("d2", 10, 1.0), ("d33", 10, 1.0)]]))
    assert made.get_column("_g").to_list() == [0, 0, 1]
    assert made.get_column("_tab").to_list() == [0, 1, 2]
    assert ingest.tables_of(made[1:]) in (["d2", "d33"], ["d33", "d2"])
    assert ingest.names_of(np.array([0])) is None
    assert ingest.tables_named(["D2", "other"]).tolist() == [1]


def test_where_groups_are_tables_one_number_tells_both():
    ingest = _ingest(keys=BY_TABLE)
    made, _ = ingest.prepare(frame(_WRITES))
    assert made.get_column("_tab").to_list() == made.get_column("_g").to_list()
    assert ingest.tables_of(made[1:2]) == ["d22"]
    assert ingest.names_of(np.array([1, 0])) == ["d22", "d1"]
    assert ingest.tables_named(["D22"]).tolist() == [1]


def test_a_plain_table_is_known_by_its_own_name():
    ingest = _ingest(keys=(), source="plain")
    ingest.prepare(frame([[("st", 10, 1.0)]]))
    assert ingest.tables_named(["ST"]).tolist() == [0]
    assert ingest.tables_named(["other"]).tolist() == []


def test_only_rows_of_the_child_that_is_read_are_prepared():
    plan = window_plan(keys=())
    child = replace(plan, source=replace(plan.source, kind="child", child="D22"))
    made, _ = _ingest(child).prepare(frame(_WRITES))
    assert made.get_column("ts").to_list() == [20]
    assert made.get_column("_source").to_list() == [1]  # its line in the frame that was given


def test_a_row_on_which_an_expression_fails_comes_back_apart():
    rows = frame([[("d1", 10, 1.0), ("d1", 2**63 - 1, 2.0), ("d1", 20, 3.0)]])
    made, failed = _ingest(where="date(ts) IS NOT NULL").prepare(rows)
    assert made.get_column("ts").to_list() == [10, 20]
    assert failed is not None
    assert failed.drop("_reason").equals(rows[1:2])
    assert failed.get_column("_reason").item()


def test_rows_can_be_numbered_as_if_they_came_only_now():
    ingest = _ingest()
    made, _ = ingest.prepare(frame(_WRITES))
    rows, others = ingest.renumbered(made[[0, 2]], made[1:2])
    assert rows.get_column("_seq").to_list() == [3, 5]
    assert others.get_column("_seq").to_list() == [4]
    later, _ = ingest.prepare(frame([[("d1", 40, 1.0)]]))
    assert later.get_column("_seq").to_list() == [6]


def test_nothing_is_numbered_where_there_is_nothing():
    ingest = _ingest()
    empty = ingest.empty
    assert (empty.columns, empty.height) == (ingest.columns, 0)
    assert ingest.renumbered(empty, empty) == (empty, empty)
    made, _ = ingest.prepare(frame(_WRITES))
    assert made.get_column("_seq").to_list() == [0, 1, 2]


def test_saved_rows_of_earlier_versions_count_up_to_the_end():
    ingest = _ingest()
    made, _ = ingest.prepare(frame(_WRITES))
    rows = made.select(ingest.columns)
    assert ingest.as_now(rows.drop("_ceiling")).equals(rows)
    assert ingest.as_now(rows.reverse()).equals(rows.reverse())


@pytest.mark.parametrize("keys", [BY_TABLE, BY_TAG])
def test_numbers_go_on_behind_a_saved_state(keys):
    plan = replace(window_plan(keys=keys), window=Session(duration("1s")))
    ingest, copy = _ingest(plan), _ingest(plan)
    for writes in (_WRITES, [[("d3", 50, 1.0)]]):
        ingest.prepare(frame(writes))
        copy.restore(ingest.delta(full=False))
    more = frame([[("d3", 60, 1.0), ("d22", 60, 1.0), ("d4", 60, 1.0)]])
    assert copy.prepare(more)[0].equals(ingest.prepare(more)[0])


def test_a_delta_names_each_table_once():
    ingest = _ingest(keys=BY_TAG)
    ingest.prepare(frame(_WRITES))
    assert ingest.delta(full=False)["tables"].get_column("tbname").to_list() == ["d1", "d22"]
    ingest.prepare(frame([[("d1", 50, 1.0), ("d3", 50, 1.0)]]))
    delta = ingest.delta(full=False)
    assert delta["tables"].get_column("tbname").to_list() == ["d3"]
    assert delta["arrival"].item() == 5
    assert isinstance(ingest.delta(full=True)["tables"], pl.DataFrame)
    assert ingest.delta(full=True)["tables"].height == 3
