"""The table of scenarios and checks with recovery times: as text, and into docs/faults.md."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tests.documents import ROOT

PAGE = ROOT / "docs/faults.md"
_HEAD = ["scenario", "recovered", "promised"]
_SIGNS = {"passed": "ok", "skipped": "skipped", "failed": "FAILED"}


class Report:
    """Rows by scenario; a column a check."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, str]] = {}
        self._times: dict[str, tuple[float, float]] = {}
        self._took: dict[str, float] = {}

    def outcome(self, scenario: str, check: str, outcome: str) -> None:
        self.rows.setdefault(scenario, {})[check] = _SIGNS.get(outcome, outcome)

    def recovered(self, scenario: str, seconds: float, limit: float) -> None:
        self._times[scenario] = (seconds, limit)

    def took(self, scenario: str, seconds: float) -> None:
        """From the first table that a scenario makes to the last that it drops: what the suite's
        time is made of.
        """
        self._took[scenario] = seconds

    def text(self) -> str:
        times = [f"{name}: {seconds:.0f} s" for name, seconds in self._took.items()]
        whole = f"\nplayed in {sum(self._took.values()) / 60:.1f} min: {', '.join(times)}\n"
        return _table([_HEAD + self._checks(), *self._lines().values()]) + whole

    def record(self, order: Iterable[str], section: str = "streams") -> None:
        """Put what was seen into the page's table, between its markers; scenarios of *order* that
        were not played keep their lines.
        """
        page = PAGE.read_text(encoding="utf-8")
        marked = re.compile(rf"(<!-- {section} -->\n)(.*?)(<!-- /{section} -->)", re.DOTALL)
        found = marked.search(page)
        assert found is not None
        head, *old = [
            [c.strip() for c in line.strip("|").split("|")]
            for line in found[2].split("\n")
            if line.startswith("| ")
        ]
        lines = self._lines()
        if head == _HEAD + self._checks():
            lines = {cells[0]: cells for cells in old} | lines
        table = _table([_HEAD + self._checks(), *(lines[name] for name in order if name in lines)])
        PAGE.write_text(
            page[: found.start()] + f"{found[1]}\n{table}\n{found[3]}" + page[found.end() :],
            encoding="utf-8",
        )

    def _checks(self) -> list[str]:
        return list(dict.fromkeys(c for row in self.rows.values() for c in row))

    def _lines(self) -> dict[str, list[str]]:
        """The cells of each scenario that was played."""
        found = {}
        for scenario, row in self.rows.items():
            seconds, limit = self._times.get(scenario, (float("nan"), float("nan")))
            found[scenario] = [
                scenario,
                f"{seconds:.1f} s" + (", **misses**" if seconds > limit else ""),
                f"{limit:.0f} s",
                *(row.get(c, "") for c in self._checks()),
            ]
        return found


def _table(lines: list[list[str]]) -> str:
    head, *rest = [f"| {' | '.join(cells)} |" for cells in lines]
    return "\n".join([head, "|" + "---|" * len(lines[0]), *rest]) + "\n"
