from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from gateway.coalescer import MAX_LINGER_S, ROWS_PER_RECORD, Coalescer, PendingWrite
from gateway.idempotency import Claim
from penstock.errors import OverloadError
from tests.unit.gateway.test_rows import METERS

LOOP = asyncio.new_event_loop()


def write(rows: int = 1, schema: int = 100, key: str | None = None, size: int = 10) -> PendingWrite:
    return PendingWrite(
        replace(METERS, schema_id=schema),
        [],
        rows,
        size,
        LOOP.create_future(),
        claim=Claim(key, {}) if key else None,
    )


def test_an_idle_gateway_lets_a_write_go_at_once() -> None:
    box = Coalescer(1000, 10)
    assert box.wait(0.0) is None
    box.offer(write(), 0.0)
    assert box.wait(0.0) == 0.0


def test_one_client_after_another_never_waits_but_many_gather() -> None:
    box = Coalescer(10_000, 1000)
    box.offer(write(), 0.0)
    box.take(0.0)
    box.offer(write(), 0.001)
    assert box.wait(0.001) == 0.0
    for _ in range(50):
        box.offer(write(), 0.001)
    box.take(0.001)
    box.offer(write(), 0.002)
    assert box.wait(0.002) == pytest.approx(MAX_LINGER_S)
    box.offer(write(rows=ROWS_PER_RECORD), 0.002)
    assert box.wait(0.002) == 0.0


def test_groups_keep_order_and_keyed_writes_stand_alone() -> None:
    box = Coalescer(10_000, 1000)
    a = write()
    b = write(schema=101)
    c = write()
    d = write(key="k")
    for w in (a, b, c, d):
        box.offer(w, 0.0)
    assert box.take(0.0) == [[a, c], [b], [d]]


def test_a_flush_is_bounded() -> None:
    box = Coalescer(10_000, 1000)
    for _ in range(3):
        box.offer(write(rows=3 * ROWS_PER_RECORD), 0.0)
    assert [len(g) for g in box.take(0.0)] == [1]
    assert box.wait(0.0) == 0.0


def test_memory_is_bounded_and_given_back() -> None:
    box = Coalescer(25, 10)
    first = write()
    box.offer(first, 0.0)
    box.offer(write(), 0.0)
    with pytest.raises(OverloadError):
        box.offer(write(), 0.0)
    box.take(0.0)
    box.release(first)
    box.offer(write(), 0.0)
    assert box.pending == (2, 20)
