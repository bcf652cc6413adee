"""What partition processors say of open windows, put together."""

from __future__ import annotations

import base64
import io
import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import pytest

from gateway.ddl.mesh_watch import MeshWatch
from gateway.ddl.stream_replies import StreamReplies
from penstock import names
from penstock.catalog.model import StreamEntry
from penstock.errors import BusError
from penstock.records import ControlRecord
from penstock.sql.plan import OPEN_SPAN
from tests.unit.services.memory_redis import MemoryRedis
from tests.unit.sql.memory_view import MemoryView, plan

T0 = 1_767_225_600_000


class Processors:
    """Answer the question of the gateway, a partition each, and keep nothing else."""

    def __init__(self, *answers: pl.DataFrame) -> None:
        self.answers = answers
        self.redis = MemoryRedis()
        self.catalog = SimpleNamespace(source_topics=lambda _: {"in.db": len(answers)})
        self.watch = SimpleNamespace(until=lambda done, *_: done() or pytest.fail("no answer"))

    def send(self, topic: str, partitions: range, control: ControlRecord) -> None:
        for partition in partitions:
            buffer = io.BytesIO()
            self.answers[partition].write_ipc_stream(buffer)
            text = base64.b64encode(buffer.getvalue()).decode()
            self.redis.hset(names.open_windows(control.id), f"{topic}:{partition}", text)


def ask(*answers: pl.DataFrame, named: tuple[str, ...] = ()) -> pl.DataFrame:
    view = MemoryView("CREATE TABLE db.t (ts TIMESTAMP, v INT)")
    text = "CREATE STREAM s INTO r AS SELECT _wstart, count(*) AS n FROM t INTERVAL(10s)"
    stream = StreamEntry(1, plan(text, view).plan)
    processors: Any = Processors(*answers)
    replies = StreamReplies(cast(Any, processors), processors.redis)
    return replies.open_windows(stream, named)


def answer(count: int, t: int | None = None) -> pl.DataFrame:
    """Return a window of *count* rows; without *t*, as the former version has it."""
    row: dict[str, object] = {"tbname": "r", "_wstart": T0, "n": count}
    if t is not None:
        row |= dict(zip(OPEN_SPAN, (T0, T0 + 10_000, T0 + t), strict=True))
    return pl.DataFrame([row])


def test_results_alone_unless_more_is_named() -> None:
    assert ask(answer(2, 7), answer(3, 8)).select("_wstart", "n").rows() == [
        (datetime(2026, 1, 1, tzinfo=UTC), 2),
        (datetime(2026, 1, 1, tzinfo=UTC), 3),
    ]
    assert not set(OPEN_SPAN) & set(ask(answer(2, 7)).columns)
    with_t = ask(answer(2, 7), named=("n", "_window_t"))
    assert with_t.get_column("_window_t").to_list() == [
        datetime(2026, 1, 1, 0, 0, 0, 7_000, tzinfo=UTC)
    ]
    assert "_window_end" not in with_t.columns


def test_processors_of_the_former_version_leave_the_span_open() -> None:
    mixed = ask(answer(2), answer(3, 8), named=OPEN_SPAN)
    assert [t is None for t in mixed.get_column("_window_t")] == [True, False]
    assert ask(answer(2).clear(), named=OPEN_SPAN).columns[-3:] == list(OPEN_SPAN)


# -------------------------------------------------------------------- CREATE STREAM waits


@pytest.mark.parametrize(
    ("mode", "options", "waits"),
    [
        ("rest", "", False),
        ("rest", "FILL_HISTORY 1", True),
        ("rest", "FILL_HISTORY 1 ASYNC", False),
        ("realtime", "", True),
        ("microbatch", "", True),
        # nobody says that the topic is minded
        ("", "", True),
    ],
)
def test_only_a_topic_at_rest_is_not_waited_for(mode: str, options: str, waits: bool) -> None:
    client: Any = MemoryRedis()
    if mode:
        client.set(names.query_heartbeat("in.db"), json.dumps({"mode": mode}))
    definer: Any = SimpleNamespace(
        catalog=SimpleNamespace(source_topics=lambda _: {"in.db": 1}),
        watch=MeshWatch(client, live_timeout=0.005, wait_for_jobs=True),
    )
    view = MemoryView("CREATE TABLE db.t (ts TIMESTAMP, v INT)")
    text = f"CREATE STREAM s {options} INTO r AS SELECT _wstart, count(*) n FROM t INTERVAL(10s)"
    stream = StreamEntry(1, plan(text, view).plan)
    replies = StreamReplies(definer, client)
    if waits:
        with pytest.raises(BusError, match="not live everywhere yet"):
            replies.wait_live(stream)
        client.hset(names.stream_status(1), "in.db:0", "7")
        client.hset(names.stream_status(1), f"{names.EXCHANGE}:0", "7")
    replies.wait_live(stream)
