"""Bytecode of what a mesh imports is there after the setup, also where Python may write none."""

from __future__ import annotations

import os
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from penstock.setup import bytecode


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of packages with one module, that a mesh imports beside one that is missing."""
    made = tmp_path / "packages"
    made.mkdir()
    (made / "imported.py").write_text("VALUE = 1\n", encoding="utf-8")
    monkeypatch.setattr(bytecode, "_MODULES", ("missing_module", "imported"))
    monkeypatch.setattr(bytecode.sysconfig, "get_path", lambda name: str(made))
    monkeypatch.setenv("PYTHONPATH", str(made))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    monkeypatch.setenv("PENSTOCK_CACHE_DIR", str(tmp_path / "cache"))
    return made


def test_what_is_imported_is_compiled_although_no_import_may_write(packages: Path) -> None:
    bytecode.compile_imports()
    assert Path(cache_from_source(str(packages / "imported.py"))).exists()


def test_it_is_done_once_for_what_is_installed(packages: Path) -> None:
    bytecode.compile_imports()
    compiled = Path(cache_from_source(str(packages / "imported.py")))
    compiled.unlink()
    bytecode.compile_imports()
    assert not compiled.exists()
    changed = packages.stat().st_mtime_ns + 10**9
    os.utime(packages, ns=(changed, changed))  # as an installer leaves it
    bytecode.compile_imports()
    assert compiled.exists()
