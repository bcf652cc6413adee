"""The site: every page of the documentation is in it, and the pages made of code have what it
has.
"""

from __future__ import annotations

import re

import pytest
import yaml

from deploy.site.reference import PAGES, defined_metrics
from gateway.information.columns import LISTS
from tests.documents import ROOT

_ROUTE = re.compile(r"web\.(?:get|post|delete)\(\s*\"(/[^\"]*)\"")
#: paths between gateways
_INTERNAL = {"/v1/internal/statement"}


def _navigation() -> set[str]:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    config = yaml.safe_load(text.replace("!!python/name:", ""))
    return set(re.findall(r"[\w./-]+\.md", str(config["nav"])))


def test_every_page_has_a_place_in_the_navigation() -> None:
    pages = {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")}
    decisions = {page for page in pages if page.startswith("decisions/0")}
    assert pages - decisions <= _navigation()
    assert set(PAGES) <= _navigation()


def test_every_list_and_metric_is_described() -> None:
    assert all(f"## {name}\n" in PAGES["reference/information-schema.md"]() for name in LISTS)
    metrics = list(defined_metrics())
    assert {m.name for m in metrics} >= {"penstock_lease_held", "penstock_epochs"}
    assert all(m.help for m in metrics)


@pytest.mark.parametrize("name", ["connect", "Connection.query", "Writer.write", "Result.to_arrow"])
def test_the_client_is_described_from_its_docstrings(name: str) -> None:
    heading = f"{'###' if '.' in name else '##'} {name}\n"
    _, found, rest = PAGES["reference/python.md"]().partition(heading)
    assert found and not rest.lstrip().startswith("#")


def test_every_route_of_the_gateway_is_on_the_page() -> None:
    page = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
    for path in sorted((ROOT / "gateway").rglob("*.py")):
        for route in _ROUTE.findall(path.read_text(encoding="utf-8")):
            assert f"{route}`" in page or f"{route}?" in page, f"{path.name}: {route}"
