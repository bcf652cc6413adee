"""Which service of a mesh runs the stream jobs: with a standby it is one of two."""

from __future__ import annotations

import json

import redis

from penstock import names
from penstock.mesh.running import RunningMesh
from penstock.mesh.standby import STANDBY


def leader(mesh: RunningMesh, client: redis.Redis) -> str:
    """The one that holds the lease; nothing while whoever held it is dead. *client* decodes."""
    held = str(client.get(names.lease("jobs")) or "")
    if not held:
        return ""
    pid = json.loads(held.split("|", 2)[2])["pid"]
    services = mesh.state()["services"]
    return next((s for s in ("spark", STANDBY) if services.get(s, {}).get("pid") == pid), "")
