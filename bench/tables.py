"""Stream tables of a raft group: acked rows/s beside a table of one copy, how late handlers get
rows, many subscribers, memory.

The table has the eleven columns of the reference's own measurement. Three copies: a group of three
nodes. One copy: a plain table written over the gateway. `sync` waits for each answer before the
next write, as the reference's producer does; `piped` has many under way. Baselines of the lines
with three copies are the same writes to the table with one; the reference's own ratios are 44 % at
one row and 72 % at 10,000.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import numpy as np
import pyarrow as pa

import penstock
from bench.profile import Profile
from bench.report import Line, Recorder, median_line
from bench.stage import Stage

GROUP = 11
NAMES = ["ts", "sym", "price", "qty", "bid", "ask", "bsize", "asize", "volume", "flag", "seq"]
TYPES = [
    "TIMESTAMP",
    "VARCHAR(16)",
    "DOUBLE",
    "INT",
    "DOUBLE",
    "DOUBLE",
    "INT",
    "INT",
    "BIGINT",
    "TINYINT",
    "BIGINT",
]
_REFERENCE = {1: 672, 1_000: 22_714, 10_000: 379_046}


def rows(count: int, first: int = 0) -> pa.Table:
    ids = np.arange(first, first + count)
    times = pa.array(np.full(count, time.time_ns() // 10**6), pa.timestamp("ms", "UTC"))
    symbols = pa.array(np.array(["IBM", "AAPL", "MSFT", "ORCL"])[ids % 4])
    prices = 100 + ids * 0.01
    small = pa.array(ids % 1000, pa.int32())
    columns = [
        times,
        symbols,
        prices,
        small,
        prices - 1,
        prices + 1,
        small,
        small,
        ids * 3,
        pa.array(ids % 2, pa.int8()),
        ids,
    ]
    return pa.table(columns, names=NAMES)


def measure(on: Stage, profile: Profile, record: Recorder) -> None:
    """All of it, on one mesh."""
    on.client.execute("CREATE DATABASE bt")
    _rates(on, profile, record)
    _latency(on, profile, record)
    _subscribers(on, profile, record)
    _memory(on, profile, record)


# ---------------------------------------------------------------- rows in


def _rates(on: Stage, profile: Profile, record: Recorder) -> None:
    columns = ", ".join(f"{n} {t}" for n, t in zip(NAMES, TYPES, strict=True))
    for batch in (1, 1_000, 10_000):
        block = rows(batch)
        first = [0]

        def stamped(
            batch: int = batch, block: pa.Table = block, first: list[int] = first
        ) -> pa.Table:
            """The plain table's rows have a key: each block gets times of its own."""
            first[0] += batch
            times = pa.array(
                np.arange(first[0], first[0] + batch) + 1_700_000_000_000, pa.timestamp("ms", "UTC")
            )
            return block.set_column(0, "ts", times)

        on.client.execute(f"CREATE TABLE bt.plain{batch} ({columns})")
        ha = on.client.ha.create(GROUP, penstock.table(NAMES, TYPES), f"bt.ha{batch}", 100_000)
        for mode in ("sync", "piped"):
            _pair(on, profile, record, mode, batch, ha, block, stamped)
        ha.close()


def _pair(
    on: Stage,
    profile: Profile,
    record: Recorder,
    mode: str,
    batch: int,
    ha: penstock.StreamTable,
    block: pa.Table,
    stamped: Callable[[], pa.Table],
) -> None:
    """The same writes to both tables, in turns."""
    three = []
    one = []
    seconds = profile.gateway_seconds / 3
    for _ in range(profile.rounds):
        if mode == "sync":
            one.append(
                _sync(lambda: on.client.write(f"bt.plain{batch}", stamped()), batch, seconds)
            )
            three.append(_sync(lambda: ha.append(block), batch, seconds))
        else:
            one.append(_written(on, f"bt.plain{batch}", stamped, batch, seconds))
            three.append(_piped(lambda: ha.submit(block), batch, seconds))
    plain = median_line(f"tables_1copy_{batch}_{mode}", one, "rows/s", mode=mode)
    note = f"reference {_REFERENCE[batch]} rows/s with one thread waiting" if mode == "sync" else ""
    record.add(
        plain,
        median_line(
            f"tables_3copies_{batch}_{mode}",
            three,
            "rows/s",
            baseline=plain.value,
            mode=mode,
            note=note,
        ),
    )


