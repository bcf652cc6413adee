"""The libraries that services share work in a fork, when all that came before it was their import."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from penstock.mesh.forks import Forks
from penstock.mesh.process import ChildProcess

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="orphans of Linux")

#: each part begins the threads of one library
_WORKS = """
import asyncio, json, sys, threading
import confluent_kafka, duckdb, polars, pyarrow, pyarrow.compute, pyarrow.flight, uvloop

def flight():
    class Server(pyarrow.flight.FlightServerBase):
        def do_get(self, context, ticket):
            return pyarrow.flight.RecordBatchStream(pyarrow.table({"a": [1, 2]}))
    with Server("grpc://127.0.0.1:0") as server:
        with pyarrow.flight.connect(f"grpc://127.0.0.1:{server.port}") as client:
            return client.do_get(pyarrow.flight.Ticket(b"")).read_all()["a"].to_pylist()

def kafka():
    said = threading.Event()
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": "127.0.0.1:1", "error_cb": lambda error: said.set(), "log_level": 0}
    )
    for _ in range(300):
        producer.poll(0.1)
        if said.is_set():
            return "its threads run"

def loop():
    async def read():
        return await asyncio.to_thread(lambda: "a thread of the loop")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(read())

if __name__ == "__main__":
    frame = polars.DataFrame({"k": [i % 3 for i in range(100_000)], "v": [1] * 100_000})
    print(json.dumps({
        "polars": frame.lazy().group_by("k").agg(polars.col("v").sum()).collect()["v"].sum(),
        "polars threads": polars.thread_pool_size(),
        "duckdb": duckdb.connect(config={"threads": 2}).execute(
            "SELECT count(*) FROM range(1000000) t(i) WHERE i % 7 = 0").fetchone()[0],
        "pyarrow": pyarrow.compute.sum(pyarrow.chunked_array([[1, 2], [3]])).as_py(),
        "flight": flight(),
        "kafka": kafka(),
        "loop": loop(),
    }), flush=True)
"""


def test_what_threads_need_begins_in_the_fork(tmp_path: Path) -> None:
    (tmp_path / "works").mkdir()
    (tmp_path / "works" / "__init__.py").touch()
    (tmp_path / "works" / "__main__.py").write_text(_WORKS, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{Path.cwd()}"}
    environment |= {"PYTHONUNBUFFERED": "1", "POLARS_MAX_THREADS": "1"}
    forks = Forks(["works"], environment, tmp_path / "forkserver.log", tmp_path)
    try:
        deadline = time.monotonic() + 120
        while (spawn := forks.spawn_for("works")) is None:
            assert time.monotonic() < deadline, (tmp_path / "forkserver.log").read_text()
            time.sleep(0.02)
        # each service has its own number of threads, also where polars was imported with another
        own = environment | {"POLARS_MAX_THREADS": "3"}
        command = [sys.executable, "-m", "works"]
        child = ChildProcess(command, own, tmp_path / "works.log", tmp_path, spawn)
        ended = child.wait(120)
        child.kill()
    finally:
        forks.close()
    text = (tmp_path / "works.log").read_text()
    assert ended and child.exit_status() == 0, text
    assert json.loads(text.splitlines()[-1]) == {
        "polars": 100_000,
        "polars threads": 3,
        "duckdb": 142_858,
        "pyarrow": 6,
        "flight": [1, 2],
        "kafka": "its threads run",
        "loop": "a thread of the loop",
    }
