"""A leader is dead when its link closes and its address refuses connections, not before."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, Self

import aiohttp
import pytest

from penstock.config.raft import Group
from services.tables import peers
from services.tables.election import GroupStanding
from services.tables.peers import Peers

GROUP = Group(11, ("N1", "N2", "N3"))


class Client:
    """Stands where `aiohttp.ClientSession` does; its links close when a test says so."""

    opened: list[str] = []
    close: asyncio.Event

    def __init__(self, **options: Any) -> None:
        assert options["headers"] == {"Authorization": "Basic x"}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def ws_connect(self, url: str, **_: Any) -> Self:
        Client.opened.append(url)
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> None:
        await Client.close.wait()
        raise StopAsyncIteration


class Election:
    """Standings, and which leaders were found dead."""

    def __init__(self, *leaders: tuple[int, str]) -> None:
        self.standings = {
            group: GroupStanding(
                Group(group, GROUP.members), leader=leader, url=f"http://{leader}:7", epoch=4
            )
            for group, leader in leaders
        }
        self.dead: list[tuple[int, int]] = []
        self.found = asyncio.Event()

    def is_dead(self, group: int, epoch: int) -> None:
        self.dead.append((group, epoch))
        self.standings[group].leader = ""
        self.found.set()


class Writer:
    def close(self) -> None:
        """Hang up."""


class Door:
    """What connecting to a node's address meets."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.tried: list[tuple[str, int]] = []
        self.twice = asyncio.Event()

    async def connect(self, host: str, port: int) -> tuple[None, Writer]:
        self.tried.append((host, port))
        if len(self.tried) > 1:
            self.twice.set()
        if self.error is not None:
            raise self.error
        return None, Writer()


@pytest.fixture
async def door(monkeypatch: pytest.MonkeyPatch) -> Door:
    Client.opened = []
    Client.close = asyncio.Event()
    made = Door()
    monkeypatch.setattr(aiohttp, "ClientSession", Client)
    monkeypatch.setattr(asyncio, "open_connection", made.connect)
    monkeypatch.setattr(peers, "_LOOK_SECONDS", 0.0)
    return made


def follow(election: Election) -> asyncio.Task[None]:
    subject: Any = election
    return asyncio.create_task(Peers(subject, "N1", "Basic x", ssl.create_default_context()).run())


async def end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_leader_whose_address_refuses_is_dead_in_every_group(door: Door) -> None:
    door.error = ConnectionRefusedError()
    election = Election((11, "N2"), (12, "N2"), (13, "N3"))
    task = follow(election)
    while len(Client.opened) < 2:
        await asyncio.sleep(0)
    assert sorted(Client.opened) == ["http://N2:7/v1/peer", "http://N3:7/v1/peer"]
    assert election.dead == []
    Client.close.set()
    await election.found.wait()
    await asyncio.sleep(0)
    assert sorted(election.dead) == [(11, 4), (12, 4), (13, 4)]
    await end(task)


@pytest.mark.parametrize("error", [None, OSError("no route"), TimeoutError()])
async def test_a_closed_link_alone_means_nothing(door: Door, error: Exception | None) -> None:
    door.error = error
    Client.close.set()
    election = Election((11, "N2"))
    task = follow(election)
    await door.twice.wait()
    assert door.tried[0] == ("n2", 7)
    assert election.dead == []
    await end(task)


async def test_nobody_watches_itself_or_nobody(door: Door) -> None:
    election = Election((11, "N1"), (12, ""))
    task = follow(election)
    for _ in range(5):
        await asyncio.sleep(0)
    assert Client.opened == []
    await end(task)


async def test_a_former_leader_is_watched_no_more(door: Door) -> None:
    door.error = ConnectionRefusedError()
    election = Election((11, "N2"))
    task = follow(election)
    while not Client.opened:
        await asyncio.sleep(0)
    election.standings[11].leader = "N3"
    election.standings[11].url = "http://N3:7"
    while len(Client.opened) < 2:
        await asyncio.sleep(0)
    assert Client.opened == ["http://N2:7/v1/peer", "http://N3:7/v1/peer"]
    await end(task)
    assert election.dead == []
