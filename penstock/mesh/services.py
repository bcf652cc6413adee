"""What a mesh runs: for each process its command, its environment, what it waits for, and how it
says that it is ready.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from penstock import bus, installed
from penstock.config.environment import MESH_VARIABLE
from penstock.config.raft import GROUPS, MIN_MEMBERS, parse_groups
from penstock.errors import ConfigError
from penstock.mesh import kafka, redis_server
from penstock.mesh.layout import MAX_NODES, Layout, Ports
from penstock.mesh.learned import learned_options
from penstock.mesh.readiness import ask
from penstock.mesh.standby import STANDBY
from penstock.runtime.memory import ALLOCATORS
from penstock.runtime.second_compiler import let_second_compiler_yield
from penstock.setup.java import find_java, spark_java_home
from penstock.setup.jvm_programs import spark
from penstock.setup.service_packages import (
    ALL_SERVICES,
    NODE_PACKAGE,
    PACKAGES,
    SERVERS,
    SQL_SERVICES,
)

#: the group of three nodes or more when nothing else is said
DEFAULT_GROUP = "11:NODE1:NODE2:NODE3"
_JVM_OPTIONS = "PENSTOCK_SPARK_JVM_OPTIONS"
_LISTENERS = {"kafka": ["kafka", "controller"], "redis": ["redis"]}


@dataclass(frozen=True)
class Options:
    """Choices of one `penstock up`."""

    services: tuple[str, ...] = ALL_SERVICES
    clock: Literal["system", "manual"] = "system"
    #: nodes of stream tables: node1 (alias NODE1) and so on
    nodes: int = 0
    environment: tuple[tuple[str, str], ...] = ()
    #: Kafka asks nobody for a login: whoever gets to its port may do everything
    open_kafka: bool = False
    #: a service that was ready and does not answer for so many seconds is ended and started again;
    #: 0: never
    silent_seconds: float = 20.0
    #: a second process of the stream jobs stands by
    standby: bool = False

    @property
    def second(self) -> tuple[str, ...]:
        return (STANDBY,) if self.standby and "spark" in self.services else ()

    @property
    def all_services(self) -> tuple[str, ...]:
        return (*self.services, *self.second, *(f"node{n}" for n in range(1, self.nodes + 1)))


@dataclass(frozen=True)
class ServicePlan:
    """One process to keep running."""

    name: str
    command: list[str]
    environment: Mapping[str, str]
    needs: tuple[str, ...]
    #: "" when ready, else what it still waits for
    waits_for: Callable[[], str]
    #: Python package that the command runs, if a fork may take its place
    package: str = ""
    #: services that get the processor first: they start, or do not come, before this one does
    after: tuple[str, ...] = ()
    #: runs once before the first start
    prepare: Callable[[], None] = lambda: None
    #: more arguments, which depend on how it ended last
    start_arguments: Callable[[], list[str]] = list
    #: runs at each start, with the process's number
    when_started: Callable[[int], None] = lambda _: None
    #: runs once when it is first ready, before those that need it start
    on_ready: Callable[[], None] = lambda: None
    #: the service that takes over when this one dies
    twin: str = ""


def check_services(chosen: tuple[str, ...]) -> None:
    """Check names, and that each service has something to run.

    Raises:
        ConfigError: all faults at once; or first, that the stream jobs are not installed.
    """
    if "spark" in chosen:
        installed.require_mesh(installed.SPARK)
    faults = [f"{name}: no such service" for name in chosen if name not in ALL_SERVICES]
    faults += [
        f"{name}: {PACKAGES[name]} cannot be run"
        for name in chosen
        if name in PACKAGES and not _runnable(PACKAGES[name])
    ]
    if faults:
        raise ConfigError(
            "cannot start these services",
            detail="; ".join(faults),
            hint=f"services are {', '.join(ALL_SERVICES)}",
        )


def check_nodes(nodes: int, environment: Mapping[str, str]) -> None:
    """Check how many nodes there shall be, and what the groups say about them.

    Raises:
        ConfigError: too many, or a group names a node that there is not.
    """
    if not 0 <= nodes <= MAX_NODES:
        raise ConfigError(f"{nodes} nodes are not possible", hint=f"0 to {MAX_NODES}")
    given = streaming(nodes, environment)
    groups = parse_groups(
        *(
            given.get(f"PENSTOCK_STREAMING_RAFT_{part}", "")
            for part in ("GROUPS", "LEARNERS", "GROUP_ALIASES")
        )
    )
    known = {alias(f"node{n}") for n in range(1, nodes + 1)}
    unknown = [n for n in groups.nodes if n not in known]
    if nodes and unknown:
        raise ConfigError(
            f"{GROUPS} names nodes that do not run here: {', '.join(unknown)}",
            hint=f"--nodes {nodes} starts {', '.join(known)}",
        )


def alias(service: str) -> str:
    """The alias of the node that runs as *service*."""
    return service.upper()


def streaming(nodes: int, environment: Mapping[str, str]) -> dict[str, str]:
    """Settings of stream tables that the caller's environment does not have: with three nodes or
    more, a group of the first three.
    """
    if not nodes or "PENSTOCK_STREAMING_RAFT_GROUPS" in environment:
        return {k: v for k, v in environment.items() if k.startswith("PENSTOCK_STREAMING_")}
    found = {
        "PENSTOCK_STREAMING_HA_MODE": "raft",
        **{k: v for k, v in environment.items() if k.startswith("PENSTOCK_STREAMING_")},
    }
    return found | (
        {"PENSTOCK_STREAMING_RAFT_GROUPS": DEFAULT_GROUP} if nodes >= MIN_MEMBERS else {}
    )


def serves_postgres(environment: Mapping[str, str]) -> bool:
    """Tell whether the gateway is to serve the PostgreSQL wire."""
    wanted = environment.get("PENSTOCK_GATEWAY_POSTGRES", "")
    return wanted.lower() in ("1", "true", "t", "on", "yes", "y")


def served(ports: Ports, environment: Mapping[str, str]) -> dict[str, int]:
    """Return the ports of a mesh by name, without that of a wire that is not served."""
    wire = serves_postgres(environment)
    return {name: port for name, port in ports.by_name.items() if wire or name != "postgres"}


def listeners(service: str) -> list[str]:
    """Names of the ports that *service* binds."""
    if service == "federation":
        return ["federation", "federation-tls", "federation-health"]
    if service == "gateway" and serves_postgres(os.environ):
        return ["gateway", "postgres", "gateway-health"]
    return _LISTENERS.get(service) or [
        name for name in (service, f"{service}-health") if name not in ("spark", STANDBY, "snode")
    ]


#: variable → the service whose address or secret it is: of a service that runs elsewhere the
#: environment knows it
_OF_SERVICE = {
    "PENSTOCK_KAFKA_BOOTSTRAP": "kafka",
    "PENSTOCK_REDIS_URL": "redis",
    "PENSTOCK_REDIS_PASSWORD_FILE": "redis",
    "PENSTOCK_GATEWAY_URL": "gateway",
    "PENSTOCK_NOTIFIER_URL": "notifier",
    "PENSTOCK_STORE_URL": "store",
    "PENSTOCK_PASSWORD_FILE": "gateway",
    "PENSTOCK_TOKEN_KEY_FILE": "gateway",
    "PENSTOCK_BACKUP_KEY_FILE": "gateway",
    "PENSTOCK_METRICS_KEY_FILE": "gateway",
}


def addresses(
    layout: Layout,
    ports: Ports,
    services: tuple[str, ...] = ALL_SERVICES,
    *,
    open_kafka: bool = False,
) -> dict[str, str]:
    """The shared settings that tell each service where the others are; those of services on other
    nodes come from the environment.
    """
    login = kafka.login(layout, is_open=open_kafka) if "kafka" in services else {}
    elsewhere = {
        v: os.environ[v]
        for v, service in _OF_SERVICE.items()
        if service not in services and v in os.environ
    }
    secure = "s" if os.environ.get("PENSTOCK_TLS_CERT") else ""
    return {
        "PENSTOCK_KAFKA_BOOTSTRAP": f"127.0.0.1:{ports['kafka']}",
        "PENSTOCK_REDIS_URL": f"redis://127.0.0.1:{ports['redis']}/0",
        "PENSTOCK_REDIS_PASSWORD_FILE": str(layout.secret("redis")),
        "PENSTOCK_GATEWAY_URL": f"http{secure}://127.0.0.1:{ports['gateway']}",
        "PENSTOCK_NOTIFIER_URL": f"ws{secure}://127.0.0.1:{ports['notifier']}",
        "PENSTOCK_STORE_URL": f"{'grpc+tls' if secure else 'grpc'}://127.0.0.1:{ports['store']}",
        "PENSTOCK_FEDERATION_URL": (
            f"ws{secure}://127.0.0.1:{ports['federation-tls' if secure else 'federation']}"
        ),
        "PENSTOCK_DATA_DIR": str(layout.root),
        "PENSTOCK_PASSWORD_FILE": str(layout.secret("root")),
        "PENSTOCK_TOKEN_KEY_FILE": str(layout.token_key),
        "PENSTOCK_BACKUP_KEY_FILE": str(layout.secret("backup")),
        "PENSTOCK_METRICS_KEY_FILE": str(layout.metrics_key),
        **login,
    } | elsewhere


def plan(layout: Layout, ports: Ports, options: Options) -> list[ServicePlan]:
    """Plan the services of *options* in the order to start them."""
    servers = tuple(name for name in SERVERS if name in options.services)
    first = tuple(name for name in SQL_SERVICES if name in options.services)
    return [
        service if service.name in (*servers, *first) else replace(service, after=first)
        for service in _services(layout, ports, options, servers)
    ]


def _services(
    layout: Layout, ports: Ports, options: Options, servers: tuple[str, ...]
) -> list[ServicePlan]:
    """Return the services of *options*; all but *servers* need those first."""
    common = common_environment(layout, ports, options)
    services = []
    if "kafka" in options.services:
        services.append(_kafka_service(layout, ports, options, common))
    if "redis" in options.services:
        services.append(_redis_service(layout, ports, common))
    services += [
        _python_service(name, layout, ports, common, servers)
        for name in PACKAGES
        if name in options.services
    ]
    if options.second:
        services = _with_standby(services, ports)
    services += [
        _node_service(f"node{n}", ports, common, servers) for n in range(1, options.nodes + 1)
    ]
    return services


def common_environment(layout: Layout, ports: Ports, options: Options) -> dict[str, str]:
    """Return the variables that all services share."""
    common = {
        **ALLOCATORS,
        **os.environ,
        **installed.service_path(os.environ.get("PYTHONPATH", "")),
        **addresses(layout, ports, options.services, open_kafka=options.open_kafka),
        MESH_VARIABLE: str(layout.root),
        "PENSTOCK_CLOCK": options.clock,
    }
    java_options = (
        f"{os.environ.get('JDK_JAVA_OPTIONS', '')} -XX:-UsePerfData"
        f' "-Djava.io.tmpdir={layout.temporary}"'
    )
    common |= streaming(options.nodes, {**common, **dict(options.environment)})
    common |= {
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": str(layout.temporary),
        "SPARK_LOCAL_DIRS": str(layout.temporary),
        "JDK_JAVA_OPTIONS": java_options.strip(),
        **dict(options.environment),
    }
    # a password in the caller's environment is for its own mesh, and would come before the files
    own = (
        ("PENSTOCK_KAFKA_PASSWORD", "kafka"),
        ("PENSTOCK_REDIS_PASSWORD", "redis"),
        ("PENSTOCK_PASSWORD", "gateway"),
        ("PENSTOCK_TOKEN_KEY", "gateway"),
        ("PENSTOCK_BACKUP_KEY", "gateway"),
        ("PENSTOCK_METRICS_KEY", "gateway"),
    )
    for variable, service in own:
        if service in options.services:
            common.pop(variable, None)
    return common


def _kafka_service(
    layout: Layout, ports: Ports, options: Options, common: dict[str, str]
) -> ServicePlan:
    bootstrap = f"127.0.0.1:{ports['kafka']}"
    return ServicePlan(
        "kafka",
        kafka.command(layout),
        common,
        needs=(),
        waits_for=lambda: "" if kafka.is_ready(bootstrap) else "metadata",
        prepare=lambda: _prepare_kafka(layout, ports, is_open=options.open_kafka),
        start_arguments=lambda: kafka.start_arguments(layout),
        when_started=let_second_compiler_yield,
        on_ready=lambda: kafka.create_built_in_topics(bootstrap),
    )


def _redis_service(layout: Layout, ports: Ports, common: dict[str, str]) -> ServicePlan:
    return ServicePlan(
        "redis",
        redis_server.command(layout),
        common,
        needs=(),
        waits_for=lambda: "" if redis_server.is_ready(layout, ports) else "PING",
        prepare=lambda: redis_server.prepare(layout, ports),
    )


def _prepare_kafka(layout: Layout, ports: Ports, *, is_open: bool) -> None:
    """Write what the broker starts with, and have this process, which asks it whether it is ready,
    log in to it.
    """
    kafka.prepare(layout, ports, is_open=is_open)
    bus.secure(kafka.options(kafka.login(layout, is_open=is_open)), f"127.0.0.1:{ports['kafka']}")


def _node_service(
    name: str, ports: Ports, common: Mapping[str, str], needs: tuple[str, ...]
) -> ServicePlan:
    health = ports[f"{name}-health"]
    own = {
        "PENSTOCK_TABLES_ALIAS": alias(name),
        "PENSTOCK_TABLES_PORT": str(ports[name]),
        "PENSTOCK_TABLES_HEALTH_PORT": str(health),
    }
    if "POLARS_MAX_THREADS" not in common:
        own["POLARS_MAX_THREADS"] = "1"  # as for the gateway: frames are small
    return ServicePlan(
        name,
        [sys.executable, "-m", NODE_PACKAGE],
        {**common, **own},
        needs,
        lambda: ask(health),
        package=NODE_PACKAGE,
    )


def _python_service(
    name: str, layout: Layout, ports: Ports, common: Mapping[str, str], needs: tuple[str, ...]
) -> ServicePlan:
    health = ports[f"{name}-health"]
    own = {f"PENSTOCK_{name.upper()}_HEALTH_PORT": str(health)}
    if name in ports.by_name:
        own[f"PENSTOCK_{name.upper()}_PORT"] = str(ports[name])
    if name == "gateway":
        own["PENSTOCK_GATEWAY_POSTGRES_PORT"] = str(ports["postgres"])
    if name == "federation":
        own["PENSTOCK_FEDERATION_TLS_PORT"] = str(ports["federation-tls"])
    if name == "gateway" and "POLARS_MAX_THREADS" not in common:
        own["POLARS_MAX_THREADS"] = (
            "1"  # its frames are small: waking more threads costs more than they do
        )
    if name == "spark":
        java = find_java()
        options = [common.get(_JVM_OPTIONS, ""), *learned_options(layout, java, spark())]
        own |= {
            _JVM_OPTIONS: " ".join(filter(None, options)),
            "JAVA_HOME": str(spark_java_home(java, layout.run / "java")),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
    return ServicePlan(
        name,
        [sys.executable, "-m", PACKAGES[name]],
        {**common, **own},
        needs,
        lambda: ask(health),
        package=PACKAGES[name],
    )


def _with_standby(services: list[ServicePlan], ports: Ports) -> list[ServicePlan]:
    """Return *services* with a second process of the stream jobs, which starts after the first."""
    first = next(service for service in services if service.name == "spark")
    health = ports[f"{STANDBY}-health"]
    second = replace(
        first,
        name=STANDBY,
        environment={**first.environment, "PENSTOCK_SPARK_HEALTH_PORT": str(health)},
        needs=(*first.needs, "spark"),
        waits_for=lambda: ask(health),
        twin="spark",
    )
    paired = (replace(s, twin=STANDBY) if s is first else s for s in services)
    return [*paired, second]


def _runnable(package: str) -> bool:
    try:
        return importlib.util.find_spec(f"{package}.__main__") is not None
    except ModuleNotFoundError:
        return False
