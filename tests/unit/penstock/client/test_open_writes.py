from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from penstock.client.open_writes import OpenWrites
from penstock.errors import PenstockError

ROWS = pa.table({"v": [1, 2]})


def refused(sequence: int, code: str) -> dict[str, Any]:
    return {"seq": sequence, "error": {"code": code, "message": "no"}}


def metadata(message: bytes) -> dict[bytes, bytes]:
    return dict(pa.ipc.open_stream(message).schema.metadata)


def test_a_message_says_its_number_and_the_oldest_without_an_answer():
    writes = OpenWrites("p")
    first = writes.add(ROWS)
    second = writes.add(ROWS)
    assert metadata(writes.message(second))[b"penstock.settled"] == b"1"
    writes.settle([{"seq": first.sequence, "rows": 2}])
    said = metadata(writes.message(second))
    assert (said[b"penstock.seq"], said[b"penstock.settled"]) == (b"2", b"2")
    assert (first.done.result(0), writes.acked, len(writes)) == (2, 2, 1)


@pytest.mark.parametrize("code", ["E_NOT_LEADER", "E_SEQUENCE", "E_OVERLOAD", "E_NO_QUORUM"])
def test_what_another_leader_may_take_stays_open(code: str):
    writes = OpenWrites("p")
    write = writes.add(ROWS)
    assert not writes.settle([refused(write.sequence, code)])
    assert writes.all() == [write] and not write.done.done()


def test_a_refusal_for_good_ends_its_write_only():
    writes = OpenWrites("p")
    bad = writes.add(ROWS)
    good = writes.add(ROWS)
    assert writes.settle([refused(bad.sequence, "E_ROW"), {"seq": good.sequence, "rows": 2}])
    with pytest.raises(PenstockError):
        bad.done.result(0)
    assert good.done.result(0) == 2 and writes.acked == 2


def test_an_answer_to_what_was_given_up_is_ignored():
    writes = OpenWrites("p")
    write = writes.add(ROWS)
    assert writes.take_all() == [write] and not writes
    assert writes.settle([{"seq": write.sequence, "rows": 2}])
    assert writes.acked == 0 and not write.done.done()
    assert writes.add(ROWS).sequence == 2
