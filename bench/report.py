"""What a measurement says: one line on the terminal, one JSON line in a file, one row of
bench/RESULTS.md; and what machine it was.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import statistics
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import psutil

from penstock.setup.java import find_java

HERE = Path(__file__).parent
_PACKAGES = ("pyspark", "polars", "pyarrow", "pyruhvro", "confluent-kafka", "duckdb", "aiohttp")


@dataclass(frozen=True)
class Line:
    """One number. `ratio` is value ÷ baseline: above 1 is better for rates, below 1 for times,
    memory and CPU.
    """

    name: str
    value: float
    unit: str
    baseline: float | None = None
    mode: str = "-"
    #: what else is worth knowing, in the JSON and the table's last column
    note: str = ""
    rounds: tuple[float, ...] = ()
    #: load average (1 min) when it was measured
    load: float = 0.0
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        return self.value / self.baseline if self.baseline else None

    def text(self) -> str:
        return (
            f"bench: name={self.name} value={number(self.value)} unit={self.unit} baseline={number(self.baseline)} "
            f"ratio={number(self.ratio)} mode={self.mode}"
        )


def number(value: float | None) -> str:
    """Three digits that mean something."""
    if value is None:
        return "-"
    if abs(value) >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}"


def median_line(name: str, values: Sequence[float], unit: str, **more: Any) -> Line:
    """The median of rounds, which are kept beside it."""
    return Line(
        name, statistics.median(values), unit, rounds=tuple(round(v, 3) for v in values), **more
    )


class LoadSampler:
    """Load average and CPU use while the measurements run: on a busy machine the numbers say
    less.
    """

    def __init__(self, every: float = 5.0) -> None:
        self._every = every
        self._done = threading.Event()
        self.loads: list[float] = []
        self.busy: list[float] = []
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    def start(self) -> LoadSampler:
        psutil.cpu_percent()
        self._thread.start()
        return self

    def _run(self) -> None:
        while not self._done.wait(self._every):
            self.loads.append(os.getloadavg()[0])
            self.busy.append(psutil.cpu_percent())

    def stop(self) -> None:
        self._done.set()
        self._thread.join()


class Recorder:
    """Takes lines as they come; a run that is cut short keeps those it has, and one of some parts
    keeps the lines of the others.
    """

    def __init__(
        self, profile: str, only: str, directory: Path = HERE, *, keep: bool = False
    ) -> None:
        self.profile = profile
        self.only = only
        self._directory = directory
        self.lines: list[Line] = []
        self.problems: list[str] = []
        self.started = datetime.now(UTC)
        self.load_before = os.getloadavg()
        self.sampler = LoadSampler().start()
        path = directory / "results.jsonl"
        self._kept = (
            [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
            if keep and path.exists()
            else []
        )
        # - open for the whole run
        self._file: IO[str] = open(path, "w", encoding="utf-8")  # noqa: SIM115
        self._file.writelines(json.dumps(line) + "\n" for line in self._kept)
        self._file.flush()

    def add(self, *lines: Line) -> None:
        for line in lines:
            line = replace(line, load=round(os.getloadavg()[0], 1))
            self.lines.append(line)
            print(line.text(), flush=True)
            self._file.write(
                json.dumps(
                    {**asdict(line), "ratio": line.ratio, "time": datetime.now(UTC).isoformat()}
                )
                + "\n"
            )
            self._file.flush()

    def _all(self) -> list[Line]:
        """Lines of this run behind those of earlier runs that it has not measured again."""
        fields = set(Line.__dataclass_fields__)
        kept = {k["name"]: Line(**{f: v for f, v in k.items() if f in fields}) for k in self._kept}
        return list((kept | {line.name: line for line in self.lines}).values())

    def problem(self, text: str) -> None:
        """Something that makes numbers wrong or missing; the run ends with an error."""
        self.problems.append(text)
        print(f"bench: problem: {text}", flush=True)

    def close(self) -> None:
        self.sampler.stop()
        self._file.close()
        (self._directory / "RESULTS.md").write_text(self.markdown(), encoding="utf-8")

    def markdown(self) -> str:
        loads = self.sampler.loads or [0.0]
        busy = self.sampler.busy or [0.0]
        memory = psutil.virtual_memory()
        versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in _PACKAGES)
        rows = [
            "# Results of `make bench`",
            "",
            "Written by the bench itself; `bench/README.md` says what each line is and how it is measured.",
            "",
            f"- {self.started:%Y-%m-%d %H:%M} UTC, {(datetime.now(UTC) - self.started).total_seconds() / 60:.0f} min, "
            f"`--profile {self.profile}`{f' {self.only}' if self.only else ''}",
            f"- {os.cpu_count()} cores ({processor()}), {memory.total / 2**30:.0f} GiB memory, {platform.platform()}",
            f"- load average before the run {self.load_before[0]:.1f} (1 min), {self.load_before[2]:.1f} (15 min); during it "
            f"{min(loads):.1f} to {max(loads):.1f}, mean {statistics.fmean(loads):.1f}; CPU busy {statistics.fmean(busy):.0f} % on average",
            f"- Python {platform.python_version()}, Java {find_java().version}, {versions}",
            "",
            "| name | value | unit | baseline | ratio | mode | rounds | load | note |",
            "|---|---:|---|---:|---:|---|---|---:|---|",
        ]
        for line in self._all():
            rounds = " / ".join(number(v) for v in line.rounds) if len(line.rounds) > 1 else ""
            rows.append(
                f"| {line.name} | {number(line.value)} | {line.unit} | {number(line.baseline)} | {number(line.ratio)} | {line.mode} "
                f"| {rounds} | {line.load:g} | {line.note} |"
            )
        if self.problems:
            rows += ["", "Problems of this run:", "", *(f"- {p}" for p in self.problems)]
        notes = self._directory / "NOTES.md"
        if notes.exists():
            rows += ["", notes.read_text(encoding="utf-8").rstrip()]
        return "\n".join(rows) + "\n"


def processor() -> str:
    """The CPU's name as Linux tells it."""
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        return next(
            (line.partition(":")[2].strip() for line in info if line.startswith("model name")),
            platform.machine(),
        )
