from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.client.publisher_nodes import PublisherNodes
from penstock.client.row_progress import RowProgress
from penstock.client.subscription_options import SubscriptionOptions, Target
from penstock.errors import CatalogError, RemoteError


class Nodes:
    """Three nodes, of which one leads."""

    def __init__(self) -> None:
        self.leads: str | None = "b"
        self.gone = False

    def url(self, node: str) -> str:
        return node

    def leader(self, group: int, *, avoid: str = "") -> Any:
        return None if self.leads is None else SimpleNamespace(url=self.leads)

    def members(self, group: int) -> list[str]:
        return ["a", "b", "c"]

    def is_gone(self, table: str) -> bool:
        return self.gone

    def dial(self, url: str, path: str, **_: Any) -> Any:
        raise ConnectionRefusedError(url)


def publishers(nodes: Nodes, node: str = "") -> PublisherNodes:
    some: Any = nodes
    return PublisherNodes(some, Target("d.t", 11, "watch", 0, node), SubscriptionOptions())


def test_the_leader_is_asked_first_and_nobody_twice():
    nodes = Nodes()
    assert publishers(nodes).addresses() == ["b", "a", "c"]
    assert publishers(nodes).addresses(avoid="b") == ["a", "c"]
    assert publishers(nodes, "c").first() == ["c", "b", "a"]
    nodes.leads = None
    assert publishers(nodes).first() == ["a", "b", "c"]


def test_a_node_that_does_not_answer_is_named():
    with pytest.raises(RemoteError, match="the node at a does not answer") as away:
        publishers(Nodes()).connect("a", RowProgress())
    assert away.value.code == "E_NODE_DOWN"


def test_a_table_that_is_gone_does_not_pass():
    nodes = Nodes()
    asked = publishers(nodes)
    missing = CatalogError("there is no table d.t", code="E_NO_TABLE")
    assert asked.may_pass(RemoteError("away", code="E_NODE_DOWN"))
    assert not asked.may_pass(RemoteError("no", code="E_FORBIDDEN"))
    assert asked.may_pass(missing)
    nodes.gone = True
    assert not asked.may_pass(missing)
    assert asked.may_pass(CatalogError("there is no copy here", code="E_NO_TABLE"))
