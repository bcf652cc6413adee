from __future__ import annotations

import pytest

from penstock.errors import RemoteError
from penstock.link.mirror_status import MirrorStatus


def test_a_table_that_is_live_again_has_no_error():
    status = MirrorStatus()
    assert status.is_cut_off
    status.error = RemoteError("cut")
    status.become("disconnected")
    assert status.is_cut_off and status.to_dict()["stale"]
    status.become("live")
    assert status.error is None and not status.is_cut_off and not status.to_dict()["stale"]


def test_a_table_that_has_failed_can_only_be_closed():
    status = MirrorStatus()
    status.error = RemoteError("gone")
    status.become("failed")
    status.become("disconnected")
    assert status.state == "failed" and status.has_ended
    with pytest.raises(RemoteError, match="gone"):
        status.require_alive()
    status.become("closed")
    assert status.state == "closed"
    status.require_alive()


def test_only_rows_after_the_first_count_as_a_reconnect():
    status = MirrorStatus()
    status.note_first_rows()
    assert status.reconnects == 0 and status.updated_at > 0
    status.note_first_rows()
    assert status.reconnects == 1
