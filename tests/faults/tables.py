"""Stream tables of a raft group, broken in every way that they promise to bear.

Rounds of kill -9 of the leader under load, each measured from the kill to the first row at a
subscriber that was sent after it. Then each once: the leader is stopped past its lease and woken,
Redis is killed, the Kafka broker is killed, a follower loses its disk.
"""

from __future__ import annotations

import shutil
import signal
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from penstock.client.nodes import Nodes
from penstock.mesh.running import RunningMesh, running_mesh
from tests.faults.table_load import GROUP, NAME, Producer, Watcher, load, micros
from tests.faults.verdict import Verdict, verdict

SERVICES = ("kafka", "redis", "gateway")
#: no Spark: nothing here computes windows
ENVIRONMENT = {"PENSTOCK_GATEWAY_WAIT_FOR_JOBS": "false"}
ALIASES = ("NODE1", "NODE2", "NODE3")
_PATIENCE = 60.0


class Group:
    """The nodes as a test sees them."""

    def __init__(self, mesh: RunningMesh, nodes: Nodes) -> None:
        self.mesh = mesh
        self._nodes = nodes

    def leader(self, *, other_than: str = "") -> str:
        """Alias of the node that leads and serves. Raises TimeoutError."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            found = self._nodes.leader(GROUP)
            if found is not None and found.node != other_than:
                return found.node
            time.sleep(0.05)
        raise TimeoutError("nobody leads")

    def wait_whole(self) -> None:
        """Every node runs, has the whole table and takes part again. Raises TimeoutError."""
        end = time.monotonic() + _PATIENCE
        why = ""
        while time.monotonic() < end:
            try:
                for alias in ALIASES:
                    self.mesh.wait_ready(alias.lower(), seconds=_PATIENCE)
                states = [
                    self._nodes.ask(self.mesh.node_url(a), "/v1/node", seconds=2.0) for a in ALIASES
                ]
                rows = [t["next"] for s in states for t in s["tables"] if t["table"] == NAME]
                alive = [len(g["alive"]) for s in states for g in s["groups"]]
                if (
                    len(rows) == len(ALIASES)
                    and max(rows) - min(rows) < 1_000
                    and min(alive) == len(ALIASES)
                ):
                    return
                why = f"rows {rows}, alive {alive}"
            except Exception as away:
                why = str(away)
            time.sleep(0.05)
        raise TimeoutError(f"the group is not whole: {why}")


def kill_leader(group: Group, watchers: list[Watcher]) -> float:
    """Milliseconds from kill -9 to the first row sent after it, at the subscriber that waits
    longest.
    """
    leader = group.leader()
    pid = group.mesh.kill(leader.lower())
    moment = micros()
    came = max(w.after(moment, _PATIENCE) for w in watchers)
    group.mesh.wait_ready(leader.lower(), not_pid=pid)
    return (came - moment) / 1000


def pause_leader(group: Group, watchers: list[Watcher]) -> float:
    """The leader sleeps past its lease and wakes while another leads."""
    leader = group.leader()
    group.mesh.kill(leader.lower(), signal.SIGSTOP)
    moment = micros()
    try:
        came = max(w.after(moment, _PATIENCE) for w in watchers)
    finally:
        group.mesh.kill(leader.lower(), signal.SIGCONT)
    return (came - moment) / 1000


def restart(service: str) -> Callable[[Group, list[Watcher]], float]:
    """Kill a server; the supervisor starts it again."""

    def scenario(group: Group, watchers: list[Watcher]) -> float:
        pid = group.mesh.kill(service)
        moment = micros()
        group.mesh.wait_ready(service, not_pid=pid)
        after = micros()
        came = max(w.after(after, _PATIENCE) for w in watchers)
        return (came - moment) / 1000

    return scenario


def wipe_follower(group: Group, watchers: list[Watcher]) -> float:
    """A follower dies and loses its disk; until it has every row again."""
    leader = group.leader()
    alias = next(a for a in ALIASES if a != leader)
    # asleep it writes nothing more, and its successor does not begin before the disk is empty
    group.mesh.kill(alias.lower(), signal.SIGSTOP)
    shutil.rmtree(group.mesh.layout.root / "tables" / alias)
    pid = group.mesh.kill(alias.lower())
    moment = micros()
    for watcher in watchers:
        watcher.after(moment, _PATIENCE)
    group.mesh.wait_ready(alias.lower(), not_pid=pid)
    group.wait_whole()
    return (micros() - moment) / 1000


SCENARIOS: dict[str, Callable[[Group, list[Watcher]], float]] = {
    "leader_paused": pause_leader,
    "redis_restarted": restart("redis"),
    "kafka_restarted": restart("kafka"),
    "follower_wiped": wipe_follower,
}
#: milliseconds: of a kill, and of each scenario (a broker takes seconds to start, many on a busy
#: machine)
_KILL_LIMIT = 2_000
LIMITS = {
    "leader_paused": 10_000,
    "redis_restarted": 15_000,
    "kafka_restarted": 60_000,
    "follower_wiped": 30_000,
}


def rounds_of(
    mesh: RunningMesh, out: Path, rounds: int, scenarios: list[str]
) -> tuple[list[float], dict[str, float], Verdict]:
    """Break the mesh, under load all the time; milliseconds of kills and of scenarios, and the
    verdict over everything.
    """
    shutil.rmtree(out, ignore_errors=True)
    with load(mesh, out) as (producers, watchers):
        group = Group(mesh, producers[0]._table._client.nodes)
        _steady(producers, watchers)
        kills = []
        for _ in range(rounds):
            group.wait_whole()
            kills.append(kill_leader(group, watchers))
        others = {}
        for name in scenarios:
            group.wait_whole()
            others[name] = SCENARIOS[name](group, watchers)
        group.wait_whole()
        _steady(producers, watchers)
    failed = [f for p in producers for f in p.failed]
    if failed:
        (out / "failed-writes.txt").write_text("\n".join(failed), encoding="utf-8")
    return kills, others, verdict(mesh.kafka_bootstrap, out, NAME)


def _steady(producers: list[Producer], watchers: list[Watcher]) -> None:
    """A second's rows have come to everybody."""
    target = [p.acked + 200 for p in producers]
    end = time.monotonic() + _PATIENCE
    while any(p.acked < t for p, t in zip(producers, target, strict=True)):
        if time.monotonic() > end:
            raise TimeoutError(
                f"producers are stuck at {[p.acked for p in producers]}: {[p.failed[-1:] for p in producers]}"
            )
        time.sleep(0.02)
    moment = micros()
    for watcher in watchers:
        watcher.after(moment, _PATIENCE)


