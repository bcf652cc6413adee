"""The console's files: what is given out, what is not, and what the vendored ones may weigh."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import tomllib
from pathlib import Path, PurePosixPath

import pytest
from setuptools import glob

from gateway.console.static_files import FOLDERS, StaticFiles, packaged

ROOT = Path(__file__).parents[4]
CONSOLE = ROOT / "gateway" / "console"
MOST_COMPRESSED = 300_000
_IMPORT = re.compile(r'^(?:import|export)[^"]*?from "([^"]+)";|^import "([^"]+)";', re.MULTILINE)
_ELSEWHERE = re.compile(r"https?://[^\s\"'`)]+")


def _page(*, more: dict[str, bytes] | None = None) -> StaticFiles:
    return StaticFiles({"app/index.html": b"<a href=/console/VERSION/app/a.js>", **(more or {})})


def test_the_version_changes_with_every_file_and_its_name() -> None:
    one = _page(more={"app/a.js": b"1"})
    assert one.version == _page(more={"app/a.js": b"1"}).version
    assert one.version != _page(more={"app/a.js": b"2"}).version
    assert one.version != _page(more={"app/b.js": b"1"}).version


def test_the_page_names_the_files_of_its_version() -> None:
    files = _page()
    assert files.page.body == f"<a href=/console/{files.version}/app/a.js>".encode()


def test_what_is_sent_compressed_is_the_file() -> None:
    page = packaged().page
    assert gzip.decompress(page.compressed) == page.body


@pytest.mark.parametrize(
    "name",
    ["", "app", "app/../__init__.py", "../routes.py", "/etc/passwd", "app/core", "routes.py"],
)
def test_nothing_else_is_found(name: str) -> None:
    assert packaged().find(name) is None


def test_every_import_of_a_module_is_a_file_that_is_given_out() -> None:
    files = packaged()
    scripts = [name for name in files.names if name.startswith("app/") and name.endswith(".js")]
    assert "app/main.js" in scripts
    for name in scripts:
        text = (CONSOLE / name).read_text(encoding="utf-8")
        found = [one or other for one, other in _IMPORT.findall(text)]
        for target in found:
            assert target.startswith("."), f"{name} imports {target}, which no browser can resolve"
            assert files.find(_resolve(name, target)) is not None, f"{name} imports {target}"


def _resolve(name: str, target: str) -> str:
    parts: list[str] = []
    for part in (PurePosixPath(name).parent / target).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def test_our_own_files_are_short_and_name_no_other_host() -> None:
    for path in sorted((CONSOLE / "app").rglob("*.*")):
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= 400, path.name
        hosts = [url for url in _ELSEWHERE.findall(text) if "www.w3.org" not in url]
        assert hosts == [], path.name


def test_vendored_files_are_those_of_the_manifest_and_small_enough() -> None:
    vendor = CONSOLE / "vendor"
    manifest = json.loads((vendor / "manifest.json").read_text(encoding="utf-8"))
    bodies = {entry["file"]: (vendor / entry["file"]).read_bytes() for entry in manifest["files"]}
    assert {path.name for path in vendor.glob("*.js")} == bodies.keys()
    for entry in manifest["files"]:
        assert hashlib.sha256(bodies[entry["file"]]).hexdigest() == entry["sha256"], entry["file"]
    assert sum(len(gzip.compress(body)) for body in bodies.values()) <= MOST_COMPRESSED


def test_every_vendored_package_has_a_version_and_its_licence() -> None:
    vendor = CONSOLE / "vendor"
    manifest = json.loads((vendor / "manifest.json").read_text(encoding="utf-8"))
    licences = (vendor / "LICENSES.txt").read_text(encoding="utf-8")
    wanted = json.loads((ROOT / ".ci/console/package.json").read_text(encoding="utf-8"))
    packages = [package for entry in manifest["files"] for package in entry["packages"]]
    versions = {package["name"]: package["version"] for package in packages}
    assert wanted["dependencies"].items() <= versions.items()
    for package in packages:
        line = f"{package['name']} {package['version']} ({package['license']})"
        assert line in licences
        assert package["license"] in ("MIT", "Apache-2.0", "ISC", "BSD-3-Clause", "0BSD"), line


def test_wheels_hold_every_file() -> None:
    config = tomllib.loads((ROOT / "deploy/mesh/pyproject.toml").read_text(encoding="utf-8"))
    patterns = config["tool"]["setuptools"]["package-data"]["penstock_mesh.gateway.console"]
    packed = {
        Path(found).relative_to(CONSOLE).as_posix()
        for pattern in patterns
        for found in glob.glob(str(CONSOLE / pattern), recursive=True)
    }
    there = {
        path.relative_to(CONSOLE).as_posix()
        for folder in FOLDERS
        for path in (CONSOLE / folder).rglob("*")
        if path.is_file()
    }
    assert there <= packed
