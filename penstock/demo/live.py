"""`penstock demo --live`: this machine's processors, memory and network as a table, and windows
over them as they close.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

import psutil
from rich.console import Console
from rich.live import Live
from rich.table import Table

from penstock.client.connection import Connection
from penstock.client.subscribe import Subscription
from penstock.errors import PenstockError

DATABASE = "machine"
_SETUP = (
    f"CREATE DATABASE IF NOT EXISTS {DATABASE} PARTITIONS 1",
    f"CREATE STABLE IF NOT EXISTS {DATABASE}.cores (ts TIMESTAMP, busy DOUBLE) TAGS (core INT)",
    (
        f"CREATE TABLE IF NOT EXISTS {DATABASE}.host (ts TIMESTAMP, memory DOUBLE, sent BIGINT,"
        " received BIGINT)"
    ),
    (
        f"CREATE STREAM IF NOT EXISTS {DATABASE}.by_core TRIGGER AT_ONCE INTO {DATABASE}.core_5s"
        " TAGS (name VARCHAR(32)) AS SELECT _wstart, avg(busy) AS busy, max(busy) AS peak FROM"
        f" {DATABASE}.cores PARTITION BY tbname AS name INTERVAL(5s)"
    ),
    (
        f"CREATE STREAM IF NOT EXISTS {DATABASE}.whole TRIGGER AT_ONCE INTO {DATABASE}.host_5s AS"
        " SELECT _wstart, avg(memory) AS memory, spread(sent) AS sent, spread(received) AS"
        f" received FROM {DATABASE}.host INTERVAL(5s)"
    ),
)
#: samples a second
_RATE = 5.0


class _Screen:
    """The newest window of each core and of the host."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, object]] = {}

    def listen(self, name: str, subscription: Subscription) -> None:
        for update in subscription:
            for row in update.items:
                self.rows[f"{name} {row.get('name') or ''}"] = row

    def table(self) -> Table:
        table = Table(title="five-second windows of this machine (Ctrl-C ends)")
        for heading in ("window", "begins", "values"):
            table.add_column(heading)
        for name, row in sorted(self.rows.items()):
            begins = datetime.fromtimestamp(int(str(row["_wstart"])) / 1000, UTC).strftime(
                "%H:%M:%S"
            )
            values = {
                k: v
                for k, v in row.items()
                if k not in ("_wstart", "tbname", "op", "name", "group_id")
            }
            table.add_row(
                name,
                begins,
                ", ".join(
                    f"{k}={round(v, 1) if isinstance(v, float) else v}" for k, v in values.items()
                ),
            )
        return table


def run(client: Connection, console: Console) -> None:
    """Feed and show until interrupted."""
    for statement in _SETUP:
        client.execute(statement)
    screen = _Screen()
    subscriptions = [
        (n, client.subscribe(f"{DATABASE}.{n}", stream=True).open()) for n in ("by_core", "whole")
    ]
    for pair in subscriptions:
        threading.Thread(target=screen.listen, args=pair, daemon=True).start()
    stop = threading.Event()
    try:
        with (
            Live(console=console, refresh_per_second=4, get_renderable=screen.table),
            client.writer() as writer,
        ):
            while not stop.wait(1 / _RATE):
                now = time.time_ns() // 1_000_000
                busy = psutil.cpu_percent(percpu=True)
                writer.write(
                    [
                        {"tbname": f"core{i}", "ts": now, "busy": b, "core": i}
                        for i, b in enumerate(busy)
                    ],
                    f"{DATABASE}.cores",
                )
                network = psutil.net_io_counters()
                host = {
                    "ts": now,
                    "memory": psutil.virtual_memory().percent,
                    "sent": network.bytes_sent,
                    "received": network.bytes_recv,
                }
                writer.write([host], f"{DATABASE}.host")
    except KeyboardInterrupt:
        console.print("ended")
    finally:
        for _, subscription in subscriptions:
            try:
                subscription.close()
            except PenstockError as error:
                console.print(str(error), markup=False)
