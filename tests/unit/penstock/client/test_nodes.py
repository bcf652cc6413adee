"""Who leads a group, when nodes do not say the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack

import pytest

from penstock.client.nodes import Nodes
from tests.answering import answering

MEMBERS = ("NODE1", "NODE2", "NODE3")


def node(leader: str, epoch: int) -> AbstractContextManager[str]:
    """A node that names this leader of group 11."""
    found = {"id": 11, "leader": leader, "epoch": epoch, "urls": {}, "client_urls": {}}
    return answering(lambda _: (200, {"groups": [found]}))


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    """NODE1 is dead, NODE2 leads since, NODE3 has not heard of it."""
    with ExitStack() as stack:
        urls = [
            "http://127.0.0.1:1",
            stack.enter_context(node("NODE2", 8)),
            stack.enter_context(node("NODE1", 7)),
        ]
        group = {"id": 11, "alias": "", "members": MEMBERS, "learners": ()}
        found = Nodes(
            lambda: {
                "nodes": dict(zip(MEMBERS, urls, strict=True)),
                "groups": [group],
                "tables": {},
            },
            "",
        )
        found.refresh()
        yield found
        found.close()


def test_the_newest_epoch_of_all_is_who_leads(nodes: Nodes) -> None:
    for _ in range(10):  # nodes are asked in any order
        leader = nodes.leader(11, of_all=True)
        assert leader is not None and (leader.node, leader.epoch) == ("NODE2", 8)


def test_who_is_avoided_is_not_believed_while_another_is_named(nodes: Nodes) -> None:
    for _ in range(10):
        leader = nodes.leader(11, avoid=nodes.url("NODE1"))
        assert leader is not None and leader.node == "NODE2"
