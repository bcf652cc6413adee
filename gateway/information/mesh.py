"""Lists of nodes, snodes and functions."""

from __future__ import annotations

import functools
import json
import time
from typing import Any

import pyarrow as pa

from gateway.answers import table_of
from gateway.information import columns
from gateway.information.viewer import Viewer
from penstock import names
from penstock.coordination import nodes
from penstock.coordination.redis_link import ask


class MeshLists:
    """What runs, and the code that users gave it."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer

    def functions(self) -> pa.Table:
        """Return all functions; what they are made of for who has ADMIN."""
        catalog = self._viewer.catalog
        rows = []
        shown = self._viewer.may("ADMIN", None)
        for f in catalog.functions():
            users = sum(
                any(used.id == f.id for used in s.plan.functions) for s in catalog.streams()
            )
            parameters = ", ".join(map(str, f.parameters))
            code = f.code if shown else None
            rows.append((f.name, f.aggregate, parameters, str(f.returns), "Python", users, code))
        return table_of(columns.FUNCTIONS, rows)

    def dnodes(self) -> pa.Table:
        """Return the nodes of the mesh."""
        rows = [
            (
                n.id,
                n.host,
                "ready" if n.online else "offline",
                int(n.started * 1000),
                " ".join(n.services),
                None if n.online else _ago(n.seen),
                " ".join(n.services),
            )
            for n in self._nodes()
        ]
        return table_of(columns.DNODES, rows)

    def alive(self) -> pa.Table:
        """Return one number, as TDengine tells it: 1, or 2 while a node is offline."""
        status = 1 if all(n.online for n in self._nodes()) else 2
        return table_of((("status", columns.INT),), [(status,)])

    def snodes(self) -> pa.Table:
        """Return the snodes, with what they last reported."""
        online = {n.id for n in self._nodes() if "snode" in n.services}
        rows = []
        for snode in self._viewer.catalog.snodes():
            held = ask(functools.partial(self._viewer.redis.get, names.snode_report(snode.dnode)))
            said: dict[str, Any] = json.loads(held) if held else {}
            if snode.dnode in online:
                note = said.get("note", "")
                status = "failing" if note else "ready"
            else:
                note = "its service does not run"
                status = "offline"
            rows.append(
                (
                    snode.dnode,
                    said.get("endpoint"),
                    snode.created,
                    status,
                    said.get("target"),
                    said.get("backups", 0),
                    said.get("newest"),
                    note or None,
                )
            )
        return table_of(columns.SNODES, rows)

    def _nodes(self) -> list[nodes.Node]:
        return ask(lambda: nodes.read(self._viewer.redis, time.time()))


def _ago(seen: float) -> str:
    return f"last heard of {max(time.time() - seen, 0):.0f} s ago"
