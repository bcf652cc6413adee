"""Records of the catalog's log change the catalog, or are refused."""

from __future__ import annotations

import numpy as np

from penstock import names
from penstock.bus import Batch
from penstock.catalog import entries
from penstock.catalog.apply import Changed, LogApplier
from penstock.catalog.model import User
from penstock.catalog.view import Catalog

ANN = User(5, "ann", "hash")


def applier(*, children: bool = True) -> LogApplier:
    return LogApplier(Catalog(), children=children, registry=None)


def batch(*records: tuple[bytes, bytes | None], first: int = 0) -> Batch:
    offsets = np.arange(first, first + len(records))
    times = np.zeros(len(records), np.int64)
    keys = [k for k, _ in records]
    return Batch(names.CATALOG, 0, offsets, times, keys, [v for _, v in records])


def put(user: User, epoch: int) -> tuple[bytes, bytes]:
    return entries.key_of(user), entries.to_value(user, epoch)


def test_changes_are_what_was_and_what_is() -> None:
    made = applier()
    new = User(5, "ann", "other")

    assert made.apply(batch(put(ANN, 1), put(new, 1), (b"user/5", None), (b"user/5", None))) == [
        Changed(None, ANN),
        Changed(ANN, new),
        Changed(new, None),
    ]


def test_only_a_live_writer_must_have_led() -> None:
    made = applier()
    assert len(made.apply(batch(put(ANN, 2)))) == 1
    made.live = True

    assert made.apply(batch(put(User(6, "bob", "hash"), 3), first=1)) == []
    assert made.spoiled == {b"user/6"}
    leader = (entries.LEADER_KEY, entries.leader_value(3, 10))
    assert len(made.apply(batch(leader, put(User(6, "bob", "hash"), 3), first=2))) == 1
    assert made.spoiled == set()


def test_child_tables_may_be_left_out() -> None:
    unreadable = (b"child/9", b"no record")
    without = applier(children=False)
    assert without.apply(batch(unreadable)) == [] and not without.spoiled
    all_of_them = applier()
    assert all_of_them.apply(batch(unreadable)) == [] and all_of_them.spoiled == {b"child/9"}
