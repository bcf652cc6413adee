"""A process without a presence sends what it logs, at the latest when it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from penstock import names
from penstock.coordination.log_beat import LogBeat
from penstock.coordination.service_logs import LogSender
from penstock.runtime.newest_entries import NewestEntries
from tests.unit.penstock.service.kit import AtticSettings
from tests.unit.services.memory_redis import MemoryRedis


def test_what_is_left_is_sent_at_the_end(tmp_path: Path) -> None:
    client = MemoryRedis()
    logged = NewestEntries()
    sender = LogSender(AtticSettings(data_dir=tmp_path, node=3), logged)
    beat = LogBeat(cast(Any, client), sender)
    beat.start()
    logged.keep('{"event": "the end"}')
    beat.close()
    assert client.streams[names.log(3, "attic")] == [{"entry": '{"event": "the end"}'}]
    assert not beat.is_alive()


def test_redis_away_ends_nothing(tmp_path: Path) -> None:
    client = MemoryRedis()
    client.down = True
    LogBeat(cast(Any, client), LogSender(AtticSettings(data_dir=tmp_path), NewestEntries())).close()
