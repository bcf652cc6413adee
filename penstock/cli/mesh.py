"""penstock up, down, status, logs, restart, setup: the embedded mesh from the command line.

Each command imports what it needs when it runs, so that `--help` shows at once.
"""

from __future__ import annotations

import os
import time
from typing import Annotated, Literal, cast

import typer

from penstock import names
from penstock.cli import app
from penstock.cli.options import DATA_DIR, DataDir, messages
from penstock.errors import BusError, ConfigError
from penstock.mesh.layout import DEFAULT_PORT_BASE, Layout, Ports, free_ports, ports_from
from penstock.mesh.state import read_state
from penstock.setup.service_packages import ALL_SERVICES

ServiceName = Annotated[str, typer.Argument(help=f"one of {', '.join(ALL_SERVICES)}")]
#: of `up --safe`
_SAFE = (("PENSTOCK_SPARK_SAFE_MODE", "true"), ("PENSTOCK_GATEWAY_WAIT_FOR_JOBS", "false"))


@app.command()
def up(
    data_dir: DataDir = DATA_DIR,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="leave it running in the background")
    ] = False,
    services: Annotated[str, typer.Option(help="only these, separated by commas")] = ",".join(
        ALL_SERVICES
    ),
    rooms: Annotated[str, typer.Option(hidden=True)] = "",
    port_base: Annotated[
        str,
        typer.Option(
            envvar="PENSTOCK_PORT_BASE", help="first port of the mesh, or `auto` for free ones"
        ),
    ] = str(DEFAULT_PORT_BASE),
    port: Annotated[
        list[str] | None, typer.Option(help="one port by name: NAME=NUMBER; may be repeated")
    ] = None,
    nodes: Annotated[
        int,
        typer.Option(
            envvar="PENSTOCK_NODES", help="nodes of stream tables: NODE1 and so on; 3 make a group"
        ),
    ] = 0,
    clock: Annotated[
        str, typer.Option(help="`manual`: time moves only by control records (tests)")
    ] = "system",
    safe: Annotated[
        bool,
        typer.Option("--safe", help="start no stream: to drop one that does harm before it runs"),
    ] = False,
    open_kafka: Annotated[
        bool,
        typer.Option(
            "--open-kafka",
            envvar="PENSTOCK_OPEN_KAFKA",
            help="Kafka asks for no login: on a machine that is yours alone",
        ),
    ] = False,
    silent_seconds: Annotated[
        float,
        typer.Option(
            min=0,
            envvar="PENSTOCK_SILENT_SECONDS",
            help="restart a service that does not answer for so long; 0: never",
        ),
    ] = 20.0,
    standby: Annotated[
        bool,
        typer.Option(
            "--standby",
            envvar="PENSTOCK_STANDBY",
            help="a second process of the stream jobs takes over in seconds; some 0.7 GB",
        ),
    ] = False,
    plain: Annotated[bool, typer.Option("--plain", help="no live display: log lines only")] = False,
) -> None:
    """Start the mesh and keep it running until Ctrl-C (or `penstock down`)."""
    from penstock.cli import start
    from penstock.mesh.services import Options, check_nodes, check_services

    if rooms:
        messages().print(
            "--rooms is now called --services; the old name goes with the next version"
        )
        services = rooms
    if clock not in ("system", "manual"):
        raise ConfigError(f"no such clock: {clock}", hint="system or manual")
    environment = _SAFE if safe else ()
    options = Options(
        tuple(services.split(",")),
        cast(Literal["system", "manual"], clock),
        nodes,
        environment,
        open_kafka,
        silent_seconds,
        standby,
    )
    check_services(options.services)
    check_nodes(nodes, os.environ)
    start.fetch_all(options.services)
    if "spark" in options.services and not start.is_trained():
        messages().print("starts are quicker after `penstock setup`: a minute or two, once")
    layout = Layout(data_dir.expanduser().absolute())
    if detach:
        start.in_background(layout, options, port_base, port or [])
    else:
        start.here(layout, _ports(port_base, port or []), options, plain=plain)


@app.command()
def down(data_dir: DataDir = DATA_DIR) -> None:
    """Stop what was started in the data directory, also what a killed supervisor left behind."""
    from penstock.mesh.stop import stop_mesh

    layout = Layout(data_dir.expanduser().absolute())
    ended = stop_mesh(layout)
    messages().print(f"stopped: {ended} processes" if ended else "nothing was running")


