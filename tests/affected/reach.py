"""Which tests a change can break: those that reach a changed file over imports, nearest first.

The import graph of the sources is that of `lint-imports`. A test reaches what its text names: its
imports, and also modules in strings, because tests patch by name and start processes. A test that
opens files of the checkout reaches the files and folders that it names.

Does not know what a test loads by a name that it puts together. CI runs all tests.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import grimp

PACKAGES = ("schemas", "penstock", "gateway", "spark_jobs", "services")
#: where tests and what they share live
TESTS = "tests"
UNIT = "tests/unit/"
#: what the whole environment depends on
_ENVIRONMENT = ("pyproject.toml", "requirements.lock", "requirements-uv.lock")
_IMPORT = re.compile(r"\bfrom +(\.*)([\w.]*) +import +(\([^)]*\)|[^\n;]+)")
_PLAIN_IMPORT = re.compile(r"\bimport +(\w+)")
_DOTTED = re.compile(r"\b[A-Za-z]\w*(?:\.\w+)+")
_WORD = re.compile(r"\w+")
_OPENS_FILES = re.compile(r"\b(__file__|ROOT|CHECKOUT)\b|resources\.files")
_QUOTED = re.compile(r"[\"']([\w./*-]+)[\"']")

Edges = Mapping[str, set[str]]


@dataclass(frozen=True)
class TestModule:
    """A Python file of `tests/`, what it imports and the files that it names."""

    path: str
    imports: frozenset[str]
    files: tuple[str, ...]

    @property
    def is_test(self) -> bool:
        return self.path.startswith(UNIT) and PurePosixPath(self.path).name.startswith("test_")

    def reads(self, path: str) -> bool:
        """Return whether the test names the file, a folder above it, or a pattern that it fits."""
        return any(_fits(name, path) for name in self.files)


def _fits(name: str, path: str) -> bool:
    if "*" in name:
        # a pattern without a letter, such as "*", says nothing about files
        file_name = PurePosixPath(path).name
        return name.strip("*./") != "" and (fnmatch(path, name) or fnmatch(file_name, name))
    if path == name or path.startswith(name.rstrip("/") + "/"):
        return True
    return "." in name and path.endswith("/" + name)


class Reach:
    """The modules of a checkout and who imports them."""

    def __init__(self, sources: Edges, tests: Mapping[str, TestModule]) -> None:
        self._tests = tests
        self._known = {*sources, *tests}
        self._importers: dict[str, set[str]] = defaultdict(set)
        for module, imported in sources.items():
            for name in _with_packages({*imported, *_packages(module)}):
                self._importers[name].add(module)
        for module, test in tests.items():
            for name in test.imports:
                self._importers[name].add(module)

    @property
    def test_files(self) -> list[str]:
        """All files of unit tests, in order."""
        return sorted(test.path for test in self._tests.values() if test.is_test)

    def steps_to(self, paths: Iterable[str]) -> dict[str, int]:
        """Return the files of unit tests that reach any of *paths*, with the steps between."""
        begin = {module for path in paths for module in self._first(path)}
        steps: dict[str, int] = {}
        count = 0
        while begin:
            steps.update(dict.fromkeys(begin, count))
            importers = set[str]().union(*(self._importers[module] for module in begin))
            begin = importers - steps.keys()
            count += 1
        return {
            self._tests[module].path: distance
            for module, distance in steps.items()
            if module in self._tests and self._tests[module].is_test
        }

    def _first(self, path: str) -> set[str]:
        """Return the modules that a change of *path* touches at once."""
        if path in _ENVIRONMENT:
            return set(self._tests)
        readers = {module for module, test in self._tests.items() if test.reads(path)}
        place = PurePosixPath(path)
        if place.name == "conftest.py":
            return readers | self._below(place.parent)
        if place.suffix == ".py":
            return readers | {module_name(path)}
        # a page is read by people, and by the tests that name it
        return readers if place.suffix == ".md" else readers | self._beside(place.parent)

    def _below(self, folder: PurePosixPath) -> set[str]:
        return {
            module
            for module, test in self._tests.items()
            if folder in PurePosixPath(test.path).parents
        }

    def _beside(self, folder: PurePosixPath) -> set[str]:
        """Return the modules of the nearest folder that has some: data belong to them."""
        for place in (folder, *folder.parents):
            name = ".".join(place.parts)
            beside = {module for module in self._known if module.rpartition(".")[0] == name}
            if name in self._known:
                beside.add(name)
            if name and beside:
                return beside
        return set()


def read(root: Path) -> Reach:
    """Read the imports of the checkout at *root*; its packages must be importable."""
    graph = grimp.build_graph(
        *PACKAGES,
        exclude_type_checking_imports=True,
        cache_dir=str(root / ".import_linter_cache"),
    )
    sources = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    return Reach(sources, read_tests(root, set(sources)))


def read_tests(root: Path, sources: set[str]) -> dict[str, TestModule]:
    """Return the modules under `tests/`, by name. *sources* are the other modules there are."""
    texts = {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted((root / TESTS).rglob("*.py"))
    }
    known = sources | {module_name(path) for path in texts}
    return {module_name(path): _test_module(path, text, known) for path, text in texts.items()}


def module_name(path: str) -> str:
    """Return the name that a Python file is imported under."""
    return ".".join(PurePosixPath(path).with_suffix("").parts).removesuffix(".__init__")


def _test_module(path: str, text: str, known: set[str]) -> TestModule:
    named = {*_DOTTED.findall(text), *_PLAIN_IMPORT.findall(text)}
    for dots, module, names in _IMPORT.findall(text):
        parent = _absolute(path, dots, module)
        named |= {parent, *(f"{parent}.{name}" for name in _WORD.findall(names))}
    imports = _with_packages(named) & known
    files = tuple(_QUOTED.findall(text)) if _OPENS_FILES.search(text) else ()
    return TestModule(path, frozenset(imports), files)


def _absolute(path: str, dots: str, module: str) -> str:
    if not dots:
        return module
    package = PurePosixPath(path).parts[: -len(dots)]
    return ".".join((*package, module)).rstrip(".")


def _with_packages(modules: set[str]) -> set[str]:
    return modules.union(*map(_packages, modules))


def _packages(module: str) -> list[str]:
    """Return the packages that a module lies in: importing it imports them, too."""
    parts = module.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]
