"""docs/cli-reference.md lists the commands that there are."""

from __future__ import annotations

import re

from penstock.cli.lazy import PLACES
from penstock.cli.reference import COMMON, PAGE, fill


def test_the_reference_is_as_the_commands_say() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert fill(page) == page, "run `python -m penstock.cli.reference`"
    sections = re.findall(r"^## (\w+)", page, re.MULTILINE)
    assert set(sections) == PLACES.keys()


def test_what_is_common_to_commands_is_said_once() -> None:
    intro = PAGE.with_name("cli.md").read_text(encoding="utf-8").partition("## ")[0]
    assert all(name in intro for name in COMMON)
