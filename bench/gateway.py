"""gateway_ws, gateway_http: what the way in takes, acknowledged by Kafka. The client runs in a
process of its own with lower priority.
"""

from __future__ import annotations

import asyncio
import base64
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from urllib.parse import urlsplit

import numpy as np
import polars as pl

from bench import load
from bench.profile import Profile
from bench.report import Line, Recorder, median_line
from bench.stage import Stage
from penstock.client.connection import connect

_FRAME = 500
_SOCKETS = 2
#: more than the 3,000 that are promised: rates count the time until the last ack, so they stay a
#: little below
_WANTED_HTTP = 3_200
_CONNECTIONS = 64


def measure(stage: Stage, profile: Profile, record: Recorder) -> None:
    """Both gateway lines."""
    stage.client.execute("CREATE DATABASE ways")
    stage.client.execute(f"CREATE STABLE ways.meters {load.COLUMNS}")
    where = (stage.mesh.gateway_url, stage.mesh.user, stage.mesh.password)
    rates = []
    costs = []
    https = []
    for _ in range(profile.rounds):
        with ProcessPoolExecutor(
            _SOCKETS, multiprocessing.get_context("spawn"), initializer=os.nice, initargs=(5,)
        ) as pool:
            begin = time.time() + 3.0
            before = stage.cpu("gateway")
            jobs = [
                pool.submit(_websocket, *where, n, begin, profile.gateway_seconds)
                for n in range(_SOCKETS)
            ]
            done = [job.result() for job in jobs]
        spent = stage.cpu("gateway") - before
        rates.append(sum(rate for rate, _ in done))
        costs.append(spent / sum(rows for _, rows in done) * 1e6)
    note = f"Arrow frames of {_FRAME} rows over {_SOCKETS} sockets, acked"
    record.add(median_line("gateway_ws", rates, "rows/s", mode="-", note=note))
    note = "core seconds of the gateway for a million rows of gateway_ws"
    record.add(median_line("gateway_ws_cpu", costs, "s/M rows", mode="-", note=note))
    for _ in range(profile.rounds):
        with ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn"), initializer=os.nice, initargs=(5,)
        ) as pool:
            https.append(pool.submit(_http, *where, profile.gateway_seconds).result())
    p50, p99 = (float(np.median([h[k] for h in https])) for k in ("p50", "p99"))
    note = f"{_WANTED_HTTP} one-row requests/s asked for over {_CONNECTIONS} connections; ack p50 {p50:.1f} ms, p99 {p99:.1f} ms"
    record.add(
        median_line("gateway_http", [h["rate"] for h in https], "requests/s", mode="-", note=note)
    )
    record.add(
        Line(
            "gateway_http_p99",
            p99,
            "ms",
            note="ack of one-row requests, counted from when each was due",
        )
    )
    refused = sum(int(h["refused"]) for h in https)
    if refused:
        record.problem(f"gateway_http: {refused} requests were refused")
    stage.drop("ways")


def _websocket(
    url: str, user: str, password: str, number: int, begin: float, seconds: float
) -> tuple[float, int]:
    """Rows/s acknowledged over one socket, as fast as it goes, and all rows with those before."""
    n = np.arange(_FRAME)
    frames = []
    for i in range(200):
        at = i * _FRAME + n
        frames.append(
            pl.DataFrame(
                {
                    "tbname": pl.Series([f"w{number}_{k}" for k in range(_FRAME)]),
                    "ts": 1_700_000_000_000 + at,
                    "seq": at,
                    "current": at * 0.125,
                    "voltage": (200 + at % 40).astype(np.int32),
                    "site": np.full(_FRAME, number, np.int32),
                }
            )
            .with_columns(pl.col("ts").cast(pl.Datetime("ms")))
            .to_arrow(compat_level=pl.CompatLevel.oldest())
        )
    with (
        connect(url, user=user, password=password) as client,
        client.writer("ways.meters") as writer,
    ):
        time.sleep(max(begin - time.time(), 0))
        for frame in frames[:20]:
            writer.write(frame)
        before = writer.flush()
        started = time.perf_counter()
        i = 0
        while time.perf_counter() - started < seconds:
            writer.write(frames[i % len(frames)])
            i += 1
        rows = writer.flush()
        return (rows - before) / (time.perf_counter() - started), rows


def _http(url: str, user: str, password: str, seconds: float) -> dict[str, float]:
    return asyncio.run(_requests(url, user, password, seconds))


async def _requests(url: str, user: str, password: str, seconds: float) -> dict[str, float]:
    """Requests at a fixed rate over keep-alive connections, bare sockets: the client must not be
    the limit.
    """
    host = urlsplit(url).hostname or "127.0.0.1"
    port = urlsplit(url).port or 80
    token = base64.b64encode(f"{user}:{password}".encode()).decode()
    head = f"POST /v1/tables/ways/meters/rows HTTP/1.1\r\nHost: {host}\r\nAuthorization: Basic {token}\r\n"
    head += "Content-Type: application/json\r\n"
    total = int(_WANTED_HTTP * (seconds + 1))
    warm = _WANTED_HTTP
    took = np.full(total, np.nan)
    begin = time.perf_counter() + 0.5
    refused = 0
    last = 0.0

    async def connection(number: int) -> None:
        nonlocal refused, last
        reader, writer = await asyncio.open_connection(host, port)
        for i in range(number, total, _CONNECTIONS):
            due = begin + i / _WANTED_HTTP
            if (wait := due - time.perf_counter()) > 0:
                await asyncio.sleep(wait)
            row = f'[{{"tbname":"h{i % 500}","ts":{1_700_000_000_000 + i},"seq":{i},"current":1.5,"voltage":220,"site":1}}]'
            writer.write(f"{head}Content-Length: {len(row)}\r\n\r\n{row}".encode())
            answer = await reader.readuntil(b"\r\n\r\n")
            lengths = [
                line
                for line in answer.split(b"\r\n")
                if line.lower().startswith(b"content-length:")
            ]
            await reader.readexactly(int(lengths[0].split(b":")[1]))
            last = time.perf_counter()
            took[i] = last - due
            refused += b" 200 " not in answer[:16]
        writer.close()

    await asyncio.gather(*(connection(n) for n in range(_CONNECTIONS)))
    counted = took[warm:]
    found = load.percentiles(counted[~np.isnan(counted)] * 1000)
    return {
        "rate": len(counted) / (last - begin - warm / _WANTED_HTTP),
        "refused": refused,
        **found,
    }
