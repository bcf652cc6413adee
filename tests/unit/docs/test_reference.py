"""What the documentation lists is what the code has: generated tables, error codes, settings."""

from __future__ import annotations

import re

import pytest

from gateway.http import STATUS
from gateway.settings import GatewaySettings
from penstock.config.settings import Settings
from penstock.errors import ConfigError
from penstock.sql.planning.refusals import REFUSALS
from penstock.sql.reference import DOCS, PAGES, fill
from services.federation.settings import FederationSettings
from services.notifier.settings import NotifierSettings
from services.snode.settings import SnodeSettings
from services.store.settings import StoreSettings
from services.tables.settings import TablesSettings
from spark_jobs.settings import SparkSettings
from tests.documents import ROOT

SERVICES = (
    GatewaySettings,
    SparkSettings,
    StoreSettings,
    NotifierSettings,
    FederationSettings,
    SnodeSettings,
    TablesSettings,
)
PACKAGES = ("penstock", "gateway", "spark_jobs", "services")
#: parts of codes that are put together
_PREFIXES = {"E_", "E_STATE_", "E_EVENT_", "E_COUNT_"}


@pytest.mark.parametrize("name", PAGES)
def test_tables_are_as_the_code_makes_them(name: str) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")
    assert fill(page) == page, "run `python -m penstock.sql.reference`"


def test_sections_are_known_and_closed() -> None:
    with pytest.raises(ConfigError, match="section nonsense"):
        fill("<!-- nonsense -->\n<!-- /nonsense -->")
    with pytest.raises(ConfigError, match="not closed"):
        fill("<!-- scalars -->\n")


def test_every_code_is_documented_and_no_other() -> None:
    used: set[str] = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            used |= set(re.findall(r'["\'](E_[A-Z0-9_]+)', path.read_text(encoding="utf-8")))
    documented = set(
        re.findall(r"`(E_[A-Z0-9_]+)`", (DOCS / "errors.md").read_text(encoding="utf-8"))
    )
    assert documented == used - _PREFIXES
    assert STATUS.keys() | REFUSALS.keys() <= documented


def test_documented_status_is_the_gateways() -> None:
    page = (DOCS / "errors.md").read_text(encoding="utf-8")
    shown = {
        code: int(status)
        for codes, status in re.findall(r"^\| (`E_[^|]*) \| (\d+) \|", page, re.MULTILINE)
        for code in re.findall(r"E_\w+", codes)
    }
    wrong = {
        code: (status, STATUS[code])
        for code, status in shown.items()
        if STATUS.get(code, status) != status
    }
    assert len(shown) > 40
    assert not wrong


def test_every_setting_is_documented_and_no_other() -> None:
    wanted = {f"PENSTOCK_{name.upper()}" for name in Settings.model_fields}
    for service in SERVICES:
        own = [
            name
            for name in vars(service).get("__annotations__", {})
            if name in service.model_fields
        ]
        wanted |= {f"PENSTOCK_{service.service.upper()}_{name.upper()}" for name in own}
    page = (DOCS / "operations.md").read_text(encoding="utf-8").partition("### Shared")[2]
    assert set(re.findall(r"^\| `(PENSTOCK_\w+)` \|", page, re.MULTILINE)) == wanted
