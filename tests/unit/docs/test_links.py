"""What the documentation points at exists: files, headings, and the tests that hold each
promise.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.documents import ROOT

PAGES = [
    p
    for pattern in ("*.md", "docs/**/*.md", "gateway/*.md", "spark_jobs/*.md", "services/*/*.md")
    for p in sorted(ROOT.glob(pattern))
]
_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
_TEST = re.compile(r"(tests/[\w/]+\.(?:py|txt|json))(?:::(\w+))?")
_FILE = re.compile(
    r"`((?:penstock|gateway|spark_jobs|services|schemas|tests|docs|bench)/[\w/.-]+\.\w+)`"
)
#: a test by its name alone, which says enough to find it
_NAME = re.compile(r"`(test_\w+)`")
_CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def _anchors(page: Path) -> set[str]:
    headings = re.findall(
        r"^#+ (.*)$", _CODE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@cache
def _test_names() -> frozenset[str]:
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    return frozenset(
        name for text in texts for name in re.findall(r"^(?:async )?def (test_\w+)", text, re.M)
    )


@pytest.mark.parametrize("page", PAGES, ids=[str(p.relative_to(ROOT)) for p in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    for target, anchor in _LINK.findall(text):
        if "://" in target:
            continue
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in _anchors(found), f"{page.name} links to {target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=[str(p.relative_to(ROOT)) for p in PAGES])
def test_files_and_tests_that_are_named_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for path, name in _TEST.findall(text):
        file = ROOT / path
        assert file.exists(), f"{page.name} names {path}"
        assert not name or re.search(rf"def {name}\b", file.read_text(encoding="utf-8")), (
            f"{page.name} names {path}::{name}"
        )
    assert set(_NAME.findall(text)) <= _test_names()
    for path in _FILE.findall(text):
        assert (ROOT / path).exists() or path == "bench/RESULTS.md", f"{page.name} names {path}"
