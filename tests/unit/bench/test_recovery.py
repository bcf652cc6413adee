"""What the bench of recovery says of lost and repeated results is so."""

from __future__ import annotations

from typing import Any

import pytest

from bench import recovery
from bench.recovery import Watch, line


class _Subscription:
    """Gives out updates that a test has written."""

    def __init__(self, *updates: list[dict[str, Any]]) -> None:
        self._updates = [_Update(items) for items in updates]

    def open(self) -> _Subscription:
        return self

    def __iter__(self) -> Any:
        return iter(self._updates)

    def close(self) -> None:
        pass


class _Update:
    def __init__(self, items: list[dict[str, Any]]) -> None:
        self.items = items


class _Flow:
    failed: Exception | None = None

    def expected(self) -> dict[tuple[str, int], int]:
        return {("d0", 0): 3, ("d0", 1000): 1}


def _row(start: int, n: int, newest: int, meter: str = "d0") -> dict[str, Any]:
    return {"meter": meter, "_wstart": start, "n": n, "newest": newest}


def _watch(*updates: list[dict[str, Any]]) -> Watch:
    class _Stage:
        class client:
            @staticmethod
            def subscribe(name: str, *, stream: bool) -> _Subscription:
                return _Subscription(*updates)

    stage: Any = _Stage
    watch = Watch(stage)
    watch._thread.join()
    return watch


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "_PATIENCE", 0.01)
    monkeypatch.setattr(recovery, "_TABLES", 1)


def _problems(*updates: list[dict[str, Any]]) -> list[str]:
    flow: Any = _Flow()
    return _watch(*updates).check(flow)


def test_windows_that_grow_to_their_rows_are_right() -> None:
    assert _problems([_row(0, 2, 1)], [_row(0, 3, 2), _row(1000, 1, 3)]) == []


def test_a_window_without_all_of_its_rows_is_told() -> None:
    [problem] = _problems([_row(0, 2, 1)], [_row(1000, 1, 3)])
    assert problem.startswith("1 of 2 windows are not whole: [('d0', 0, 2, 3)]")


def test_a_result_that_comes_again_is_told() -> None:
    assert _problems([_row(0, 3, 2)], [_row(0, 3, 2), _row(1000, 1, 3)]) == ["1 results came twice"]


def test_who_waits_for_a_row_needs_one_at_every_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "_TABLES", 2)
    watch = _watch([_row(0, 3, 9)], [_row(0, 3, 4, "d1")])
    assert watch.until_all_have(4, 1.0) > 0
    with pytest.raises(RuntimeError, match="no results behind row 5"):
        watch.until_all_have(5, 0.01)


def test_a_line_tells_the_worst() -> None:
    found = line("recovery_driver_400", [2.0, 9.0, 1.0])
    assert (found.value, found.note) == (2.0, "worst of 3: 9.00 s")
