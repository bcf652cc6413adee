"""The process of one user-defined function, as far as it can be tested without confining the
test: what goes over its pipes, what becomes of a result, and which system calls stay possible.
"""

from __future__ import annotations

import os
import platform
import resource
from typing import Any

import pyarrow as pa
import pytest

from penstock.udf import child

#: numbers of system calls by which a process reaches out of itself
REACHING = {
    "x86_64": {
        "open": 2,
        "socket": 41,
        "connect": 42,
        "clone": 56,
        "fork": 57,
        "vfork": 58,
        "execve": 59,
        "kill": 62,
        "ptrace": 101,
        "prctl": 157,
        "openat": 257,
        "process_vm_readv": 310,
        "execveat": 322,
        "io_uring_setup": 425,
        "clone3": 435,
        "openat2": 437,
    },
    "aarch64": {
        "openat": 56,
        "ptrace": 117,
        "kill": 129,
        "prctl": 167,
        "socket": 198,
        "connect": 203,
        "clone": 220,
        "execve": 221,
        "process_vm_readv": 270,
        "execveat": 281,
        "io_uring_setup": 425,
        "clone3": 435,
        "openat2": 437,
    },
}


@pytest.mark.parametrize("machine", sorted(REACHING))
def test_no_call_that_stays_possible_reaches_out(machine: str) -> None:
    _, calls = child._CALLS[machine]
    assert not set(REACHING[machine].values()) & set(calls)
    assert len(set(calls)) == len(calls)
    assert len(calls) < 255, "a jump of the filter is one byte"


@pytest.mark.parametrize(("system", "machine"), [("linux", "riscv64"), ("darwin", "x86_64")])
def test_where_it_cannot_be_confined_it_does_not_start(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str
) -> None:
    monkeypatch.setattr(child.sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    limits: list[Any] = []
    monkeypatch.setattr(resource, "setrlimit", lambda *given: limits.append(given))
    with pytest.raises(OSError, match=f"cannot be confined on {system} {machine}"):
        child.confine()
    assert limits == []


def test_an_answer_is_a_status_a_length_and_a_body() -> None:
    inbox, outbox = os.pipe()
    try:
        child._answer(outbox, 1, b"wrong")
        assert child._read(inbox, 5) == b"\x01\x05\x00\x00\x00"
        assert child._read(inbox, 5) == b"wrong"
        assert child._read(inbox, 0) == b""
    finally:
        os.close(inbox)
        os.close(outbox)


def test_a_question_is_read_whole_and_its_end_ends_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Ended(Exception):
        pass

    def end(status: int) -> None:
        raise Ended(status)

    monkeypatch.setattr(os, "_exit", end)
    parts = [b"ab", b"c", b""]
    monkeypatch.setattr(os, "read", lambda fd, size: parts.pop(0))
    assert child._read(9, 3) == b"abc"
    with pytest.raises(Ended) as ended:
        child._read(9, 1)
    assert ended.value.args == (0,)


def test_functions_find_what_they_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    monkeypatch.setattr(pa, "set_cpu_count", threads.append)
    found = child._preload()
    assert threads == [1]
    assert found["pa"] is pa
    assert {"pc", "np", "math", "__builtins__"} <= set(found)
    names = {module.__name__ for module in found["_loaded"]}
    assert {"datetime", "decimal", "re", "statistics", "json"} <= names
    assert not names & {"os", "socket", "subprocess", "ctypes", "sys"}


@pytest.mark.parametrize(
    ("value", "kind", "wanted"),
    [
        (pa.array([1, 2]), pa.int64(), [1, 2]),
        (pa.array([1, 2]), pa.float64(), [1.0, 2.0]),
        (pa.chunked_array([[1], [2]]), pa.int64(), [1, 2]),
        ([1, None], pa.int64(), [1, None]),
        (["a", "b"], pa.string(), ["a", "b"]),
    ],
)
def test_a_result_has_the_type_that_was_declared(value: Any, kind: Any, wanted: list[Any]) -> None:
    made = child._result(value, kind, 2)
    assert (made.type, made.to_pylist()) == (kind, wanted)


@pytest.mark.parametrize(
    ("value", "error"),
    [([1], ValueError), ([1, 2, 3], ValueError), (["x", "y"], pa.ArrowInvalid), (5, TypeError)],
)
def test_a_result_of_another_length_or_type_is_refused(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        child._result(value, pa.int64(), 2)


def test_an_aggregate_gets_the_values_of_each_line() -> None:
    lines = pa.array([[1.0, 5.0], [3.0]])
    made = child._aggregate(lambda values: sum(values.to_pylist()), [lines], pa.float64())
    assert made.to_pylist() == [6.0, 3.0]
    scalar = child._aggregate(lambda values: values[0], [lines], pa.float64())
    assert scalar.to_pylist() == [1.0, 3.0]


def test_an_aggregate_of_several_arguments_gets_an_array_for_each() -> None:
    lines = pa.array([[{"a": 1, "b": 10}, {"a": 2, "b": 20}], [{"a": 3, "b": 30}]])

    def dot(a: pa.Array, b: pa.Array) -> int:
        return sum(x * y for x, y in zip(a.to_pylist(), b.to_pylist(), strict=True))

    assert child._aggregate(dot, [lines], pa.int64()).to_pylist() == [50, 90]
