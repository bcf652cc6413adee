"""The start of a mesh on a terminal, in this process or in the background."""

from __future__ import annotations

import os
from typing import Any

from rich.live import Live

from penstock.cli.announcer import Announcer
from penstock.cli.display import services_table
from penstock.cli.options import messages
from penstock.mesh.layout import Layout, Ports
from penstock.mesh.process import UMASK
from penstock.mesh.running import launch, wait_for_start
from penstock.mesh.services import Options
from penstock.mesh.state import read_state
from penstock.mesh.supervisor import Supervisor
from penstock.runtime import log
from penstock.setup import aot_cache
from penstock.setup.jar_download import fetch
from penstock.setup.java import find_java
from penstock.setup.jvm_programs import broker, spark
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
        announcer = Announcer(layout, live.console)

        def show(state: dict[str, Any]) -> None:
            live.update(services_table(state), refresh=True)
            announcer.see(state)

        supervisor.run(show)


def in_background(layout: Layout, options: Options, port_base: str, own: list[str]) -> None:
    """Start the mesh in a process of its own, and return when all is ready. It goes on although a
    service does not get on with its start.

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
        standby=options.standby,
    )
    with Live(console=messages(), auto_refresh=False) as live:
        announcer = Announcer(layout, live.console)
        for state in wait_for_start(supervisor, layout):
            live.update(services_table(state), refresh=True)
            announcer.see(state)


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


def is_trained() -> bool:
    """Whether the broker and Spark start from what they have learned (`penstock.mesh.training`), or
    never can with the Java that is there.
    """
    return aot_cache.is_trained(find_java(), (broker(), spark()))
