"""Which traces are kept."""

from __future__ import annotations

import secrets

from penstock.telemetry.sampler import Sampler


def test_a_ratio_keeps_about_as_many() -> None:
    kept = sum(Sampler(0.25).keeps(secrets.token_hex(16)) for _ in range(4000))
    assert 800 < kept < 1200


def test_bounds_keep_all_and_none() -> None:
    for trace in ("f" * 32, "0" * 31 + "1"):
        assert Sampler(1.0).keeps(trace)
        assert not Sampler(0.0).keeps(trace)


def test_services_agree_on_a_trace() -> None:
    low = "f" * 18 + "1" + "0" * 13
    assert Sampler(0.5, by_parent=False).keeps(low)
    assert Sampler(0.1, by_parent=False).keeps(low)
    assert not Sampler(0.01, by_parent=False).keeps(low)


def test_a_parent_decides_where_it_is_asked() -> None:
    assert Sampler(0.0).keeps("f" * 32, True)
    assert not Sampler(1.0).keeps("f" * 32, False)
    assert Sampler(1.0, by_parent=False).keeps("f" * 32, False)
    assert not Sampler(0.0, by_parent=False).keeps("f" * 32, True)