def run(rounds: int, out: Path) -> bool:
    """All rounds in a mesh of their own; prints the lines that the makefile promises."""
    with (
        tempfile.TemporaryDirectory(prefix="penstock-faults-") as directory,
        running_mesh(Path(directory), services=SERVICES, nodes=3, environment=ENVIRONMENT) as mesh,
    ):
        kills, _, found = rounds_of(mesh, out, rounds, [])
        print(line(rounds, kills, found), flush=True)
        good = found.good and max(kills, default=0) <= _KILL_LIMIT
    for name in SCENARIOS:
        with (
            tempfile.TemporaryDirectory(prefix="penstock-faults-") as directory,
            running_mesh(
                Path(directory), services=SERVICES, nodes=3, environment=ENVIRONMENT
            ) as mesh,
        ):
            _, others, found = rounds_of(mesh, out / name, 0, [name])
            print(
                f"tables-other: scenario={name} lost={found.lost} dup={found.dup} ms={others[name]:.0f}",
                flush=True,
            )
            good = good and found.good and others[name] <= LIMITS[name]
    print(f"logs of producers and subscribers: {out}", flush=True)
    return good


def line(rounds: int, kills: list[float], found: Verdict) -> str:
    p50 = statistics.median(kills) if kills else 0.0
    return (
        f"tables: rounds={rounds} lost={found.lost} dup={found.dup} two_leaders={found.two_leaders} "
        f"p50_ms={p50:.0f} max_ms={max(kills, default=0):.0f}"
    )
