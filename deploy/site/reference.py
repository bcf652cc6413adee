"""Pages of the site that are made from the code: the Python client, `information_schema`,
metrics.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import penstock
from gateway.information.columns import LISTS

ROOT = Path(__file__).parents[2]
_PACKAGES = ("penstock", "gateway", "spark_jobs", "services")
_KINDS = ("Counter", "Gauge", "Histogram", "Summary")


class Metric(NamedTuple):
    """A metric as the code defines it."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...]
    package: str


def python() -> str:
    """Return the page of everything that `penstock` exports."""
    parts = [
        "# Python\n",
        "All public names of the package, from their docstrings. [The client](../client.md) shows"
        " how they go together.\n",
    ]
    for name in penstock.__all__:
        thing = getattr(penstock, name)
        parts += _class(name, thing) if inspect.isclass(thing) else _function(f"## {name}", thing)
    return "\n".join(parts)


def _class(name: str, kind: type) -> Iterator[str]:
    yield f"## {name}\n"
    yield _docstring(kind)
    for member, value in vars(kind).items():
        if member.startswith("_"):
            continue
        if isinstance(value, property):
            yield f"### {name}.{member}\n"
            yield _docstring(value)
        elif inspect.isfunction(value) or isinstance(value, classmethod | staticmethod):
            yield from _function(f"### {name}.{member}", getattr(kind, member))


def _function(heading: str, function: Callable[..., Any]) -> Iterator[str]:
    yield f"{heading}\n"
    yield f"```text\n{function.__name__}{_signature(function)}\n```\n"
    yield _docstring(function)


def _signature(function: Callable[..., Any]) -> str:
    # annotations are texts, which come in quotes
    return str(inspect.signature(function)).replace("'", "")


def _docstring(thing: object) -> str:
    return (inspect.getdoc(thing) or "").replace("<", "&lt;") + "\n"


def information_schema() -> str:
    """Return the page of the tables of `information_schema`."""
    parts = [
        "# information_schema\n",
        "What there is, as tables: each user sees what is theirs. `SHOW …` gives the same lists.\n",
    ]
    for name, columns in LISTS.items():
        parts += [f"## {name}\n", _table(("column", "type"), columns)]
    return "\n".join(parts)


def metrics() -> str:
    """Return the page of all metrics."""
    rows = [
        (f"`{m.name}`", m.kind.lower(), ", ".join(m.labels), m.help, m.package)
        for m in sorted(set(defined_metrics()))
    ]
    head = ("metric", "kind", "labels", "what it is", "where")
    return (
        "# Metrics\n\nEvery service has `/metrics` on its health port"
        " ([monitoring](../monitoring.md)).\n\n" + _table(head, rows)
    )


def defined_metrics() -> Iterator[Metric]:
    """Yield every metric that the code defines with a name of its own."""
    for package in _PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and _is_metric(node):
                    yield _metric(node, str(path.parent.relative_to(ROOT)))


def _is_metric(call: ast.Call) -> bool:
    name = getattr(call.func, "id", "")
    texts = [a for a in call.args[:2] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    return name in _KINDS and len(texts) == 2


def _metric(call: ast.Call, package: str) -> Metric:
    name, text = (ast.literal_eval(argument) for argument in call.args[:2])
    labels = call.args[2:3] or [k.value for k in call.keywords if k.arg == "labelnames"]
    words = [
        element.value
        for given in labels
        for element in getattr(given, "elts", [])
        if isinstance(element, ast.Constant)
    ]
    return Metric(name, call.func.id, text, tuple(words), package)  # type: ignore[attr-defined]


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


#: page of the site → what makes it
PAGES: dict[str, Callable[[], str]] = {
    "reference/python.md": python,
    "reference/information-schema.md": information_schema,
    "reference/metrics.md": metrics,
}
