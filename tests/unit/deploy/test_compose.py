"""The compose file and what lies beside it agree with each other and with the code; no Docker
needed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.settings import GatewaySettings
from penstock import names
from penstock.config.raft import parse_groups
from penstock.config.settings import Settings
from penstock.runtime.memory import ALLOCATORS
from services.federation.settings import FederationSettings
from services.notifier.settings import NotifierSettings
from services.snode.settings import SnodeSettings
from services.store.settings import StoreSettings
from services.tables.settings import TablesSettings
from spark_jobs.settings import SparkSettings
from tests.documents import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: s for name, s in SERVICES.items() if s["image"].startswith("penstock-")}
SETTINGS = (
    GatewaySettings,
    SparkSettings,
    StoreSettings,
    NotifierSettings,
    FederationSettings,
    SnodeSettings,
    TablesSettings,
)
#: of the stream jobs: the second one stands by
DRIVERS = ("jobs", "jobs-standby")
OBSERVE = ROOT / "deploy/observe"
#: those that prometheus_client and Prometheus themselves make
_FOREIGN = {"up", "process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"}
_FUNCTIONS = {"sum", "by", "rate", "increase", "deriv", "for", "and", "or"}


def dashboards() -> list[Path]:
    return sorted((OBSERVE / "grafana/dashboards").glob("*.json"))


def metrics_of_the_code() -> set[str]:
    found = set(_FOREIGN)
    for package in ("penstock", "gateway", "spark_jobs", "services"):
        for path in (ROOT / package).rglob("*.py"):
            for kind, name in re.findall(
                r'(Counter|Gauge|Histogram)(?:MetricFamily)?\(\s*"(\w+)"',
                path.read_text(encoding="utf-8"),
            ):
                found.add(f"{name}_total" if kind == "Counter" else name)
                if kind == "Histogram":
                    found |= {f"{name}_bucket", f"{name}_sum", f"{name}_count"}
    return found


def named(expression: str) -> set[str]:
    """Metrics that an expression of Prometheus asks for."""
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|(by|without) \([^)]*\)", "", expression)
    return set(re.findall(r"\b[a-z_]+\b(?!\()", bare)) - _FUNCTIONS


def test_example_names_every_variable_and_no_other() -> None:
    files = [ROOT / "docker-compose.yml", ROOT / "deploy/stack"]
    used = {
        v
        for f in files
        for v in re.findall(r"\$\{((?:STACK|PIP|PENSTOCK)_\w+)", f.read_text(encoding="utf-8"))
    }
    internal = {"STACK_WAIT", "STACK_KAFKA_2_PORT", "STACK_KAFKA_3_PORT"}
    profile = set(
        re.findall(
            r"^(STACK_\w+)=",
            (ROOT / "deploy/compose/ha.env").read_text(encoding="utf-8"),
            re.MULTILINE,
        )
    )
    shown = set(
        re.findall(r"^#(\w+)=", (ROOT / ".env.example").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert profile <= used
    assert shown == used - internal - profile


def test_defaults_in_the_example_are_those_of_the_compose_file() -> None:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    for name, value in re.findall(
        r"^#(STACK_\w+)=(.*)$", (ROOT / ".env.example").read_text(encoding="utf-8"), re.MULTILINE
    ):
        assert f"${{{name}:-{value}}}" in text, name


@pytest.mark.parametrize("name", ["gateway", "store", "federation", "notifier"])
def test_services_that_connect_outwards_are_told_where_they_may(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        key: SERVICES[name]["environment"][key]
        for key in ("PENSTOCK_EXTERNAL_ALLOW", "PENSTOCK_NOTIFIER_NOTIFY_ALLOW")
    }
    for key, value in given.items():
        monkeypatch.setenv(key, re.sub(r"\$\{\w+:-(.*)\}", r"\1", value))
    kind = {kind.service: kind for kind in SETTINGS}[name]
    loaded = kind.load()
    assert loaded.external_allow == ()
    assert getattr(loaded, "notify_allow", ()) == ()


@pytest.mark.parametrize("name", OURS)
def test_our_containers_are_hardened(name: str) -> None:
    service = OURS[name]
    assert service["read_only"] and service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert not service.get("privileged") and "user" not in service, "the image's own user"


def test_images_run_as_somebody_else_than_root() -> None:
    stages = re.split(
        r"^FROM ", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE
    )[1:]
    final = {s.split(" AS ")[1].split()[0]: s for s in stages}
    assert (
        "USER 10001" in final["service"]
        and "USER 10001" in final["spark"]
        and "USER haproxy" in final["edge"]
    )
    assert "HEALTHCHECK" in final["base"] and "HEALTHCHECK" in final["edge"]


def test_images_ask_for_memory_as_an_embedded_mesh_does() -> None:
    base = next(
        s
        for s in (ROOT / "Dockerfile").read_text(encoding="utf-8").split("\nFROM ")
        if " AS base\n" in s
    )
    assert set(f"{name}={value}" for name, value in ALLOCATORS.items()) <= set(base.split())


def test_variables_of_services_are_settings() -> None:
    known = {f"PENSTOCK_{f.upper()}" for f in Settings.model_fields}
    known |= {
        f"PENSTOCK_{kind.service.upper()}_{f.upper()}"
        for kind in SETTINGS
        for f in kind.model_fields
    }
    known |= {f"{v}_FILE" for v in known if v.endswith(("PASSWORD", "KEY", "SECRET"))}
    for name, service in OURS.items():
        unknown = {v for v in service.get("environment", {}) if v.startswith("PENSTOCK_")} - known
        assert not unknown, f"{name}: {unknown}"


def test_nothing_is_published_past_the_chosen_address() -> None:
    for name, service in SERVICES.items():
        for port in service.get("ports", ()):
            assert port.startswith("${STACK_BIND:-127.0.0.1}:"), name


def test_gateways_know_where_their_passwords_come_from() -> None:
    given = SERVICES["gateway"]["environment"]
    assert given["PENSTOCK_GATEWAY_POSTGRES_PUBLISHED"] == "${STACK_BIND:-127.0.0.1}"
    assert given["PENSTOCK_GATEWAY_POSTGRES_CLEAR"] == "${STACK_POSTGRES_CLEAR:-[]}"


def test_nodes_of_stream_tables_are_those_of_the_group() -> None:
    (group,) = parse_groups(COMPOSE["x-shared"]["PENSTOCK_STREAMING_RAFT_GROUPS"]).groups
    nodes = {
        n: s for n, s in OURS.items() if s.get("command") == ["python", "-m", "services.tables"]
    }
    assert tuple(s["environment"]["PENSTOCK_TABLES_ALIAS"] for s in nodes.values()) == group.members
    for name, service in nodes.items():
        assert (
            service["environment"]["PENSTOCK_TABLES_ADVERTISED_URL"]
            == f"http://{name}:{TablesSettings.model_fields['port'].default}"
        )
        (port,), (volume,) = service["ports"], service["volumes"]
        # the published port is the one that clients are told, and nobody shares a disk
        assert (
            f"http://{port.rpartition(':')[0]}"
            == service["environment"]["PENSTOCK_TABLES_CLIENT_URL"]
        )
        assert volume == f"{name}:/data/tables" and name in COMPOSE["volumes"]


def test_passwords_are_in_no_variable() -> None:
    for name, service in SERVICES.items():
        for variable in service.get("environment", {}):
            assert "PASSWORD" not in variable or variable.endswith("_FILE"), f"{name}: {variable}"


def test_each_service_has_its_own_secrets_and_no_more() -> None:
    held = {name: set(service.get("secrets", ())) for name, service in SERVICES.items()}
    assert held["grafana"] == {"grafana_password"}, "its admin password is not that of the mesh"
    assert {n for n, s in held.items() if "backup_key" in s} == {"snode", *DRIVERS}
    for name, service in SERVICES.items():
        files = [str(v) for k, v in service.get("environment", {}).items() if k.endswith("_FILE")]
        assert {
            f.removeprefix("/run/secrets/") for f in files if f.startswith("/run/secrets/")
        } <= held[name], name
    assert set().union(*held.values()) == COMPOSE["secrets"].keys()
    made = re.search(
        r"for name in ([a-z ]+); do", (ROOT / "deploy/stack").read_text(encoding="utf-8")
    )
    files_made = (
        {f"{n}.password" for n in made[1].split()} | {"token.key", "metrics.key"} if made else set()
    )
    assert {s["file"].rpartition("/")[2] for s in COMPOSE["secrets"].values()} == files_made


def test_prometheus_reads_names_in_the_metrics_of_every_service() -> None:
    services, _ = yaml.safe_load((OBSERVE / "prometheus.yml").read_text(encoding="utf-8"))[
        "scrape_configs"
    ]
    assert services["authorization"] == {"credentials_file": "/run/secrets/metrics_key"}
    assert SERVICES["prometheus"]["secrets"] == ["metrics_key"]
    for name in services["dns_sd_configs"][0]["names"]:
        assert (
            SERVICES[name]["environment"]["PENSTOCK_METRICS_KEY_FILE"] == "/run/secrets/metrics_key"
        ), name


def test_all_wait_for_health_not_for_a_start() -> None:
    for name, service in OURS.items():
        needs = service.get("depends_on", {})
        assert isinstance(needs, dict) and all(
            n["condition"] != "service_started" for n in needs.values()
        ), name


@pytest.mark.parametrize("path", dashboards(), ids=lambda p: p.name)
def test_dashboards_show_metrics_that_exist(path: Path) -> None:
    board = json.loads(path.read_text(encoding="utf-8"))
    source = yaml.safe_load(
        (OBSERVE / "grafana/provisioning/datasources/prometheus.yml").read_text(encoding="utf-8")
    )["datasources"][0]
    assert (
        board["uid"]
        and board["title"]
        and len({p["id"] for p in board["panels"]}) == len(board["panels"])
    )
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken and place["x"] + place["w"] <= 24, (
            f"{panel['title']} lies over another"
        )
        taken |= cells
        assert panel["datasource"]["uid"] == source["uid"]
        for target in panel["targets"]:
            assert named(target["expr"]) <= metrics_of_the_code(), panel["title"]


def test_alerts_ask_for_metrics_that_exist() -> None:
    groups = yaml.safe_load((OBSERVE / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert named(rule["expr"]) <= metrics_of_the_code(), rule["alert"]


def test_prometheus_asks_every_service() -> None:
    config = yaml.safe_load((OBSERVE / "prometheus.yml").read_text(encoding="utf-8"))
    asked = {
        name
        for job in config["scrape_configs"]
        for found in job.get("dns_sd_configs", ())
        for name in found["names"]
    }
    services = {
        n for n, s in OURS.items() if "PENSTOCK_KAFKA_BOOTSTRAP" in s.get("environment", {})
    } - {"init", "feeder"}
    assert asked == services
    mounted = [v for v in SERVICES["prometheus"]["volumes"] if v.startswith("./")]
    assert all((ROOT / v.split(":")[0]).is_file() for v in mounted)
    assert all(
        (ROOT / v.split(":")[0]).is_dir()
        for v in SERVICES["grafana"]["volumes"]
        if v.startswith("./")
    )


def test_every_part_of_spark_knows_its_secret_and_no_command_line_does() -> None:
    assert COMPOSE["secrets"]["spark_secret"]["file"].endswith("/spark.password")
    for name in ("spark-master", "spark-worker", *DRIVERS):
        assert "spark_secret" in SERVICES[name]["secrets"]
        assert (
            SERVICES[name]["environment"]["PENSTOCK_SPARK_SECRET_FILE"]
            == "/run/secrets/spark_secret"
        )
    assert {name for name, s in SERVICES.items() if "spark_secret" in s.get("secrets", [])} == {
        "spark-master",
        "spark-worker",
        *DRIVERS,
    }


def test_a_standby_of_the_jobs_is_the_same_driver_on_another_node() -> None:
    first, second = (SERVICES[name] for name in DRIVERS)
    assert "profiles" not in first and second["profiles"] == ["standby"]
    assert {k: v for k, v in second.items() if first.get(k) != v}.keys() == {
        "profiles",
        "hostname",
        "environment",
        "depends_on",
    }
    own = dict(second["environment"].items() - first["environment"].items())
    assert own == {"PENSTOCK_NODE": "2", "PENSTOCK_SPARK_DRIVER_HOST": second["hostname"]}
    # the first one leads a new stack
    assert second["depends_on"] == {**first["depends_on"], "jobs": {"condition": "service_healthy"}}


def test_the_profiles_can_be_asked_for_together() -> None:
    stack = (ROOT / "deploy/stack").read_text(encoding="utf-8")
    chosen = re.search(r"^profiles=\(\)\n(?:.+\n)+", stack, re.MULTILINE)
    assert chosen is not None
    asked = {
        (standby, ha): subprocess.run(
            ["bash", "-uc", f'{chosen[0]} echo "${{profiles[@]}}"'],
            env={"STANDBY": standby, "HA": ha, "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for standby in ("", "0", "1")
        for ha in ("", "0", "1")
    }
    both = ["--profile", "standby", "--profile", "ha"]
    assert {switches for switches, profiles in asked.items() if profiles} == {
        ("1", ""),
        ("1", "0"),
        ("1", "1"),
    }
    assert asked["1", "1"] == both
    assert asked["1", "0"] == asked["1", ""] == both[:2]


def test_every_broker_asks_for_a_login_and_every_service_has_one() -> None:
    shared = COMPOSE["x-shared"]
    assert (shared["PENSTOCK_KAFKA_USER"], shared["PENSTOCK_KAFKA_MECHANISM"]) == (
        names.KAFKA_USER,
        "PLAIN",
    )
    for name in ("kafka", "kafka-2", "kafka-3"):
        service = SERVICES[name]
        listeners = [
            entry.partition(":")[2]
            for entry in service["environment"]["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(",")
        ]
        assert listeners == ["SASL_PLAINTEXT"] * 3
        assert service["environment"]["KAFKA_SUPER_USERS"] == f"User:{names.KAFKA_USER}"
        assert "StandardAuthorizer" in service["environment"]["KAFKA_AUTHORIZER_CLASS_NAME"]
        assert service["command"] == ["bash", "/etc/penstock/kafka.sh"] and service["secrets"] == [
            "kafka_password"
        ]
        assert any(volume.startswith("./deploy/compose/kafka.sh:") for volume in service["volumes"])
    for name, service in OURS.items():
        if "PENSTOCK_KAFKA_BOOTSTRAP" in service.get("environment", {}):
            assert "kafka_password" in service["secrets"], name
