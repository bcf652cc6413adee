"""Which queries run, in which mode, and when a failed one is tried again."""

from __future__ import annotations

from penstock import names
from penstock.catalog.model import Database, Table, TableVersion
from penstock.catalog.view import Catalog
from penstock.sql.plan import Column
from penstock.types import ColumnType
from spark_jobs.queries import Action, Failures, Running, Wanted, decide, topics_to_read

A = Wanted("in.a", 4, 100)
B = Wanted("in.b", 4, 101)
EXCHANGE = Wanted(names.EXCHANGE, 4, 0)


def test_a_topic_per_database_and_per_table_with_its_own() -> None:
    columns = (Column("ts", ColumnType("TIMESTAMP")),)
    own = Table(102, "a", "Big", "stable", "in.a.big", 16, "ms", (TableVersion(103, columns),))
    small = Table(104, "a", "small", "plain", "in.a", 4, "ms", (TableVersion(105, columns),))
    found = topics_to_read(Catalog([Database(100, "a"), own, small]))
    assert found == {names.EXCHANGE: EXCHANGE, "in.a": A, "in.a.big": Wanted("in.a.big", 16, 102)}


def test_what_is_wanted_is_started_and_what_is_not_is_stopped() -> None:
    actions, starved = decide(
        {"in.a": A}, {"in.b": Running(B, "realtime", True)}, {}, backlog=10, slots=20
    )
    assert actions == [Action("stop", B), Action("start", A, "realtime")]
    assert not starved


def test_others_are_left_alone() -> None:
    running = {"in.b": Running(B, "realtime", True)}
    actions, _ = decide({"in.a": A, "in.b": B}, running, {}, backlog=10, slots=20)
    assert actions == [Action("start", A, "realtime")]


def test_a_topic_made_anew_under_its_old_name_is_another_topic() -> None:
    again = Wanted("in.a", 4, 200)
    actions, _ = decide(
        {"in.a": again}, {"in.a": Running(A, "realtime", True)}, {}, backlog=10, slots=20
    )
    assert actions == [Action("stop", A), Action("start", again, "realtime")]


def test_a_backlog_is_caught_up_in_micro_batches_and_handed_back() -> None:
    far = {"in.a": Running(A, "realtime", True, lag=11)}
    assert decide({"in.a": A}, far, {"in.a": 11}, backlog=10, slots=20)[0] == [Action("stop", A)]
    assert decide({"in.a": A}, {}, {"in.a": 11}, backlog=10, slots=20)[0] == [
        Action("start", A, "microbatch")
    ]
    catching_up = {"in.a": Running(A, "microbatch", True, lag=5000)}
    assert decide({"in.a": A}, catching_up, {"in.a": 5000}, backlog=10, slots=20)[0] == []
    assert decide({"in.a": A}, {}, {"in.a": 3}, backlog=10, slots=20)[0] == [
        Action("start", A, "realtime")
    ]


def test_no_query_without_slots_for_all_its_partitions() -> None:
    actions, starved = decide({"in.a": A, "in.b": B}, {}, {}, backlog=10, slots=9)
    assert actions == [Action("start", A, "realtime")]
    assert starved == [B]


def test_pauses_double_and_are_forgiven() -> None:
    failures = Failures()
    assert failures.may_start(0.0)
    failures = failures.another(100.0)
    assert not failures.may_start(100.4)
    assert failures.may_start(100.5)
    for now in (101.0, 102.0, 104.0):
        failures = failures.another(now)
    assert failures.count == 4
    assert not failures.may_start(107.9)
    assert failures.may_start(108.0)
    assert failures.another(104.0 + 3601).count == 1


def test_a_query_that_had_run_for_a_while_is_back_at_once_however_often_it_failed() -> None:
    failures = Failures()
    for now in (0.0, 12.0, 24.0, 36.0):
        failures = failures.another(now, ran=11.0)
        assert failures.may_start(now)
    assert failures.count == 4
    assert not failures.another(37.0, ran=1.0).may_start(37.4)
