"""What `penstock doctor` finds: what is wrong with a mesh, and what to do."""

from __future__ import annotations

import os
import resource
import shutil
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from penstock import bus, names
from penstock.cli.gateway import connection
from penstock.client.connection import Connection
from penstock.config.settings import Settings
from penstock.errors import PenstockError
from penstock.mesh import doctor, kafka
from penstock.mesh.doctor import Finding
from penstock.mesh.layout import Layout
from penstock.mesh.state import read_state

_MARKS = {"ok": "[green]ok  [/]", "look": "[yellow]look[/]", "bad": "[red]bad [/]"}


def examine(layout: Layout, *, quiet: bool) -> bool:
    """Print what is found in the mesh of *layout*; True when nothing has to be done.

    Args:
        layout: of the mesh, which may run or not.
        quiet: leave out what is in order.
    """
    settings = Settings.load(data_dir=layout.root)
    state = read_state(layout)
    # of a mesh that runs here its own settings count; what it keeps elsewhere is in the environment
    running = {} if state is None else state["settings"]
    security = running.get("PENSTOCK_KAFKA_SECURITY", settings.kafka_security)
    findings = doctor.services(state)
    if layout.root.exists():
        usage = shutil.disk_usage(layout.root)
        findings += doctor.disk(str(layout.root), usage.free, usage.total)
    findings += doctor.secrets(_modes(layout.secrets))
    findings += doctor.open_files(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    findings += doctor.exposure(
        [settings.host, *_hosts_of_services()],
        tls=settings.tls_cert is not None,
        password=_password(settings, layout),
        broker_asks=security != "PLAINTEXT",
        embedded_broker=state is not None and "kafka" in state["services"],
    )
    if state is not None and state["ready"]:
        options = (
            kafka.options(running)
            if "PENSTOCK_KAFKA_SECURITY" in running
            else settings.kafka_options
        )
        findings += _ask_mesh(layout, options, running["PENSTOCK_KAFKA_BOOTSTRAP"])
    _print(findings, quiet=quiet)
    return doctor.worst(findings) != "bad"


def _modes(directory: Path) -> dict[str, int]:
    if not directory.exists():
        return {}
    return {str(path): path.stat().st_mode for path in (directory, *directory.iterdir())}


def _password(settings: Settings, layout: Layout) -> str:
    if settings.password is not None:
        return settings.password.get_secret_value()
    path = layout.secrets / "root.password"
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


def _hosts_of_services() -> list[str]:
    """Return the hosts that the environment sets for single services."""
    names = [k for k in os.environ if k.startswith("PENSTOCK_") and k.endswith("_HOST")]
    return [os.environ[name] for name in names]


def _print(findings: list[doctor.Finding], *, quiet: bool) -> None:
    """Print what is wrong first; *quiet* leaves out what is in order."""
    console = Console(highlight=False)
    for finding in sorted(findings, key=lambda f: ("bad", "look", "ok").index(f.grade)):
        if finding.grade == "ok" and quiet:
            continue
        console.print(_MARKS[finding.grade], end=" ")
        console.print(
            finding.what + (f"\n     → {finding.do}" if finding.do else ""),
            markup=False,
            soft_wrap=True,
        )


def _ask_mesh(layout: Layout, options: Mapping[str, str], bootstrap: str) -> list[Finding]:
    """Ask what only a running mesh knows; *options*: of a client of its brokers."""
    found = []
    newest: list[tuple[str, str]] = []
    try:
        with connection(layout.root, None, "root", None) as client:
            found += _ask_of_streams(client)
            found += _ask_of_views(client)
            newest = _newest_dead_letter(client)
    except PenstockError as error:
        found.append(
            Finding(
                "bad",
                f"the gateway does not answer as it should: {error.message}",
                error.hint or "penstock logs gateway",
            )
        )
    try:
        found += doctor.dead_letters(_count_dead_letters(options, bootstrap), newest)
    except PenstockError as error:
        found.append(
            Finding("bad", f"Kafka does not answer: {error.message}", "penstock logs kafka")
        )
    return found


def _ask_of_streams(client: Connection) -> list[Finding]:
    listed = client.query(
        "SELECT stream_name, status, message FROM information_schema.ins_streams"
    ).rows
    return doctor.streams([(str(n), str(s), str(m or "")) for n, s, m in listed])


def _ask_of_views(client: Connection) -> list[Finding]:
    listed = client.query(
        "SELECT db_name, view_name, status, last_error FROM information_schema.ins_views"
    ).rows
    return doctor.views([(f"{d}.{n}", str(s), str(m or "")) for d, n, s, m in listed])


def _newest_dead_letter(client: Connection) -> list[tuple[str, str]]:
    """Return code and reason of the newest dead letter, if there is one."""
    listed = client.query(
        "SELECT code, reason FROM information_schema.ins_dead_letters ORDER BY time DESC LIMIT 1"
    ).rows
    return [(str(code), str(reason)) for code, reason in listed]


def _count_dead_letters(options: Mapping[str, str], bootstrap: str) -> int:
    bus.secure(options)
    admin = bus.Admin(bootstrap, client_id="penstock-doctor", timeout=5)
    where = [(names.DEAD_LETTER, p) for p in range(names.BUILT_IN_TOPICS[names.DEAD_LETTER])]
    ends = admin.end_offsets(where)
    begins = admin.start_offsets(where)
    return sum(ends[at] - begins[at] for at in where)
