"""Nothing that comes over a network is unpickled or evaluated: no service imports what could."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FORBIDDEN = {
    "pickle",
    "cPickle",
    "cloudpickle",
    "dill",
    "shelve",
    "marshal",
    "joblib",
    "jsonpickle",
}
CALLS = {"eval", "exec", "compile"}
#: files that may, and why
EXCUSED: dict[str, str] = {
    "penstock/udf/child.py": "runs functions, which is what the FUNCTION right is for, in a confined process of their own",
}
FILES = sorted(
    p
    for package in ("schemas", "penstock", "gateway", "spark_jobs", "services")
    for p in (ROOT / package).rglob("*.py")
)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_service_can_unpickle(path: Path) -> None:
    name = str(path.relative_to(ROOT))
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {a.name.partition(".")[0] for a in node.names} & FORBIDDEN
        elif isinstance(node, ast.ImportFrom):
            found |= {(node.module or "").partition(".")[0]} & FORBIDDEN
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS
        ):
            found.add(node.func.id)
        elif (
            isinstance(node, ast.keyword)
            and node.arg == "allow_pickle"
            and not (isinstance(node.value, ast.Constant) and node.value.value is False)
        ):
            found.add("allow_pickle")
    assert not found or name in EXCUSED, found
