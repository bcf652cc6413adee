"""User-defined functions: what they compute, what they cannot reach, and that whatever they do ends
with the call.
"""

from __future__ import annotations

import io
import struct
import time

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from penstock.types import ColumnType
from penstock.udf import UserFunction, sandbox
from penstock.udf.sandbox import FunctionError, Sandbox

DOUBLE = ColumnType("DOUBLE")
TEXT = ColumnType("VARCHAR", 8)


def made(
    code: str,
    parameters: tuple[ColumnType, ...] = (DOUBLE,),
    returns: ColumnType = DOUBLE,
    *,
    aggregate: bool = False,
) -> UserFunction:
    return UserFunction(1, "f", parameters, returns, code, aggregate)


def test_a_scalar_takes_arrays_and_gives_one() -> None:
    function = made("def f(a, b):\n    return pc.add(a, b)", (DOUBLE, DOUBLE))
    rows = pl.DataFrame({"a0": [1.0, None, 3.0], "a1": [10.0, 20.0, 30.0]}).to_struct()
    assert sandbox.scalar(function, rows).to_list() == [11.0, None, 33.0]


def test_python_lists_and_texts_will_do() -> None:
    function = made("def f(a):\n    return [v.as_py().upper() for v in a]", (TEXT,), TEXT)
    assert sandbox.scalar(function, pl.DataFrame({"a0": ["x", "yz"]}).to_struct()).to_list() == [
        "X",
        "YZ",
    ]
    with pytest.raises(FunctionError, match="longer than"):
        sandbox.scalar(
            made("def f(a):\n    return ['123456789']", (TEXT,), TEXT),
            pl.DataFrame({"a0": ["x"]}).to_struct(),
        )


def test_an_aggregate_takes_the_values_of_each_group() -> None:
    function = made("def f(a):\n    return max(a.to_pylist()) - len(a)", aggregate=True)
    assert sandbox.aggregate(function, pl.Series([[1.0, 5.0], [3.0]])).to_list() == [3.0, 2.0]


@pytest.mark.parametrize(
    "body",
    [
        "import socket; socket.socket()",
        "open('/etc/passwd')",
        "import os; os.fork()",
        "import os; os.kill(os.getppid(), 9)",
        "import os; os.execv('/bin/true', ['true'])",
        "import os; os.listdir('/')",
        "import os; os.unlink('/tmp/x')",
        "import os; os.pipe()",
        "import subprocess; subprocess.run(['true'])",
        "import threading; threading.Thread(target=print).start()",
        "bytearray(8 << 30)",
    ],
)
def test_nothing_can_be_reached(body: str) -> None:
    with pytest.raises(
        FunctionError,
        match=r"PermissionError|Operation not permitted|MemoryError|can't start new thread",
    ):
        sandbox.scalar(
            made(f"def f(a):\n    {body}\n    return a"), pl.DataFrame({"a0": [1.0]}).to_struct()
        )


def test_one_that_hangs_is_stopped_and_then_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "CALL_SECONDS", 0.2)
    monkeypatch.setattr(sandbox, "PATIENCE", 0.3)
    box = Sandbox(made("def f(a):\n    while a[0].as_py() > 1: pass\n    return a"))
    assert box.call(pl.DataFrame({"a0": [1.0]})).to_list() == [1.0]
    for _ in range(2):
        with pytest.raises(FunctionError, match="has not answered after"):
            box.call(pl.DataFrame({"a0": [2.0]}))
    started = time.monotonic()
    with pytest.raises(FunctionError, match="suspended"):
        box.call(pl.DataFrame({"a0": [1.0]}))
    assert time.monotonic() - started < 0.1
    box.close()


def test_one_that_dies_is_started_again() -> None:
    box = Sandbox(
        made("def f(a):\n    import os\n    if a[0].as_py() > 1: os._exit(3)\n    return a")
    )
    with pytest.raises(FunctionError, match="its process ended"):
        box.call(pl.DataFrame({"a0": [2.0]}))
    assert box.call(pl.DataFrame({"a0": [1.0]})).to_list() == [1.0]
    box.close()


