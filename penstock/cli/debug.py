"""penstock debug bundle: one file for whoever helps."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import app
from penstock.cli.gateway import connection
from penstock.cli.options import DATA_DIR, DataDir
from penstock.cli.service_metrics import health_ports, read_metrics
from penstock.errors import ConfigError, PenstockError
from penstock.mesh.layout import Layout
from penstock.mesh.state import read_state

if TYPE_CHECKING:
    from penstock.cli.bundle import Redactor
    from penstock.client.connection import Connection

commands = typer.Typer(help="For whoever has to find a fault.", no_args_is_help=True)
app.add_typer(commands, name="debug")

#: bytes of the end of each log
_LOG_BYTES = 4 << 20
#: files of `logs/` that say who did what
_LEFT_OUT = "audit"
#: what the gateway is asked: no rows of tables, and no values of dead letters
_QUESTIONS = {
    "databases": "SELECT * FROM information_schema.ins_databases",
    "streams": "SELECT * FROM information_schema.ins_streams",
    "stream_tasks": "SELECT * FROM information_schema.ins_stream_tasks",
    "views": "SELECT * FROM information_schema.ins_views",
    "nodes": "SHOW DNODES",
    "variables": "SHOW VARIABLES",
    "dead_letters": (
        "SELECT time, topic, reader, stream_name, code, reason"
        " FROM information_schema.ins_dead_letters ORDER BY time DESC LIMIT 200"
    ),
}


@commands.callback()
def debug() -> None:
    """Be a group with one command, too."""


@commands.command()
def bundle(
    out: Annotated[
        Path | None, typer.Option(help="the file to write; default: penstock-bundle-<time>.tar.gz")
    ] = None,
    data_dir: DataDir = DATA_DIR,
) -> None:
    """Pack logs, settings, status, versions and metrics into a tar.gz for whoever helps.

    Passwords, keys and tokens of the mesh are not in it, nor are rows. Logs name tables, users and
    statements: look into it before you give it away. The mesh need not run.

    Example: penstock debug bundle --out bundle.tar.gz
    """
    from penstock.cli.bundle import Redactor, pack, secrets_of

    layout = Layout(data_dir.expanduser().absolute())
    if not layout.root.exists():
        raise ConfigError(f"there is nothing in {layout.root}", hint="--data-dir names a mesh")
    now = time.time()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    path = out or Path(f"penstock-bundle-{stamp}.tar.gz")
    state = read_state(layout)
    settings = {n: v for n, v in os.environ.items() if n.startswith("PENSTOCK_")}
    running = {} if state is None else {n: str(v) for n, v in state["settings"].items()}
    redactor = Redactor(secrets_of(layout.secrets, {**os.environ, **running}))
    files = {
        "versions.txt": _versions(),
        "machine.txt": _machine(layout),
        "settings.txt": redactor.settings(settings),
        "status.json": json.dumps(_status(state, redactor), indent=2),
        **_logs(layout),
        **(_metrics(layout, state) if state is not None else {}),
        **(_answers(data_dir) if state is not None else {}),
    }
    data = pack(files, redactor, now)
    path.touch(mode=0o600)
    path.write_bytes(data)
    print(f"{path}: {len(files)} files, {len(data) / 1e6:.1f} MB")


def _versions() -> str:
    """Return versions of Python, the system, and of what is installed beside Penstock."""
    names = sorted(
        {f"{d.metadata['Name']} {d.version}" for d in importlib.metadata.distributions()},
        key=str.lower,
    )
    return "\n".join([f"Python {platform.python_version()}", platform.platform(), *names, ""])


def _machine(layout: Layout) -> str:
    usage = shutil.disk_usage(layout.root)
    memory = re.findall(r"^Mem(?:Total|Available):.*", _read(Path("/proc/meminfo")), re.MULTILINE)
    return "\n".join(
        [
            f"cores {os.cpu_count()}",
            f"load {os.getloadavg()}",
            f"disk {usage.free / 1e9:.1f} GB of {usage.total / 1e9:.1f} GB free",
            *memory,
            *_sizes(layout.root),
            "",
        ]
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _sizes(root: Path) -> list[str]:
    """Return how much each directory of the data directory holds."""
    found = []
    for directory in sorted(p for p in root.iterdir() if p.is_dir()):
        sizes = [p.lstat().st_size for p in directory.rglob("*") if p.is_file()]
        found.append(f"{directory.name}/ {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB")
    return found


def _status(state: dict[str, Any] | None, redactor: Redactor) -> dict[str, Any]:
    if state is None:
        return {"running": False}
    settings = redactor.settings({n: str(v) for n, v in state["settings"].items()})
    return {**state, "running": True, "settings": settings.splitlines()}


def _logs(layout: Layout) -> dict[str, str]:
    """Return the end of each log."""
    found = {}
    for path in sorted(layout.logs.glob("*.log")):
        if path.stem == _LEFT_OUT:
            continue
        with open(path, "rb") as file:
            file.seek(max(path.stat().st_size - _LOG_BYTES, 0))
            found[f"logs/{path.name}"] = file.read().decode(errors="replace")
    return found


def _metrics(layout: Layout, state: dict[str, Any]) -> dict[str, str]:
    key = layout.metrics_key.read_text(encoding="utf-8").strip()
    found = {name: read_metrics(port, key) for name, port in health_ports(state).items()}
    return {f"metrics/{name}.txt": text for name, text in found.items() if text}


def _answers(data_dir: Path) -> dict[str, str]:
    """Return what the gateway says of the mesh; why not, where it says nothing."""
    try:
        with connection(data_dir, None, "root", None, timeout=10.0) as client:
            return {f"{name}.ndjson": _answer(client, sql) for name, sql in _QUESTIONS.items()}
    except PenstockError as error:
        return {"gateway.txt": f"{error}\n"}


def _answer(client: Connection, sql: str) -> str:
    from penstock.cli.output import objects

    try:
        return "\n".join(objects(client.query(sql).table)) + "\n"
    except PenstockError as error:
        return f"{error}\n"
