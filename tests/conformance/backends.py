"""Which backends there are."""

from __future__ import annotations

from collections.abc import Sequence

from tests.conformance.case import Backend, Case


def open_backend(name: str, *, split: int | None, kill: int, cases: Sequence[Case]) -> Backend:
    """A backend ready to run *cases*; modules are imported only when asked for (the stack brings
    Kafka and Spark).
    """
    if name == "kernel":
        from tests.conformance.kernel_backend import KernelBackend

        return KernelBackend(split)
    import importlib

    stack = importlib.import_module("tests.conformance.stack_backend")
    return stack.StackBackend(kill=kill, cases=cases)  # type: ignore[no-any-return]