def test_code_that_cannot_be_run_is_told() -> None:
    assert sandbox.try_out(made("def f(a):\n    return a")) is None
    assert "no function called f" in str(sandbox.try_out(made("x = 1")))
    assert "SyntaxError" in str(sandbox.try_out(made("def f(a)")))
    assert "PermissionError" in str(
        sandbox.try_out(made("open('/etc/passwd')\ndef f(a): return a"))
    )


def test_a_wrong_number_of_rows_is_an_error() -> None:
    with pytest.raises(FunctionError, match="2 rows were given, 1 came back"):
        sandbox.scalar(
            made("def f(a):\n    return [1.0]"), pl.DataFrame({"a0": [1.0, 2.0]}).to_struct()
        )


def answer(array: pa.Array, name: str = "result", compression: str | None = None) -> bytes:
    """An Arrow stream of one column, as a function's process sends it."""
    sink = io.BytesIO()
    table = pa.table({name: array})
    with pa.ipc.new_stream(
        sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)
    ) as writer:
        writer.write_table(table)
    return sink.getvalue()


def damaged(array: pa.Array, good: bytes, bad: bytes) -> bytes:
    body = answer(array)
    assert body.count(good) == 1 and len(good) == len(bad)
    return body.replace(good, bad)


TEXTS = pa.array(["abcde", "fghij"])
OFFSETS = struct.pack("<3i", 0, 5, 10)
HOSTILE = {
    "offsets past the buffer": damaged(TEXTS, OFFSETS, struct.pack("<3i", 0, 5, 4_000_000)),
    "offsets before the buffer": damaged(TEXTS, OFFSETS, struct.pack("<3i", -70_000, 5, 10)),
    "no UTF-8": damaged(TEXTS, b"abcdefghij", b"abc\xffefghij"),
    "views that lead elsewhere": damaged(
        pa.array(["a text of more than twelve bytes", ""], pa.string_view()),
        struct.pack("<i4sii", 32, b"a te", 0, 0),
        struct.pack("<i4sii", 32, b"a te", 0, 1 << 20),
    ),
    "a list": answer(pa.array([["a"], ["b"]])),
    "a struct": answer(pa.array([{"a": 1}, {"a": 2}])),
    "a row too few": answer(pa.array(["a"])),
    "a row too many": answer(pa.array(["a", "b", "c"])),
    "no row": answer(pa.array([], pa.string())),
    "another column": answer(TEXTS, "other"),
    "many rows in few bytes": answer(pa.array(np.zeros(4 << 20, np.int64)), compression="zstd"),
    "nothing": b"",
    "nonsense": b"x" * 1000,
}
#: a function that writes to its pipe itself when it is given `bad`
_WRITES = """
import os, struct
def f(a):
    if a[0].as_py() == "bad":
        data = struct.pack("<BI", 0, {size}) + {body!r}
        for fd in range(3, 10):
            try:
                os.write(fd, data)
            except OSError:
                continue
            while True:
                pass
    return a
"""


@pytest.mark.parametrize("name", [*HOSTILE, "a size beyond everything"])
def test_a_process_that_sends_anything_gives_an_error_and_is_replaced(name: str) -> None:
    body = HOSTILE.get(name, b"x")
    box = Sandbox(
        made(
            _WRITES.format(size=len(body) if name in HOSTILE else 2**32 - 1, body=body),
            (TEXT,),
            TEXT,
        )
    )
    with pytest.raises(FunctionError, match="unreadable answer|came back|an answer of"):
        box.call(pl.DataFrame({"a0": ["bad", "x"]}))
    assert box.call(pl.DataFrame({"a0": ["good", None]})).to_list() == ["good", None]
    box.close()
