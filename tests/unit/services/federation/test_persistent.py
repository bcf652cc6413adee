from __future__ import annotations

from polars.exceptions import PanicException

from penstock.errors import PenstockError
from services.federation.persistent import Persistent
from services.federation.settings import FederationSettings


class Task(Persistent):
    """Fails so often before it is done."""

    def __init__(self, *failures: BaseException) -> None:
        super().__init__("probe", FederationSettings(retry_min=0.001, retry_max=0.002))
        self._failures = list(failures)
        self.said: list[str] = []

    def work(self) -> None:
        self.said.append(self.report.error)
        if self._failures:
            raise self._failures.pop(0)

    def passes(self, error: PenstockError) -> bool:
        return False


def test_a_task_that_says_so_ends_with_an_error() -> None:
    class Ending(Task):
        def ends(self, error: PenstockError) -> bool:
            return error.code == "E_Y"

    task = Ending(PenstockError("x", code="E_X"), PenstockError("no", code="E_Y", detail="row 3"))
    task.start()
    task.join(30)
    assert not task.is_alive() and len(task.said) == 2
    assert (task.report.state, task.report.error) == ("stopped", "E_Y: no (row 3)")


def test_a_task_goes_on_after_any_fault() -> None:
    task = Task(
        ValueError("x"), PanicException("a bug in Rust code"), PenstockError("x", code="E_X")
    )
    task.start()
    task.join(30)
    assert not task.is_alive()
    assert [text.partition(":")[0] for text in task.said] == ["", "E_INTERNAL", "E_INTERNAL", "E_X"]
