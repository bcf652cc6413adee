"""The start of a mesh on a terminal, in this process or in the background."""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console
from rich.live import Live

from penstock.auth.tokens import LOGIN_S, Tokens
from penstock.cli.display import services_table
from penstock.cli.options import messages
from penstock.mesh.layout import Layout, Ports
from penstock.mesh.process import UMASK
from penstock.mesh.running import launch, wait_for_start
from penstock.mesh.services import Options
from penstock.mesh.state import read_state
from penstock.mesh.supervisor import Supervisor
from penstock.runtime import log
from penstock.runtime.clock import SystemClock
from penstock.setup.jars import fetch
from penstock.setup.java import find_java
from penstock.setup.redis_server import find_redis_server


def here(layout: Layout, ports: Ports, options: Options, *, plain: bool) -> None:
    """Start the mesh and keep it running until this process is asked to stop.

    Args:
        layout: of the mesh.
        ports: of the mesh.
        options: what it runs.
        plain: write log lines only, no table that follows the state.
    """
    os.umask(UMASK)
    supervisor = Supervisor(layout, ports, options)
    if plain:
        log.configure("supervisor")
        supervisor.run(lambda _state: None)
        return
    log.configure("supervisor", "ERROR")
    with Live(console=messages(), auto_refresh=False) as live:
        announced = False

        def show(state: dict[str, Any]) -> None:
            nonlocal announced
            live.update(services_table(state), refresh=True)
            if state["ready"] and not announced:
                announced = True
                _announce(layout, state, live.console)

        supervisor.run(show)


def in_background(layout: Layout, options: Options, port_base: str, own: list[str]) -> None:
    """Start the mesh in a process of its own, and return when all is ready.

    Args:
        layout: of the mesh.
        options: what it runs.
        port_base: its first port, or `auto`.
        own: single ports, each `NAME=NUMBER`.
    """
    if read_state(layout) is not None:
        messages().print(f"a mesh runs already in {layout.root}")
        return
    supervisor = launch(
        layout.root,
        services=options.services,
        clock=options.clock,
        safe=bool(options.environment),
        port_base=port_base,
        ports=tuple(own),
        nodes=options.nodes,
        open_kafka=options.open_kafka,
        tied=False,
        silent_seconds=options.silent_seconds,
    )
    console = messages()
    state: dict[str, Any] = {}
    with Live(console=console, auto_refresh=False) as live:
        for state in wait_for_start(supervisor, layout):
            live.update(services_table(state), refresh=True)
    _announce(layout, state, console)


def fetch_all(services: tuple[str, ...]) -> None:
    """Fetch whatever *services* need and this machine does not have yet."""
    if "redis" in services:
        find_redis_server()
    if "kafka" in services:
        find_java()
        fetch("broker", messages())
    if "spark" in services:
        find_java()
        fetch("spark", messages())


def login_link(layout: Layout, gateway_url: str) -> str:
    """Return an address that logs a browser in: whoever may read the mesh's secrets may make
    one.
    """
    password = layout.secret("root").read_text(encoding="utf-8").strip()
    tokens = Tokens(layout.token_key.read_text(encoding="utf-8").strip(), SystemClock())
    token = tokens.issue("root", tokens.root_mark(password), seconds=LOGIN_S, kind="login")
    return f"{gateway_url}/login?token={token}"


def _announce(layout: Layout, state: dict[str, Any], console: Console) -> None:
    if "gateway" in state["services"]:
        url = state["settings"]["PENSTOCK_GATEWAY_URL"]
        console.print(f"\n  Penstock is up: {url}", markup=False)
        console.print(
            f"  log in with a browser (once, within 15 minutes): {login_link(layout, url)}",
            markup=False,
            soft_wrap=True,
        )
        console.print(
            f"  user root, password {layout.secret('root').read_text(encoding='utf-8').strip()}",
            markup=False,
        )
        console.print(f"  (kept in {layout.secret('root')})\n", markup=False, soft_wrap=True)
