"""For how long a group that has lost its majority is worth asking again."""

from __future__ import annotations

import pytest

from penstock.client import quorum
from penstock.client.quorum import QuorumLoss
from penstock.errors import RemoteError

_LOST = RemoteError("no majority", code="E_NO_QUORUM")


class _Loss:
    """What is said at some seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        monkeypatch.setattr(quorum.time, "monotonic", lambda: self.now)
        self.loss = QuorumLoss()

    def after(self, seconds: float, error: RemoteError = _LOST) -> bool:
        self.now += seconds
        return self.loss.may_recover(error)


@pytest.fixture
def loss(monkeypatch: pytest.MonkeyPatch) -> _Loss:
    return _Loss(monkeypatch)


def test_a_write_is_sent_again_for_ten_seconds(loss):
    assert loss.after(0)
    assert loss.after(5)
    assert loss.after(4.9)
    assert not loss.after(0.2)
    assert not loss.after(5)


def test_after_a_quiet_time_the_seconds_begin_anew(loss):
    for _ in range(3):
        loss.after(5)
    assert not loss.after(5)
    assert loss.after(10.1)


def test_a_write_that_was_taken_ends_the_loss(loss):
    assert loss.after(0)
    loss.after(9)
    loss.loss.end()
    assert loss.after(2)
    assert loss.after(9)


def test_other_errors_are_not_waited_for(loss):
    assert not loss.after(0, RemoteError("denied", code="E_FORBIDDEN"))
    assert loss.after(0)
