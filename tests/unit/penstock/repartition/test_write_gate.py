"""Writers stop: what is under way is waited for, what comes then is not let through."""

from __future__ import annotations

from penstock.repartition.write_gate import Gate


def test_what_is_under_way_is_waited_for_and_nothing_more_gets_through() -> None:
    halted: set[str] = set()
    gate = Gate(halted.__contains__)
    assert gate.enter("in.d") and gate.enter("in.d") and gate.enter("in.e")
    halted.add("in.d")
    assert not gate.enter("in.d")
    assert gate.enter("in.e")
    gate.leave("in.d")
    assert not gate.wait_quiet("in.d", 0)
    gate.leave("in.d")
    assert gate.wait_quiet("in.d", 0)
    halted.clear()
    assert gate.enter("in.d")
