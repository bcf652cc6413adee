"""The changelog, the notes on upgrading and the distributions speak of the same versions."""

from __future__ import annotations

import itertools
import json
import re
import tomllib

from tests.documents import ROOT


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


VERSION: str = tomllib.loads(read("pyproject.toml"))["project"]["version"]
HEADINGS = re.findall(r"^## (.+)$", read("CHANGELOG.md"), re.MULTILINE)
RELEASES = HEADINGS[1:] if HEADINGS[0] == "Unreleased" else HEADINGS


def test_the_changelog_has_a_section_for_each_version_the_newest_first() -> None:
    numbers = [tuple(int(part) for part in name.split(".")) for name in RELEASES]
    assert all(len(number) == 3 for number in numbers)
    assert all(newer > older for newer, older in itertools.pairwise(numbers))


def test_the_distributions_are_of_the_newest_version() -> None:
    assert RELEASES[0] == VERSION


def test_each_version_has_notes_for_those_who_come_from_the_one_before() -> None:
    steps = re.findall(r"^### (\S+) to (\S+)$", read("docs/upgrading.md"), re.MULTILINE)
    assert steps == [(older, newer) for newer, older in itertools.pairwise(RELEASES)]


def test_the_documents_of_interfaces_name_it() -> None:
    for name in ("docs/openapi.json", "docs/asyncapi.json"):
        assert json.loads(read(name))["info"]["version"] == VERSION, name
