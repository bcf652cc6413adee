"""ARCHITECTURE, docs/services.md, docs/security.md and docs/what-happens-when.md name the tests that
hold their promises; `test_links.py` holds that these exist.
"""

from __future__ import annotations

import re

import pytest

from tests.documents import ROOT

_PAGES = ("ARCHITECTURE.md", "docs/services.md")
_SECTIONS = {
    (page, s.partition("\n")[0].strip("# ")): s.partition("\n")[2]
    for page in _PAGES
    for s in re.split(r"^(?=##+ )", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)[
        1:
    ]
}
_PROMISES = ("*Gives*", "*After a crash*", "- ")
#: in front of a list, which names them
_HEAD = re.compile(r"\*Gives\*:\n- ")


def promises(text: str) -> list[str]:
    """Paragraphs and items of lists that promise something."""
    paragraphs = [_HEAD.sub("- ", p.strip()) for p in re.split(r"\n\s*\n", text)]
    return [
        item for p in paragraphs for item in re.split(r"\n(?=- )", p) if item.startswith(_PROMISES)
    ]


@pytest.mark.parametrize(
    "section", [s for s, text in _SECTIONS.items() if promises(text)], ids="#".join
)
def test_each_promise_names_its_test(section: tuple[str, str]) -> None:
    assert not [p for p in promises(_SECTIONS[section]) if "tests/" not in p]


def test_promises_are_found() -> None:
    services = {
        "gateway",
        "spark_jobs",
        "services/store",
        "services/notifier",
        "services/snode",
        "services/federation",
        "services/tables",
    }
    for service in services:
        found = promises(_SECTIONS["docs/services.md", service])
        assert {p.partition(":")[0] for p in found if p[0] == "*"} == {
            "*Gives*",
            "*After a crash*",
        }, service
    assert sum(len(promises(text)) for text in _SECTIONS.values()) > 40


_SECURITY = (ROOT / "docs/security.md").read_text(encoding="utf-8")
_SECURITY_SECTIONS = {
    s.partition("\n")[0]: s.partition("\n")[2]
    for s in re.split(r"^## ", _SECURITY, flags=re.MULTILINE)[1:]
}
#: a file of tests, and perhaps one test in it
_TEST = re.compile(r"`(tests/[\w/]+(?:\.py)?)(?:::(\w+))?`")
#: a test may also be named alone, when that says enough to find it
_ANY_TEST = re.compile(r"`(?:tests/[\w/]+(?:\.py)?(?:::\w+)?|test_\w+)`")
#: paragraphs that promise nothing: they say what follows, or what is not defended
_NO_PROMISE = ("These make the mesh connect", "What each attacker can do", "Not defended:")
#: who may do everything: nothing is promised
_ALMIGHTY = "| root of the machine"


@pytest.mark.parametrize("section", _SECURITY_SECTIONS)
def test_each_section_about_security_names_its_tests(section: str) -> None:
    assert _TEST.search(_SECURITY_SECTIONS[section])


def test_each_paragraph_about_security_names_its_tests() -> None:
    prose = re.sub(r"^```.*?^```$", "", "\n".join(_SECURITY_SECTIONS.values()), flags=re.S | re.M)
    items = [
        item
        for paragraph in re.split(r"\n\s*\n", prose)
        for item in re.split(r"\n(?=- )", paragraph.strip())
        if item and not item.startswith(("|", "#", *_NO_PROMISE))
    ]
    assert len(items) > 20
    assert [item for item in items if not _ANY_TEST.search(item)] == []


def test_each_attacker_meets_each_asset_and_names_the_tests() -> None:
    head, _, *attackers = [
        line for line in _SECURITY_SECTIONS["Threat model"].splitlines() if line.startswith("|")
    ]
    assert len(attackers) > 10
    for line in attackers:
        assert line.count("|") == head.count("|"), line
        assert all(cell.strip() for cell in line.split("|")[1:-2]), line
        assert line.startswith(_ALMIGHTY) or _TEST.search(line.split("|")[-2]), line


_WHEN = (ROOT / "docs/what-happens-when.md").read_text(encoding="utf-8")
#: a line of its tables: when, what happens, and one test
_LINE = re.compile(r"^\| [^|]+ \| [^|]+ \| `tests/[\w/]+\.py::test_\w+` \|$")


def test_each_line_of_what_happens_when_names_one_test() -> None:
    lines = [
        line
        for line in _WHEN.splitlines()
        if line.startswith("|") and not line.startswith(("| when |", "|---"))
    ]
    assert len(lines) > 30
    assert [line for line in lines if not _LINE.match(line)] == []
