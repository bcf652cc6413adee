"""What a Writer tells of frames that were refused, over a real WebSocket."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from websockets.sync.server import Server, ServerConnection, serve

from penstock.client import gateway as gateway_module
from penstock.client import writer as module
from penstock.client.writer import Writer
from penstock.errors import PenstockError, RemoteError, SchemaError


class Gateway:
    """Takes frames of objects; refuses rows whose `n` is no number. Breaks off at `n` = 666, and
    behind its answer at 777.
    """

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []
        #: while it is clear, frames wait for their answers
        self.answering = threading.Event()
        self.answering.set()
        self.server: Server = serve(self._serve, "127.0.0.1", 0)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.socket.getsockname()[1]}"

    def _serve(self, socket: ServerConnection) -> None:
        socket.send(json.dumps({"window": 8, "max_frame": 1 << 20}))
        for text in socket:
            if isinstance(text, bytes):
                socket.send(json.dumps({"ack": len(self.frames), "rows": 1}))
                continue
            frame = json.loads(text)
            self.frames.append(frame)
            self.answering.wait(10)
            bad = [row for row in frame["rows"] if not isinstance(row["n"], int)]
            if any(row["n"] == 666 for row in frame["rows"]):
                return
            error = {"code": "E_ROW", "message": f"{bad[0]['n']} is not INT"} if bad else None
            socket.send(
                json.dumps(
                    {"nack": frame["seq"], "error": error}
                    if bad
                    else {"ack": frame["seq"], "rows": len(frame["rows"])}
                )
            )
            if any(row["n"] == 777 for row in frame["rows"]):
                return


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    made = Gateway()
    yield made
    made.server.shutdown()


def writer(gateway: Gateway) -> Writer:
    client = gateway_module.Gateway(gateway.url, "Basic x", timeout=10.0)
    return Writer(client, "db.t", lambda name: name, window=None)


def test_all_refused_frames_are_told_by_number_and_reason(gateway: Gateway) -> None:
    with writer(gateway) as rows:
        gateway.answering.clear()
        numbers = [rows.write([{"n": n}]) for n in (1, "two", 3, "four", 5)]
        assert numbers == [range(i, i + 1) for i in range(1, 6)]
        gateway.answering.set()
        with pytest.raises(SchemaError) as refused:
            rows.flush()
        assert (
            refused.value.message
            == "2 frames were refused: frame 2: two is not INT; frame 4: four is not INT"
        )
        assert [(number, error.code) for number, error in rows.refused] == [
            (2, "E_ROW"),
            (4, "E_ROW"),
        ]
        assert rows.flush() == 3
        rows.write([{"n": "six"}])
        with pytest.raises(SchemaError, match="frame 6: six is not INT"):
            rows.flush()


def test_a_write_that_raises_says_that_it_has_sent_nothing(gateway: Gateway) -> None:
    with writer(gateway) as rows:
        rows.write([{"n": "one"}])
        end = time.monotonic() + 10.0
        while not rows.refused and time.monotonic() < end:
            time.sleep(0.01)
        with pytest.raises(
            SchemaError, match="frame 1: one is not INT; the rows of this call were not sent"
        ):
            rows.write([{"n": 2}])
        assert [f["seq"] for f in gateway.frames] == [1]
        assert rows.write([{"n": 2}]) == range(2, 3)
        assert rows.flush() == 1


@pytest.mark.parametrize(
    "bad", [[{"n": 1}, {"n": float("inf")}], [{"n": 1}] * 3 + [{"n": [float("nan")]}], 7]
)
def test_rows_that_cannot_be_sent_send_nothing(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, bad: Any
) -> None:
    monkeypatch.setattr(module, "FRAME_ROWS", 2)
    with writer(gateway) as rows:
        with pytest.raises(SchemaError):
            rows.write(bad)
        assert rows.write([{"n": 1}] * 3) == range(1, 3)
        assert rows.flush() == 3
        assert [len(f["rows"]) for f in gateway.frames] == [2, 1]


def test_a_lost_connection_is_told_and_says_what_was_sent(gateway: Gateway) -> None:
    rows = writer(gateway)
    rows.write([{"n": 1}])
    rows.flush()
    rows.write([{"n": 666}])
    with pytest.raises(RemoteError, match="1 frames have no answer"):
        rows.flush()
    with pytest.raises(PenstockError, match="the rows of this call were not sent"):
        rows.write([{"n": 2}])
    rows.close()


def test_a_connection_that_ends_with_all_answered_is_no_failure(gateway: Gateway) -> None:
    rows = writer(gateway)
    rows.write(pl.DataFrame({"n": [1]}))
    rows.write([{"n": 777}])
    rows._reader.join(10.0)
    assert rows.flush() == 2
    rows.close()
