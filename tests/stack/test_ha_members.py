"""Stream tables while members of their group stand still or start anew, and what programs are told
meanwhile. Names of tests begin with the ids of the reference's features that they hold.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import penstock
from penstock.client.connection import Connection
from penstock.client.table_handles import arrow_rows
from penstock.errors import PenstockError
from penstock.mesh.running import RunningMesh, running_mesh
from tests.stack.conftest import PATIENT, eventually
from tests.stack.names import unique

NODES = ("NODE1", "NODE2", "NODE3")
NUMBERS = penstock.table(["ts", "n"], ["TIMESTAMP", "BIGINT"])
RECONNECT = penstock.SubscriptionOptions(reconnect=True)
AT = "2026-03-02T09:30:00Z"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMesh]:
    """Three members, for tests that leave them as they were."""
    environment = {**PATIENT, "PENSTOCK_GATEWAY_WAIT_FOR_JOBS": "false"}
    services = ("kafka", "redis", "gateway", "store")
    with running_mesh(
        tmp_path_factory.mktemp("members"),
        services=services,
        nodes=3,
        environment=environment,
        silent_seconds=0,  # members stand still here, for as long as a busy machine takes
    ) as mesh:
        yield mesh


@pytest.fixture
def client(nodes: RunningMesh) -> Iterator[Connection]:
    database = unique("members")
    with penstock.connect(
        nodes.gateway_url,
        user=nodes.user,
        password=nodes.password,
        database=database,
        options=penstock.ConnectionOptions(timeout=60),
    ) as connection:
        connection.execute(f"CREATE DATABASE {database}")
        eventually(lambda: connection.ha.leader(11))
        yield connection


def numbers(*values: int) -> list[dict[str, Any]]:
    return [{"ts": AT, "n": n} for n in values]


def refused(code: str) -> Any:
    return pytest.raises(PenstockError, match=code)


@contextmanager
def standing_still(mesh: RunningMesh, *members: str) -> Iterator[None]:
    """Members that neither answer nor die."""
    for member in members:
        mesh.kill(member.lower(), signal.SIGSTOP)
    try:
        yield
    finally:
        for member in members:
            mesh.kill(member.lower(), signal.SIGCONT)


def of(table: penstock.StreamTable, node: str) -> list[int]:
    found: list[int] = table.rows(node=node).table.column("n").to_pylist()
    return found


def alive(mesh: RunningMesh, client: Connection, node: str) -> set[str]:
    """The members that *node* knows to be there."""
    return set(client.ha.nodes.ask(mesh.node_url(node), "/v1/node")["groups"][0]["alive"])


def test_d10_what_is_appended_below_a_majority_is_refused_and_never_there(
    nodes: RunningMesh, client: Connection
) -> None:
    table = client.ha.create(11, NUMBERS, "refused", 1000)
    got: list[int] = []
    client.ha.subscribe(
        "refused",
        lambda m: got.extend(m[1]),
        "all",
        offset=0,
        options=RECONNECT,
    )
    table.append(numbers(1))
    leader = client.ha.leader(11)
    followers = [n for n in NODES if n != leader]
    with standing_still(nodes, *followers):

        def refusal() -> str:
            # until the leader has missed the others its acks hold: those rows have to stay
            try:
                table.append(numbers(2))
                acked.append(2)
                return ""
            except PenstockError as error:
                return f"{error.code} {error.detail}"

        acked: list[int] = []
        told = eventually(refusal)
        assert (
            told.startswith("E_NO_QUORUM")
            and "1 members" not in told
            and f"{leader} is there, 2 are needed" in told
        )
        refused = [table.submit(numbers(-1)) for _ in range(20)]
        for future in refused:
            assert "E_NO_QUORUM" in str(future.exception())
        assert of(table, leader) == [1, *acked]
    eventually(lambda: table.append(numbers(3)))
    everything = [1, *acked, 3]
    for node in NODES:
        eventually(lambda n=node: of(table, n) == everything)  # type: ignore[misc]
    eventually(lambda: got == everything)
    stored = f"SELECT n FROM {client.database}.refused ORDER BY row_id"
    eventually(lambda: [row[0] for row in client.query(stored).rows] == everything)


def test_d10_a_write_waits_for_a_majority_that_comes_back(
    nodes: RunningMesh, client: Connection
) -> None:
    table = client.ha.create(11, NUMBERS, "waited", 1000)
    table.append(numbers(1))
    leader = client.ha.leader(11)
    with standing_still(nodes, *(n for n in NODES if n != leader)):
        eventually(
            lambda: (
                "no quorum"
                in client.ha.nodes.ask(nodes.node_url(leader), "/v1/node")["groups"][0]["quorum"]
            )
        )
        writes = [table.submit(numbers(n)) for n in (2, 3)]
        connects = table.appender.connects
        eventually(lambda: table.appender.connects > connects)  # refused, and sent again
        assert not any(write.done() for write in writes)
    assert [write.result(60) for write in writes] == [1, 1]
    assert of(table, client.ha.leader(11)) == [1, 2, 3]


def test_d19_while_nobody_is_elected_a_program_is_told_so_and_then_who_leads(
    nodes: RunningMesh, client: Connection
) -> None:
    """One follower stands still, and the leader is killed and held when it starts anew: until it
    goes on there is no majority to elect.
    """
    table = client.ha.create(11, NUMBERS, "elected", 1000)
    table.append(numbers(1))
    before = client.ha.leader(11)
    away, last = (n for n in NODES if n != before)
    answers: list[str] = []

    def answer() -> str:
        try:
            found = client.ha.leader(11)
        except PenstockError as error:
            assert (
                error.message == "group 11 has no leader at the moment"
                and "try again" in error.hint
            )
            found = error.code
        if answers[-1:] != [found]:
            answers.append(found)
        return found

    with standing_still(nodes, away):
        eventually(lambda: alive(nodes, client, last) == {before, last})
        killed = nodes.kill(before.lower())
        anew = eventually(lambda: (pid := nodes.pid(before.lower())) != killed and pid)
        with standing_still(nodes, before):
            assert nodes.pid(before.lower()) == anew
            eventually(lambda: answer() == "E_NO_LEADER")
            assert [answer() for _ in range(3)] == ["E_NO_LEADER"] * 3
            # who writes meanwhile is not refused but waits, as long as it has patience; what it
            # gave up is not there later
            with client.ha.appender("elected", patience=0.5) as producer, refused("E_BUS"):
                producer.append(arrow_rows(numbers(-1), table.schema))
            assert of(table, last) == [1]
        elected = eventually(lambda: (found := answer()) in (before, last) and found)
    # first perhaps who led before, then nobody, then the new one: never an older answer after a
    # newer one
    assert answers in ([before, "E_NO_LEADER", elected], ["E_NO_LEADER", elected])
    eventually(lambda: table.append(numbers(2)))
    for node in NODES:
        eventually(lambda n=node: of(table, n) == [1, 2])  # type: ignore[misc]


def test_d21_a_restarted_node_has_as_many_rows_in_memory_as_pre_cache_says(
    nodes: RunningMesh, client: Connection
) -> None:
    few = client.ha.create(11, NUMBERS, "few", 10_000, penstock.StreamTableOptions(pre_cache=100))
    all_ = client.ha.create(11, NUMBERS, "whole", 10_000)
    for table in (few, all_):
        table.append(numbers(*range(1000)))
    leader = client.ha.leader(11)
    node = next(n for n in NODES if n != leader)
    for table in (few, all_):
        eventually(lambda t=table: t.meta(node=node)["totalSize"] == 1000)  # type: ignore[misc]
        assert table.meta(node=node)["sizeInMemory"] == 1000
    pid = nodes.kill(
        node.lower(), signal.SIGTERM
    )  # writes what it has; what comes from the log is in memory whatever preCache says
    nodes.wait_ready(node.lower(), not_pid=pid)
    meta = few.meta(node=node)
    assert (meta["totalSize"], meta["sizeInMemory"], meta["memoryOffset"], meta["sizeOnDisk"]) == (
        1000,
        100,
        900,
        1000,
    )
    assert of(few, node) == list(range(900, 1000))
    assert all_.meta(node=node)["sizeInMemory"] == 1000
    # the others are on disk, and new ones join those in memory
    few.append(numbers(1000))
    eventually(lambda: of(few, node) == list(range(900, 1001)))
    with standing_still(nodes, leader):
        eventually(lambda: client.ha.leader(11) != leader)
        got: list[int] = []
        client.ha.subscribe(
            "few",
            lambda m: got.extend(m[1]),
            "first",
            offset=0,
            server=node,
            options=RECONNECT,
        )
        eventually(lambda: got == list(range(1001)))


def test_d31_throttle_is_any_number_of_seconds_and_holds_only_what_waits_for_a_batch(
    client: Connection,
) -> None:
    table = client.ha.create(11, NUMBERS, "throttled", 1000)
    options = {
        "a twentieth": (1_000_000, 0.05),
        "a second": (1_000_000, 1.0),
        "no batch": (0, 60.0),
        "full batch": (2, 60.0),
    }
    calls: dict[str, list[tuple[float, int]]] = {name: [] for name in options}
    for name, (batch, seconds) in options.items():

        def handler(message: Any, name: str = name) -> None:
            calls[name].append((time.monotonic(), len(message[1])))

        client.ha.subscribe(
            "throttled",
            handler,
            name,
            options=penstock.SubscriptionOptions(
                msg_as_table=False, batch_size=batch, throttle=seconds, reconnect=True
            ),
        )

    def handed(name: str) -> int:
        return sum(count for _, count in calls[name])

    took: dict[str, list[float]] = {name: [] for name in options}
    for n in range(1, 11):
        begin = time.monotonic()
        table.append(numbers(n))
        for name in ("a twentieth", "no batch"):
            eventually(lambda name=name, n=n: handed(name) == n)  # type: ignore[misc]
            took[name].append(calls[name][-1][0] - begin)
        if n % 2 == 0:
            eventually(lambda n=n: handed("full batch") == n)  # type: ignore[misc]
    eventually(lambda: handed("a second") == 10)
    # no setting of the server had to be lowered; a machine that is busy delays some of them, but
    # hardly all
    assert 0.05 <= min(took["a twentieth"]) < 0.2
    assert min(took["no batch"]) < 0.2
    assert [count for _, count in calls["no batch"]] == [1] * 10
    assert [count for _, count in calls["full batch"]] == [2] * 5
    # rows that come meanwhile wait together for the second that began with the first of them
    gaps = [
        later - earlier
        for (earlier, _), (later, _) in zip(calls["a second"], calls["a second"][1:], strict=False)
    ]
    assert all(gap >= 1.0 for gap in gaps)
