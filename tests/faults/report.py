"""The table of scenarios and checks with recovery times: as text, and into docs/faults.md."""

from __future__ import annotations

import re

from tests.documents import ROOT

PAGE = ROOT / "docs/faults.md"
_SIGNS = {"passed": "ok", "skipped": "skipped", "failed": "FAILED"}


class Report:
    """Rows by scenario; a column a check."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, str]] = {}
        self._times: dict[str, tuple[float, float]] = {}

    def outcome(self, scenario: str, check: str, outcome: str) -> None:
        self.rows.setdefault(scenario, {})[check] = _SIGNS.get(outcome, outcome)

    def recovered(self, scenario: str, seconds: float, limit: float) -> None:
        self._times[scenario] = (seconds, limit)

    def text(self) -> str:
        checks = list(dict.fromkeys(c for row in self.rows.values() for c in row))
        lines = [f"| scenario | recovered | promised | {' | '.join(checks)} |", f"|---|---|---|{'---|' * len(checks)}"]
        for scenario, row in self.rows.items():
            seconds, limit = self._times.get(scenario, (float("nan"), float("nan")))
            cells = " | ".join(row.get(c, "") for c in checks)
            lines.append(f"| {scenario} | {seconds:.1f} s | {limit:.0f} s | {cells} |")
        return "\n".join(lines) + "\n"

    def record(self, section: str = "streams") -> None:
        """Replace the table in the page, between its markers."""
        page = PAGE.read_text(encoding="utf-8")
        marked = re.compile(rf"(<!-- {section} -->\n).*?(<!-- /{section} -->)", re.DOTALL)
        PAGE.write_text(marked.sub(lambda m: f"{m[1]}\n{self.text()}\n{m[2]}", page), encoding="utf-8")