@app.command()
def status(data_dir: DataDir = DATA_DIR) -> None:
    """Show health, ports, memory (PSS), restarts of each service; exit 1 unless all are ready."""
    from rich.console import Console

    from penstock.cli.display import add_remarks, services_table
    from penstock.runtime.mesh_members import members

    layout = Layout(data_dir.expanduser().absolute())
    state = read_state(layout)
    if state is None:
        left = members(layout.root)
        messages().print(
            f"no mesh runs in {layout.root}"
            + (f"; {len(left)} processes are left: `penstock down`" if left else "")
        )
        raise typer.Exit(1)
    add_remarks(state)
    Console(highlight=False).print(services_table(state, memory=True))
    raise typer.Exit(0 if state["ready"] else 1)


@app.command()
def restart(service: ServiceName, data_dir: DataDir = DATA_DIR) -> None:
    """Stop one service, by force if it does not hear, and wait until its successor is ready."""
    from penstock.mesh.running import RunningMesh

    mesh = RunningMesh.attach(data_dir.expanduser())
    if mesh is None:
        raise ConfigError("no mesh runs here", hint="`penstock up` starts one")
    if service not in mesh.state()["services"]:
        raise ConfigError(
            f"no such service: {service}", hint=f"it runs {', '.join(mesh.state()['services'])}"
        )
    began = time.monotonic()
    mesh.restart(service)
    messages().print(f"{service}: ready again after {time.monotonic() - began:.1f} s")


@app.command()
def setup() -> None:
    """Fetch what pip does not bring: pinned jars; check that Java and redis-server are there;
    prepare what a start would have to: compile sources, and let a mesh work for a minute, in which
    the broker and Spark learn what to compile. Quick when all is there.
    """
    from penstock.cli import start
    from penstock.mesh import training
    from penstock.setup.bytecode import compile_imports

    start.fetch_all(ALL_SERVICES)
    compile_imports()
    if start.is_trained():
        return
    with messages().status("a mesh works for a minute, to learn what to compile …"):
        training.train()


@app.command()
def init(
    kafka: Annotated[
        str,
        typer.Option(
            envvar="PENSTOCK_KAFKA_BOOTSTRAP",
            help="brokers of a mesh that `penstock up` does not run",
        ),
    ],
    seconds: Annotated[float, typer.Option(help="how long to wait for the brokers")] = 120.0,
) -> None:
    """Make the topics every mesh has, with the brokers' own replication; those that exist stay as
    they are.
    """
    from penstock import bus
    from penstock.config.settings import Settings

    bus.secure(Settings.load().kafka_options)
    admin = bus.Admin(kafka, client_id="penstock-init", timeout=10)
    deadline = time.monotonic() + seconds
    while True:
        try:
            admin.ensure_topics(names.BUILT_IN_TOPICS)
            break
        except BusError as error:
            if time.monotonic() > deadline or not error.retryable:
                raise
            messages().print(f"waiting for Kafka: {error.detail or error.message}", markup=False)
            time.sleep(1)
    messages().print(f"{len(names.BUILT_IN_TOPICS)} topics are there")


@app.command()
def login(data_dir: DataDir = DATA_DIR) -> None:
    """Print a link that logs a browser in as root; it is good once, for 15 minutes."""
    from rich.console import Console

    from penstock.cli.login_link import login_link
    from penstock.mesh.running import RunningMesh

    mesh = RunningMesh.attach(data_dir.expanduser())
    if mesh is None:
        raise ConfigError("no mesh runs here", hint="`penstock up` starts one")
    Console(highlight=False).print(
        login_link(mesh.layout, mesh.gateway_url), markup=False, soft_wrap=True
    )


def _ports(port_base: str, own: list[str]) -> Ports:
    chosen: dict[str, int] = {}
    for item in own:
        name, _, number = item.partition("=")
        if not number.isdigit():
            raise ConfigError(f"not NAME=NUMBER: {item}")
        chosen[name] = int(number)
    if port_base == "auto":
        picked = dict(free_ports().by_name)
        return ports_from(own=picked | chosen)
    if not port_base.isdigit():
        raise ConfigError(f"not a port: {port_base}", hint="a number, or auto")
    return ports_from(int(port_base), chosen)
