"""penstock up, down, status, logs, restart, setup: the embedded mesh from the command line."""

from __future__ import annotations

import os
import subprocess
import time
from typing import Annotated, Any, Literal, cast

import typer
from rich.console import Console
from rich.live import Live

from penstock import bus, names
from penstock.auth.tokens import LOGIN_S, Tokens
from penstock.cli import app
from penstock.cli.display import add_remarks, services_table
from penstock.cli.options import DATA_DIR, DataDir
from penstock.config.settings import Settings
from penstock.errors import BusError, ConfigError
from penstock.mesh.layout import DEFAULT_PORT_BASE, Layout, Ports, free_ports, ports_from
from penstock.mesh.process import UMASK
from penstock.mesh.running import RunningMesh, launch, wait_for_start
from penstock.mesh.services import ALL_SERVICES, Options, check_nodes, check_services
from penstock.mesh.state import read_state
from penstock.mesh.supervisor import Supervisor, stop_mesh
from penstock.runtime import log, traces
from penstock.runtime.clock import SystemClock
from penstock.runtime.mesh_members import members
from penstock.setup.jars import fetch
from penstock.setup.java import find_java
from penstock.setup.redis_server import find_redis_server

ServiceName = Annotated[str, typer.Argument(help=f"one of {', '.join(ALL_SERVICES)}")]
#: of `up --safe`
_SAFE = (("PENSTOCK_SPARK_SAFE_MODE", "true"), ("PENSTOCK_GATEWAY_WAIT_FOR_JOBS", "false"))
_console = Console(stderr=True, highlight=False)


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
    if rooms:
        _console.print("--rooms is now called --services; the old name goes with the next version")
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
    fetch_all(options.services)
    layout = Layout(data_dir.expanduser().absolute())
    if detach:
        _up_detached(layout, options, port_base, port or [])
        return
    os.umask(UMASK)
    supervisor = Supervisor(layout, _ports(port_base, port or []), options)
    if plain:
        log.configure("supervisor")
        supervisor.run(lambda _state: None)
        return
    log.configure("supervisor", "ERROR")
    with Live(console=_console, auto_refresh=False) as live:
        announced = False

        def show(state: dict[str, Any]) -> None:
            nonlocal announced
            live.update(services_table(state), refresh=True)
            if state["ready"] and not announced:
                announced = True
                _announce(layout, state, live.console)

        supervisor.run(show)


@app.command()
def down(data_dir: DataDir = DATA_DIR) -> None:
    """Stop what was started in the data directory, also what a killed supervisor left behind."""
    layout = Layout(data_dir.expanduser().absolute())
    ended = stop_mesh(layout)
    _console.print(f"stopped: {ended} processes" if ended else "nothing was running")


@app.command()
def status(data_dir: DataDir = DATA_DIR) -> None:
    """Show health, ports, memory (PSS), restarts of each service; exit 1 unless all are ready."""
    layout = Layout(data_dir.expanduser().absolute())
    state = read_state(layout)
    if state is None:
        left = members(layout.root)
        _console.print(
            f"no mesh runs in {layout.root}"
            + (f"; {len(left)} processes are left: `penstock down`" if left else "")
        )
        raise typer.Exit(1)
    add_remarks(state)
    Console(highlight=False).print(services_table(state, memory=True))
    raise typer.Exit(0 if state["ready"] else 1)


@app.command()
def logs(
    service: Annotated[
        str,
        typer.Argument(
            help=f"one of {', '.join(ALL_SERVICES)}, supervisor; with --trace none: all"
        ),
    ] = "",
    data_dir: DataDir = DATA_DIR,
    lines: Annotated[int, typer.Option("--lines", "-n", help="how many lines of its end")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="go on as it grows")] = False,
    trace: Annotated[
        str,
        typer.Option(
            help=(
                "only what is about rows that were written under this trace id, in the order of"
                " time"
            )
        ),
    ] = "",
) -> None:
    """Show the log of one service, or what all of them say about the rows of one trace."""
    layout = Layout(data_dir.expanduser().absolute())
    path = layout.log(service)
    if trace:
        for line in traces.find_lines(
            trace, [path] if service else sorted(path.parent.glob("*.log"))
        ):
            typer.echo(line)
        return
    if not path.exists():
        raise ConfigError(
            f"no log of {service}",
            detail=str(path),
            hint=f"logs are kept for {', '.join(ALL_SERVICES)}, supervisor",
        )
    command = ["tail", "-n", str(lines), *(["-F"] if follow else []), str(path)]
    try:
        raise typer.Exit(subprocess.run(command).returncode)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


@app.command()
def restart(service: ServiceName, data_dir: DataDir = DATA_DIR) -> None:
    """Stop one service, by force if it does not hear, and wait until its successor is ready."""
    mesh = RunningMesh.attach(data_dir.expanduser())
    if mesh is None:
        raise ConfigError("no mesh runs here", hint="`penstock up` starts one")
    if service not in mesh.state()["services"]:
        raise ConfigError(
            f"no such service: {service}", hint=f"it runs {', '.join(mesh.state()['services'])}"
        )
    began = time.monotonic()
    mesh.restart(service)
    _console.print(f"{service}: ready again after {time.monotonic() - began:.1f} s")


@app.command()
def setup() -> None:
    """Fetch what pip does not bring: pinned jars; and check that Java and redis-server are
    there.
    """
    fetch_all(ALL_SERVICES)


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
            _console.print(f"waiting for Kafka: {error.detail or error.message}", markup=False)
            time.sleep(1)
    _console.print(f"{len(names.BUILT_IN_TOPICS)} topics are there")


def fetch_all(services: tuple[str, ...]) -> None:
    """Whatever *services* need and this machine does not have yet."""
    if "redis" in services:
        find_redis_server()
    if "kafka" in services:
        find_java()
        fetch("broker", _console)
    if "spark" in services:
        find_java()
        fetch("spark", _console)


def _up_detached(layout: Layout, options: Options, port_base: str, own: list[str]) -> None:
    if read_state(layout) is not None:
        _console.print(f"a mesh runs already in {layout.root}")
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
    state: dict[str, Any] = {}
    with Live(console=_console, auto_refresh=False) as live:
        for state in wait_for_start(supervisor, layout):
            live.update(services_table(state), refresh=True)
    _announce(layout, state, _console)


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


@app.command()
def login(data_dir: DataDir = DATA_DIR) -> None:
    """Print a link that logs a browser in as root; it is good once, for 15 minutes."""
    mesh = RunningMesh.attach(data_dir.expanduser())
    if mesh is None:
        raise ConfigError("no mesh runs here", hint="`penstock up` starts one")
    Console(highlight=False).print(
        login_link(mesh.layout, mesh.gateway_url), markup=False, soft_wrap=True
    )


def login_link(layout: Layout, gateway_url: str) -> str:
    """Return an address that logs a browser in: whoever may read the mesh's secrets may make
    one.
    """
    password = layout.secret("root").read_text(encoding="utf-8").strip()
    tokens = Tokens(layout.token_key.read_text(encoding="utf-8").strip(), SystemClock())
    token = tokens.issue("root", tokens.root_mark(password), seconds=LOGIN_S, kind="login")
    return f"{gateway_url}/login?token={token}"


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