def _sync(write: Callable[[], object], batch: int, seconds: float) -> float:
    for _ in range(3):
        write()
    count = 0
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        write()
        count += 1
    return count * batch / (time.monotonic() - begin)


def _piped(submit: Callable[[], Future[int]], batch: int, seconds: float) -> float:
    submit().result()
    sent: list[Future[int]] = []
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        sent.append(submit())
    for future in sent:
        future.result()
    return len(sent) * batch / (time.monotonic() - begin)


def _written(
    on: Stage, table: str, block: Callable[[], pa.Table], batch: int, seconds: float
) -> float:
    with on.client.writer(table) as writer:
        count = 0
        begin = time.monotonic()
        while time.monotonic() - begin < seconds:
            writer.write(block())
            count += 1
        writer.flush()
        return count * batch / (time.monotonic() - begin)


# ---------------------------------------------------------------- rows out


def _latency(on: Stage, profile: Profile, record: Recorder) -> None:
    """One row at a time, 100 a second: from `append` called to the handler called."""
    table = on.client.ha.create(
        GROUP, penstock.table(["ts", "sent"], ["TIMESTAMP", "BIGINT"]), "bt.latency", 100_000
    )
    late: list[float] = []

    def handler(message: Any) -> None:
        now = time.monotonic_ns()
        late.extend((now - sent) / 1e6 for sent in message.table.column("sent").to_pylist())

    sub = on.client.ha.subscribe(
        "bt.latency",
        handler,
        "bench",
        options=penstock.SubscriptionOptions(msg_as_table=True, reconnect=True),
    )
    end = time.monotonic() + profile.latency_seconds
    while time.monotonic() < end:
        table.append([{"ts": time.time_ns() // 10**6, "sent": time.monotonic_ns()}])
        time.sleep(0.01)
    sub.close()
    table.close()
    values = np.sort(late[50:])
    extra = {"n": len(values)}
    for name, part in (("p50", 50), ("p99", 99)):
        record.add(
            Line(
                f"tables_publish_to_handler_{name}",
                float(np.percentile(values, part)),
                "ms",
                mode="100/s",
                extra=extra,
            )
        )


def _subscribers(on: Stage, profile: Profile, record: Recorder) -> None:
    """A hundred subscriptions in one program, each gets every row."""
    count = 100
    wanted = 20_000 if profile.name != "quick" else 2_000
    table = on.client.ha.create(GROUP, penstock.table(NAMES, TYPES), "bt.fan", 100_000)
    left = [count]
    lock = threading.Condition()
    got = [0] * count

    def handler_of(i: int) -> Callable[[Any], None]:
        def handler(message: Any) -> None:
            got[i] += len(message)
            if got[i] >= wanted:
                with lock:
                    left[0] -= 1
                    lock.notify_all()

        return handler

    subs = [
        on.client.ha.subscribe(
            "bt.fan",
            handler_of(i),
            f"s{i}",
            offset=0,
            options=penstock.SubscriptionOptions(msg_as_table=True, reconnect=True),
        )
        for i in range(count)
    ]
    begin = time.monotonic()
    for first in range(0, wanted, 1_000):
        table.append(rows(1_000, first))
    with lock:
        done = lock.wait_for(lambda: left[0] <= 0, 300)
    seconds = time.monotonic() - begin
    if not done or any(g != wanted for g in got):
        record.problem(
            f"of {count} subscribers {left[0]} did not get exactly {wanted} rows: {sorted(set(got))}"
        )
    record.add(
        Line(
            "tables_100_subscribers",
            count * wanted / seconds,
            "rows/s",
            mode="all",
            note=f"{wanted} rows to each",
        )
    )
    for sub in subs:
        sub.close()
    table.close()


def _memory(on: Stage, profile: Profile, record: Recorder) -> None:
    """Ten million rows with a cache limit of 100,000."""
    total = 10_000_000 if profile.name != "quick" else 500_000
    before = on.memory()
    table = on.client.ha.create(GROUP, penstock.table(NAMES, TYPES), "bt.big", 100_000)
    block = rows(10_000)
    for _ in range(total // 10_000):
        table.submit(block)
    table.append(rows(1))
    meta = table.meta()
    after = on.memory()
    for node in ("node1", "node2", "node3"):
        note = f"{meta['totalSize']} rows, {meta['sizeInMemory']} in memory, {meta['sizeOnDisk']} in {meta['files']} files"
        record.add(
            Line(
                f"tables_memory_{node}",
                after[node],
                "MiB",
                baseline=before[node],
                mode=f"{total} rows",
                note=note,
            )
        )
    table.close()
