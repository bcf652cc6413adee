from __future__ import annotations

import re
import subprocess
import sys

import pytest

import penstock


def test_what_is_public() -> None:
    assert penstock.__all__ == [
        "Connection",
        "Message",
        "PenstockError",
        "Result",
        "StreamDefinition",
        "StreamTable",
        "Subscription",
        "TableDefinition",
        "TableSubscription",
        "Update",
        "Writer",
        "changelogStreamTable",
        "changelog_stream_table",
        "connect",
        "keyedStreamTable",
        "keyed_stream_table",
        "latestKeyedStreamTable",
        "latest_keyed_stream_table",
        "streamTable",
        "stream_table",
        "table",
    ]
    assert dir(penstock) == sorted(penstock.__all__)
    for name in penstock.__all__:
        # DolphinDB's names lead to the same functions
        plain = (
            re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)
            if name[0].islower()
            else name
        )
        assert getattr(penstock, name).__name__ == plain
    with pytest.raises(AttributeError):
        penstock.nothing  # noqa: B018


def test_the_rooms_do_not_pay_for_the_client() -> None:
    check = "import penstock, penstock.names, sys; sys.exit('httpx' in sys.modules or 'polars' in sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)
