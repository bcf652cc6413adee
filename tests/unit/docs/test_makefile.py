"""The Makefile says one thing for each target."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_every_target_has_one_recipe() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = Counter(re.findall(r"^([a-z][a-z-]*):", text, re.MULTILINE))
    assert [name for name, count in targets.items() if count > 1] == []
    phony = {
        name for line in re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE) for name in line.split()
    }
    assert phony - targets.keys() == set()
