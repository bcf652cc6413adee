"""Calls of user-defined functions: one confined child process per function (`child`), Arrow over
pipes, a time for every answer.

A function that fails, hangs or dies makes the call fail, never the caller: its process is replaced.
One that keeps hanging is suspended for a while, so what it costs those beside it is bounded:
`PATIENCE` seconds in every `WINDOW`. One thread calls at a time.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import polars as pl

from penstock.rows import arrow_reader
from penstock.rows.arrow_reader import Limits
from penstock.runtime import vital
from penstock.runtime.memory import ALLOCATORS
from penstock.udf.function import UserFunction

#: seconds that one call may take, and more for each row of it
CALL_SECONDS = 1.0
ROW_SECONDS = 0.000_1
START_SECONDS = 20.0
#: seconds that a function may spend hanging within `WINDOW` seconds before it is suspended
PATIENCE = 5.0
WINDOW = 60.0
_LARGEST = 256 << 20
_CHILD = str(Path(__file__).with_name("child.py"))
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    **ALLOCATORS,
    "LANG": "C.UTF-8",
}


class FunctionError(ValueError):
    """A call that gave no result; the text is for the row's dead letter."""


class Sandbox:
    """One function and the process that runs it."""

    def __init__(self, function: UserFunction) -> None:
        self.function = function
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._hung: list[tuple[float, float]] = []
        empty = pl.DataFrame(schema={"result": function.returns.polars()})
        self._shape = _ipc(empty)

    def call(self, arguments: pl.DataFrame) -> pl.Series:
        """The function's result for *arguments* (columns in order of its parameters; for an
        aggregate one column of lists).

        Raises:
            FunctionError: it has failed, or not answered in time.
        """
        with self._lock:
            self._check_patience()
            if self._process is None:
                self.start()
            limit = CALL_SECONDS + ROW_SECONDS * arguments.height
            body = self._exchange(_ipc(arguments), limit)
        try:
            made = pl.DataFrame(arrow_reader.read(body, _limits(arguments.height)))
            result = made.get_column("result").cast(self.function.returns.polars())
        except vital.FAULTS as error:
            # it may be anything: the process that sent it runs somebody's code
            self.close()
            raise FunctionError(f"{self.function.name}: unreadable answer: {error}"[:300]) from None
        if len(result) != arguments.height:
            # the process itself counts what functions return: this is not its answer
            self.close()
            raise FunctionError(
                f"{self.function.name}: {arguments.height} rows were given, {len(result)} came back"
            )
        kind = self.function.returns
        if kind.sized and result.dtype == pl.String:
            longest = (
                result.str.len_chars() if kind.kind == "NCHAR" else result.str.len_bytes()
            ).max()
            if isinstance(longest, int) and longest > kind.length:
                raise FunctionError(
                    f"{self.function.name}: a result of {longest} bytes is longer than {kind}"
                )
        return result

    def close(self) -> None:
        """End the process; the next call starts another."""
        process = self._process
        self._process = None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()

    def _check_patience(self) -> None:
        now = time.monotonic()
        self._hung = [(at, lost) for at, lost in self._hung if now - at < WINDOW]
        if sum(lost for _, lost in self._hung) >= PATIENCE:
            left = WINDOW - (now - self._hung[0][0])
            raise FunctionError(
                f"{self.function.name} has not answered {len(self._hung)} times in a minute:"
                f" suspended for {left:.0f} s"
            )

    def start(self) -> None:
        """Start the process. Raises FunctionError when the code cannot be run in it."""
        self._process = subprocess.Popen(
            [sys.executable, "-I", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=_ENVIRONMENT,
            bufsize=0,
        )
        head = {
            "name": self.function.name,
            "code": self.function.code,
            "aggregate": self.function.aggregate,
        }
        try:
            self._send(json.dumps(head).encode(), START_SECONDS)
            self._exchange(self._shape, START_SECONDS)
        except FunctionError:
            self.close()
            raise

    def _exchange(self, body: bytes, limit: float) -> bytes:
        deadline = time.monotonic() + limit
        self._send(body, limit)
        status, size = struct.unpack("<BI", self._receive(5, deadline, limit))
        if size > _LARGEST:
            self.close()
            raise FunctionError(f"{self.function.name}: an answer of {size} bytes")
        found = self._receive(size, deadline, limit)
        if status:
            raise FunctionError(f"{self.function.name}: {found.decode(errors='replace')}")
        return found

    def _send(self, body: bytes, limit: float) -> None:
        assert self._process is not None and self._process.stdin is not None
        fd = self._process.stdin.fileno()
        deadline = time.monotonic() + limit
        os.set_blocking(fd, False)
        view = memoryview(struct.pack("<I", len(body)) + body)
        while view:
            if not select.select([], [fd], [], max(deadline - time.monotonic(), 0))[1]:
                self._give_up(limit)
            try:
                view = view[os.write(fd, view) :]
            except BlockingIOError:
                continue
            except OSError:
                self._report_death()

    def _receive(self, size: int, deadline: float, limit: float) -> bytes:
        assert self._process is not None and self._process.stdout is not None
        fd = self._process.stdout.fileno()
        parts = []
        while size:
            if not select.select([fd], [], [], max(deadline - time.monotonic(), 0))[0]:
                self._give_up(limit)
            part = os.read(fd, min(size, 1 << 20))
            if not part:
                self._report_death()
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _give_up(self, limit: float) -> None:
        self._hung.append((time.monotonic(), limit))
        self.close()
        raise FunctionError(f"{self.function.name} has not answered after {limit:.1f} s")

    def _report_death(self) -> None:
        assert self._process is not None
        code = self._process.wait()
        self.close()
        raise FunctionError(
            f"{self.function.name}: its process ended ({code}); a function has at most 2 GiB of"
            " memory"
        )


def _limits(rows: int) -> Limits:
    """Return limits of an answer for *rows* rows: a value for each."""
    return Limits(size=_LARGEST, rows=rows, columns=1, depth=0, messages=16)


def _ipc(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_ipc_stream(buffer, compat_level=pl.CompatLevel.oldest())
    return buffer.getvalue()


_sandboxes: dict[UserFunction, Sandbox] = {}
_lock = threading.Lock()
_MOST = 32


def sandbox_of(function: UserFunction) -> Sandbox:
    """The process-wide sandbox of a function; of too many the oldest ends."""
    with _lock:
        if function not in _sandboxes:
            if len(_sandboxes) >= _MOST:
                _sandboxes.pop(next(iter(_sandboxes))).close()
            _sandboxes[function] = Sandbox(function)
        return _sandboxes[function]


def scalar(function: UserFunction, arguments: pl.Series) -> pl.Series:
    """Result of a scalar function for a struct of its arguments."""
    if not len(arguments):
        return pl.Series([], dtype=function.returns.polars())
    return sandbox_of(function).call(arguments.struct.unnest())


def aggregate(function: UserFunction, values: pl.Series) -> pl.Series:
    """Result of an aggregate for each list of values."""
    if not len(values):
        return pl.Series([], dtype=function.returns.polars())
    return sandbox_of(function).call(values.to_frame())


def try_out(function: UserFunction) -> str | None:
    """Return what is wrong with the code, or None when it can be run."""
    tried = Sandbox(function)
    try:
        tried.start()
    except FunctionError as error:
        return str(error)
    finally:
        tried.close()
    return None
