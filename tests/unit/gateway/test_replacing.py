"""What a stream can become without starting over: options, and nothing that changes what its
windows mean.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.ddl import replacing
from penstock.catalog.model import StreamEntry, Table, TableVersion
from penstock.errors import SqlSemanticError
from penstock.sql import parse_one
from penstock.sql.plan import Column, Duration, StreamPlan
from penstock.sql.statements import AlterStream
from penstock.types import ColumnType
from tests.unit.sql.memory_view import MemoryView, plan

DDL = "CREATE STABLE m (ts TIMESTAMP, a INT) TAGS (g INT)"
TEXT = "CREATE STREAM s {} INTO o AS SELECT _wstart, count(*) AS n FROM m PARTITION BY tbname INTERVAL({})"


def planned(options: str = "", size: str = "10s") -> StreamPlan:
    return plan(TEXT.format(options, size), MemoryView(DDL)).plan


def alter(text: str) -> AlterStream:
    statement = parse_one(f"ALTER STREAM s {text}")
    assert isinstance(statement, AlterStream)
    return statement


def test_options_that_leave_windows_alone_keep_the_state() -> None:
    old = planned()
    for options in (
        "IDLE_TIMEOUT 1h",
        "ON_ERROR STOP",
        "DELETE_MARK 1d",
        "FILL_HISTORY 1",
        "MAX_RESULTS 5 MAX_STATE 7",
    ):
        assert replacing.keeps_state(old, planned(options)), options
    for options in ("WATERMARK 1s", "TRIGGER AT_ONCE", "IGNORE EXPIRED 0"):
        assert not replacing.keeps_state(old, planned(options)), options
    assert not replacing.keeps_state(old, planned(size="20s"))


def test_a_stream_that_goes_on_keeps_its_ids() -> None:
    old = planned()
    new = replace(planned("ON_ERROR STOP"), stream_id=99)
    made = replacing.with_new_options(old, new)
    assert (made.stream_id, made.on_error, made.sql) == (old.stream_id, "stop", new.sql)


def test_a_result_table_comes_and_goes_only_with_a_new_state() -> None:
    query = "AS SELECT _wstart, count(*) AS n FROM m PARTITION BY tbname INTERVAL(10s)"
    notify = "NOTIFY ON ('WINDOW_CLOSE')"
    told = plan(f"CREATE STREAM s {query} {notify}", MemoryView(DDL)).plan
    kept = plan(f"CREATE STREAM s INTO s {query} {notify}", MemoryView(DDL)).plan
    assert not replacing.keeps_state(told, kept) and not replacing.keeps_state(kept, told)
    assert replacing.keeps_state(told, replace(told, max_results=5))


def test_a_stream_of_before_keeps_the_names_of_its_child_tables() -> None:
    new = planned()
    old = StreamPlan.from_json(new.to_json().replace('"beside":true', '"beside":false'))
    assert new.target.beside and not old.target.beside
    assert (
        replacing.keeps_state(old, new) and not replacing.with_new_options(old, new).target.beside
    )


def test_a_replaced_stream_keeps_the_tags_that_its_result_has() -> None:
    """A default result of an older build has no tag but group_id; one of another PARTITION BY has
    other keys.
    """
    made = plan(TEXT.format("", "10s"), MemoryView(DDL))
    assert made.new_target is not None and [t.name for t in made.new_target.tags] == [
        "tag_tbname",
        "group_id",
    ]
    group = made.new_target.tags[-1]
    other = Column("region", ColumnType("INT"))
    for tags, origins in (((group,), ("group_id",)), ((other, group), (None, "group_id"))):
        target = replace(made.plan.target, tags=tags, tag_of=origins)
        old = StreamEntry(5, replace(made.plan, stream_id=5, target=target))
        known = Table(
            99,
            "db",
            "o",
            "stable",
            "in.db",
            1,
            "ms",
            (TableVersion(3, made.new_target.columns, tags),),
            result_of=5,
        )
        kept = replacing.with_tags_of(old, known, made)
        assert (
            kept.new_target is not None
            and kept.new_target.tags == tags
            and kept.plan.target.tag_of == origins
        )
        assert replacing.keeps_state(old.plan, kept.plan)
    assert replacing.with_tags_of(old, None, made) is made


def test_alter_changes_the_text_too() -> None:
    made = replacing.with_options(
        alter("IDLE_TIMEOUT 2m DELETE_MARK 1s ON_ERROR STOP"), planned("WATERMARK 5s")
    )
    assert (made.idle_timeout, made.delete_mark, made.on_error) == (
        Duration(2, "m"),
        Duration(10, "s"),
        "stop",
    )
    assert "IDLE_TIMEOUT 2m" in made.sql and "WATERMARK 5s" in made.sql
    assert plan(made.sql, MemoryView(DDL)).plan.idle_timeout == Duration(2, "m")


def test_quotas_are_set_raised_and_lifted() -> None:
    made = replacing.with_options(alter("MAX_RESULTS 100 MAX_STATE 8"), planned("MAX_STATE 7"))
    assert (made.max_results, made.max_state) == (100, 8)
    lifted = replacing.with_options(alter("MAX_STATE 0"), made)
    assert (lifted.max_results, lifted.max_state) == (100, 0)
    assert "MAX_RESULTS 100 MAX_STATE 0" in lifted.sql
    assert replacing.with_new_options(planned(), replace(made, stream_id=99)).max_results == 100


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("WATERMARK 1s", "E_STREAM_STATE"),
        ("TRIGGER AT_ONCE", "E_STREAM_STATE"),
        ("IDLE_TIMEOUT 0s", "E_DURATION"),
    ],
)
def test_what_alter_refuses(text: str, code: str) -> None:
    with pytest.raises(SqlSemanticError) as caught:
        replacing.with_options(alter(text), planned())
    assert caught.value.code == code
