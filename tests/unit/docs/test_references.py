"""What we promise of the peers' features has a test that bears its number: T1 to T17 (external
streams), H1 to H25 (tables by URI).
"""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[2]
WANTED = {f"T{n}" for n in range(1, 18)} | {f"H{n}" for n in range(1, 26)}


def test_every_feature_has_a_test_named_by_it() -> None:
    named: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            named |= set(re.findall(r"(?<=_)[TH]\d+(?=_)", name))
    assert WANTED - named == set()
