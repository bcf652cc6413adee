from __future__ import annotations

import subprocess
import sys

import pytest

import penstock


def test_what_is_public() -> None:
    assert penstock.__all__ == [
        "Connection",
        "ConnectionOptions",
        "Message",
        "PenstockError",
        "Result",
        "StreamDefinition",
        "StreamTable",
        "StreamTableOptions",
        "StreamTables",
        "Subscription",
        "SubscriptionOptions",
        "TableDefinition",
        "TableSubscription",
        "Update",
        "Writer",
        "changelog_stream_table",
        "connect",
        "keyed_stream_table",
        "latest_keyed_stream_table",
        "stream_table",
        "table",
    ]
    assert dir(penstock) == sorted(penstock.__all__)
    assert all(getattr(penstock, name).__name__ == name for name in penstock.__all__)
    with pytest.raises(AttributeError):
        penstock.nothing  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("changelogStreamTable", "changelog_stream_table"),
        ("keyedStreamTable", "keyed_stream_table"),
        ("latestKeyedStreamTable", "latest_keyed_stream_table"),
        ("streamTable", "stream_table"),
    ],
)
def test_old_names_warn_and_lead_to_the_same_functions(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"^penstock.{old} .*; use penstock.{new}$") as seen:
        found = getattr(penstock, old)
    assert found is getattr(penstock, new)
    assert [w.filename for w in seen] == [__file__]


def test_the_services_do_not_pay_for_the_client() -> None:
    check = "import penstock, penstock.names, sys; sys.exit('urllib3' in sys.modules or 'polars' in sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)
