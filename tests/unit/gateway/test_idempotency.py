from __future__ import annotations

from gateway.idempotency import Claim

RECORDS = [(0, b"a"), (1, b"b"), (0, b"c"), (2, b"d")]


def test_a_fresh_claim_writes_everything() -> None:
    assert Claim("k", {}).rest(RECORDS) == RECORDS


def test_what_is_in_the_log_is_left_out_in_order() -> None:
    assert Claim("k", {0: 1, 2: 1}).rest(RECORDS) == [(1, b"b"), (0, b"c")]
    assert Claim("k", {0: 2, 1: 1, 2: 1}).rest(RECORDS) == []


def test_the_trace_tells_the_key() -> None:
    assert Claim("k", {}).trace == "idempotency:k"
