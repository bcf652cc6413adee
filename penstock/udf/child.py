"""The process that runs one user-defined function. Executed as a file, without the rest of Penstock
on its path.

It imports what functions may use, then gives up everything else for good: no new file, socket or
process (a list of the system calls that remain), bounded memory, no way back. Then it answers
calls: a length and an Arrow stream in, a status byte, a length and an Arrow stream (or the text of
an error) out. It does not start without the confinement.
"""

from __future__ import annotations

import builtins
import ctypes
import json
import os
import platform
import resource
import struct
import sys
from typing import Any

_MEMORY = 2 << 30
_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_EPERM = 0x0005_0001
_ALLOW = 0x7FFF_0000
#: by machine: (AUDIT_ARCH, numbers of the system calls that stay possible)
_CALLS: dict[str, tuple[int, tuple[int, ...]]] = {
    # read write close fstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask
    # rt_sigreturn readv writev select sched_yield mremap madvise nanosleep getpid exit uname getcwd
    # gettimeofday getrusage sysinfo times getuid getgid geteuid getegid sigaltstack gettid time
    # futex sched_getaffinity restart_syscall clock_gettime clock_getres clock_nanosleep exit_group
    # set_robust_list getrandom membarrier rseq
    "x86_64": (
        0xC000_003E,
        (
            0,
            1,
            3,
            5,
            7,
            8,
            9,
            10,
            11,
            12,
            13,
            14,
            15,
            19,
            20,
            23,
            24,
            25,
            28,
            35,
            39,
            60,
            63,
            79,
            96,
            98,
            99,
            100,
            102,
            104,
            107,
            108,
            131,
            186,
            201,
            202,
            204,
            219,
            228,
            229,
            230,
            231,
            273,
            318,
            324,
            334,
        ),
    ),
    "aarch64": (
        0xC000_00B7,
        (
            63,
            64,
            57,
            80,
            73,
            62,
            222,
            226,
            215,
            214,
            134,
            135,
            139,
            65,
            66,
            72,
            124,
            216,
            233,
            101,
            172,
            93,
            160,
            17,
            169,
            165,
            179,
            153,
            174,
            176,
            175,
            177,
            132,
            178,
            98,
            123,
            128,
            113,
            114,
            115,
            94,
            99,
            278,
            283,
            293,
        ),
    ),
}


def confine() -> None:
    """Give up what a function has no use for. Raises OSError when the system cannot do that."""
    machine = platform.machine()
    if sys.platform != "linux" or machine not in _CALLS:
        raise OSError(f"functions cannot be confined on {sys.platform} {machine}")
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(limit, (0, 0))
    architecture, calls = _CALLS[machine]
    load = 0x20
    equal = 0x15
    answer = 0x06
    program = [
        (load, 0, 0, 4),
        (equal, 1, 0, architecture),
        (answer, 0, 0, _EPERM),
        (load, 0, 0, 0),
    ]
    for i, number in enumerate(calls):
        program.append((equal, len(calls) - i, 0, number))
    program += [(answer, 0, 0, _EPERM), (answer, 0, 0, _ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))

    class Filter(ctypes.Structure):
        _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    libc = ctypes.CDLL(None, use_errno=True)
    filter_ = Filter(len(program), ctypes.cast(code, ctypes.c_void_p).value)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        _PR_SET_SECCOMP, 2, ctypes.byref(filter_), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "system calls cannot be limited here")


def _read(fd: int, size: int) -> bytes:
    parts = []
    while size:
        part = os.read(fd, min(size, 1 << 20))
        if not part:
            os._exit(0)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _answer(fd: int, status: int, body: bytes) -> None:
    view = memoryview(struct.pack("<BI", status, len(body)) + body)
    while view:
        view = view[os.write(fd, view) :]


def _preload() -> dict[str, Any]:
    """Import what a function may use: nothing else can be read once the process is confined."""
    import bisect
    import collections
    import datetime
    import decimal
    import fractions
    import functools
    import hashlib
    import heapq
    import itertools
    import math
    import operator
    import re
    import statistics
    import string
    import zoneinfo

    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    pa.set_cpu_count(1)
    pc.add(pa.array([1.0]), 1.0)
    np.add(np.array([1.0]), 1.0)
    modules = (
        bisect,
        collections,
        datetime,
        decimal,
        fractions,
        functools,
        hashlib,
        heapq,
        itertools,
        math,
        operator,
        re,
        statistics,
        string,
        zoneinfo,
        np,
        pa,
        pc,
        json,
    )
    return {
        "pa": pa,
        "pc": pc,
        "np": np,
        "math": math,
        "__builtins__": builtins,
        "_loaded": modules,
    }


def _result(value: Any, kind: Any, length: int) -> Any:
    import pyarrow as pa

    if isinstance(value, pa.ChunkedArray):
        value = value.combine_chunks()
    made = value.cast(kind) if isinstance(value, pa.Array) else pa.array(value, type=kind)
    if len(made) != length:
        raise ValueError(f"{length} rows were given, {len(made)} came back")
    return made


def _aggregate(function: Any, columns: list[Any], kind: Any) -> Any:
    """One value for each line: its lists as arrays."""
    import pyarrow as pa

    found = []
    for line in range(len(columns[0])):
        values = columns[0][line].values
        arrays = values.flatten() if pa.types.is_struct(values.type) else [values]
        value = function(*arrays)
        found.append(value.as_py() if isinstance(value, pa.Scalar) else value)
    return pa.array(found, type=kind)


def main() -> None:
    inbox = os.dup(0)
    outbox = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)
    namespace = _preload()
    import pyarrow as pa

    head = json.loads(_read(inbox, *struct.unpack("<I", _read(inbox, 4))))
    shape = pa.ipc.open_stream(_read(inbox, *struct.unpack("<I", _read(inbox, 4)))).schema
    kind = shape.field("result").type
    try:
        confine()
        namespace["__name__"] = head["name"]
        exec(compile(head["code"], f"<function {head['name']}>", "exec"), namespace)
        function = namespace.get(head["name"])
        if not callable(function):
            raise TypeError(f"the code defines no function called {head['name']}")
    except BaseException as error:
        _answer(outbox, 1, f"{type(error).__name__}: {error}".encode()[:1000])
        return
    _answer(outbox, 0, b"")
    while True:
        body = _read(inbox, *struct.unpack("<I", _read(inbox, 4)))
        try:
            table = pa.ipc.open_stream(body).read_all()
            columns = [c.combine_chunks() for c in table.columns]
            if head["aggregate"]:
                made = _aggregate(function, columns, kind)
            else:
                made = _result(function(*columns), kind, table.num_rows)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, shape) as writer:
                writer.write_batch(pa.record_batch([made], schema=shape))
            answer = sink.getvalue().to_pybytes()
        except BaseException as error:
            _answer(outbox, 1, f"{type(error).__name__}: {error}".encode()[:1000])
        else:
            _answer(outbox, 0, answer)


if __name__ == "__main__":
    main()
