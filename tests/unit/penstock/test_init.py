from __future__ import annotations

import subprocess
import sys

import pytest

import penstock


def test_what_is_public() -> None:
    assert penstock.__all__ == [
        "Connection", "Message", "PenstockError", "Result", "StreamTable", "Subscription", "TableDefinition", "TableSubscription",
        "Update", "Writer", "connect", "table",
    ]  # fmt: skip
    assert dir(penstock) == sorted(penstock.__all__)
    for name in penstock.__all__:
        assert getattr(penstock, name).__name__ == name
    with pytest.raises(AttributeError):
        penstock.nothing  # noqa: B018


def test_the_rooms_do_not_pay_for_the_client() -> None:
    check = "import penstock, penstock.names, sys; sys.exit('httpx' in sys.modules or 'polars' in sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)
