"""What the handler of a subscription gets."""

from __future__ import annotations

import pyarrow as pa

from penstock.client.handler_calls import Message


def test_a_message_has_its_rows_and_their_ids() -> None:
    ids = pa.chunked_array([[7, 8]])
    message = Message(pa.table({"v": [1.5, 2.5]}), ids)
    assert (message.rows, message.row_ids, message.notices) == ([(1.5,), (2.5,)], ids, ())
