from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.client.row_progress import RowProgress
from penstock.client.wire import ROW_ID, to_stream
from penstock.errors import RemoteError


def message(first: int, next_: int, *ids: int) -> bytes:
    rows = pa.table({ROW_ID: pa.array(ids, pa.int64())})
    return first.to_bytes(8, "big") + next_.to_bytes(8, "big") + to_stream(rows)


def taken(progress: RowProgress, sent: bytes) -> list[int] | None:
    rows = progress.take(sent)
    return None if rows is None else rows.column(ROW_ID).to_pylist()


def test_rows_that_came_before_are_left_out():
    progress = RowProgress()
    progress.restart(5)
    assert taken(progress, message(5, 8, 5, 7)) == [5, 7]
    assert taken(progress, message(6, 10, 7, 8, 9)) == [8, 9]
    assert taken(progress, message(8, 10, 8, 9)) is None
    assert progress.next == 10


def test_a_message_of_rows_that_pass_no_filter_moves_on():
    progress = RowProgress()
    progress.restart(5)
    assert taken(progress, message(5, 8)) is None
    assert progress.next == 8
    progress.skip_to(12)
    progress.skip_to(11)
    assert progress.next == 12


def test_rows_that_are_missing_are_an_error():
    progress = RowProgress()
    progress.restart(5)
    with pytest.raises(RemoteError, match="rows 5 to 6 did not come"):
        progress.take(message(7, 8, 7))


def test_what_is_processed_is_untold_until_a_node_knows():
    progress = RowProgress()
    assert not progress.is_known and not progress.untold
    progress.restart(5)
    progress.note_processed()
    assert progress.untold
    progress.confirm(4)
    assert progress.untold
    progress.confirm(5)
    assert not progress.untold
    progress.restart(-1)
    assert not progress.is_known and not progress.untold
