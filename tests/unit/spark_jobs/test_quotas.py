"""What a stream may publish: so much a second, a burst on top, and a surplus that is made up for
and forgiven beyond a bound.
"""

from __future__ import annotations

import json

from penstock import names
from spark_jobs.quotas import Account, Usage


def test_reports_of_all_lanes_are_summed_up() -> None:
    status = {
        "in.d:0": "7",
        f"{names.STATS}in.d:0": json.dumps({"rows_out": 3, "full_bytes": 10}),
        f"{names.STATS}in.d:1": json.dumps({"rows_out": 4}),
    }
    assert Usage.of(status) == Usage(rows_out=7, full_bytes=10)
    assert Usage.of({**status, names.filling("in.d", 0): "20"}).filling


def test_a_burst_is_let_through_and_a_surplus_is_made_up_for() -> None:
    account = Account.open(Usage(rows_out=100), 10, now=0.0)
    account = account.charge(Usage(rows_out=150), 10, now=0.0)
    assert account.credit == 0
    account = account.charge(Usage(rows_out=200), 10, now=1.0)
    assert account.credit == -40
    assert (
        account.charge(Usage(rows_out=200), 10, now=4.9).credit
        < 0
        <= account.charge(Usage(rows_out=200), 10, now=5.0).credit
    )


def test_nobody_pays_for_ever_and_nobody_saves_up() -> None:
    account = Account.open(Usage(), 10, now=0.0)
    assert (
        account.charge(Usage(rows_out=10**9), 10, now=1.0)
        .charge(Usage(rows_out=10**9), 10, now=31.0)
        .credit
        == 0
    )
    assert (
        account.charge(Usage(), 10, now=10**6).charge(Usage(rows_out=51), 10, now=10**6).credit
        == -1
    )


def test_counters_that_go_back_after_a_crash_credit_and_charge_nothing() -> None:
    account = Account.open(Usage(), 10, now=0.0).charge(Usage(rows_out=60), 10, now=0.0)
    again = account.charge(Usage(rows_out=20), 10, now=0.0).charge(Usage(rows_out=60), 10, now=0.0)
    assert account == again and again.credit == -10


def test_history_does_not_count() -> None:
    account = Account.open(Usage(), 10, now=0.0)
    account = account.charge(Usage(rows_out=10_000, filling=True), 10, now=1.0)
    account = account.charge(Usage(rows_out=20_000), 10, now=2.0)
    assert account.credit == 50
    assert account.charge(Usage(rows_out=20_060), 10, now=60.0).credit == -10
