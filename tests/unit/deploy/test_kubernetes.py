"""The manifests are valid for Kubernetes (its own schemas, from kubernetes-validate), and agree
with the code and with compose.
"""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
import yaml

from penstock.config.raft import parse_groups
from penstock.config.settings import Settings
from tests.documents import ROOT
from tests.unit.deploy.test_compose import COMPOSE, OURS, SETTINGS

DIRECTORY = ROOT / "deploy/kubernetes"
KUSTOMIZATION: dict[str, Any] = yaml.safe_load(
    (DIRECTORY / "kustomization.yaml").read_text(encoding="utf-8")
)
OBJECTS: list[dict[str, Any]] = [
    found
    for name in KUSTOMIZATION["resources"]
    for found in yaml.safe_load_all((DIRECTORY / name).read_text(encoding="utf-8"))
]
WORKLOADS = {
    o["metadata"]["name"]: o for o in OBJECTS if o["kind"] in ("Deployment", "StatefulSet", "Job")
}
#: services of compose that are none here: the cluster balances by itself, metrics, demo and standby
#: are not part of it
_COMPOSE_ONLY = {"edge", "feeder", "jobs-standby"}


def _workload(service: str) -> str:
    """What a service of compose is here: services that differ by a number are pods of one set."""
    return service.rstrip("-0123456789")


def label(found: dict[str, Any]) -> str:
    return f"{found['kind']}-{found['metadata']['name']}"


def container(name: str) -> dict[str, Any]:
    found: dict[str, Any] = WORKLOADS[name]["spec"]["template"]["spec"]["containers"][0]
    return found


@pytest.mark.parametrize("found", OBJECTS, ids=label)
def test_objects_are_valid(found: dict[str, Any]) -> None:
    validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed: `make setup` does it"
    )
    validate.validate(found, "1.31", strict=True)


def test_every_service_of_the_stack_is_here() -> None:
    services = {n: s for n, s in OURS.items() if n not in _COMPOSE_ONLY}
    assert {_workload(n) for n in services} <= WORKLOADS.keys()
    for name, service in services.items():
        found = container(_workload(name))
        assert found["image"] == service["image"].partition(":")[0], name
        command = [a for a in service.get("command") or ["python", "-m", "spark_jobs"] if a]
        assert found["args"][: len(command)] == command, name


def test_nodes_of_stream_tables_are_those_of_the_group() -> None:
    spec = WORKLOADS["tables"]["spec"]
    shared = next(o for o in OBJECTS if label(o) == "ConfigMap-penstock")["data"]
    (group,) = parse_groups(shared["PENSTOCK_STREAMING_RAFT_GROUPS"]).groups
    assert group.members == tuple(f"tables-{i}" for i in range(spec["replicas"]))


def test_variables_are_settings() -> None:
    known = {f"PENSTOCK_{f.upper()}" for f in Settings.model_fields}
    known |= {
        f"PENSTOCK_{kind.service.upper()}_{f.upper()}"
        for kind in SETTINGS
        for f in kind.model_fields
    }
    known |= {f"{v}_FILE" for v in known if v.endswith(("PASSWORD", "KEY", "SECRET"))}
    shared = next(o for o in OBJECTS if label(o) == "ConfigMap-penstock")["data"]
    # where traces go is added to the map by who collects them (docs/how-to/traces.md)
    in_compose = {name for name in COMPOSE["x-shared"] if not name.startswith("OTEL_")}
    assert set(shared) <= known and set(shared) == in_compose - {"PENSTOCK_LOG_LEVEL"}
    for name in WORKLOADS:
        used = {
            e["name"] for e in container(name).get("env", ()) if e["name"].startswith("PENSTOCK_")
        }
        assert used <= known, name


@pytest.mark.parametrize("name", WORKLOADS)
def test_pods_are_hardened(name: str) -> None:
    pod = WORKLOADS[name]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
    security = container(name)["securityContext"]
    assert (
        security["capabilities"] == {"drop": ["ALL"]}
        and security["allowPrivilegeEscalation"] is False
    )
    assert security.get("readOnlyRootFilesystem") or name == "kafka"
    assert container(name)["resources"]["limits"]["memory"]


def test_pods_reach_the_outside_only_where_they_have_to() -> None:
    policies = {
        o["metadata"]["name"]: o["spec"]
        for o in OBJECTS
        if o["kind"] == "NetworkPolicy" and "Egress" in o["spec"]["policyTypes"]
    }
    everybody = [p for p in policies.values() if p["podSelector"] == {}]
    assert everybody, "a pod without a policy of its own goes anywhere"
    for policy in everybody:
        assert not [t for rule in policy["egress"] for t in rule["to"] if "ipBlock" in t]
        assert all(rule.get("to") for rule in policy["egress"])
    open_to = [p for p in policies.values() if p["podSelector"] != {}]
    (selected,) = [p["podSelector"]["matchExpressions"][0] for p in open_to]
    assert (selected["key"], set(selected["values"])) == (
        "app",
        {"gateway", "notifier", "federation"},
    )
    blocks = {
        t["ipBlock"]["cidr"]: t["ipBlock"]["except"]
        for p in open_to
        for rule in p["egress"]
        for t in rule["to"]
    }
    closed = [ipaddress.ip_network(e) for excepted in blocks.values() for e in excepted]
    assert blocks.keys() == {"0.0.0.0/0", "::/0"}
    for metadata in (
        "169.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "168.63.129.16",
        "fd00:ec2::254",
        "127.0.0.1",
        "::1",
        "fe80::1",
    ):
        address = ipaddress.ip_address(metadata)
        assert [n for n in closed if n.version == address.version and address in n], metadata


def test_names_that_are_used_exist() -> None:
    services = {o["metadata"]["name"]: o for o in OBJECTS if o["kind"] == "Service"}
    claims = {o["metadata"]["name"] for o in OBJECTS if o["kind"] == "PersistentVolumeClaim"}
    for service in services.values():
        assert service["spec"]["selector"]["app"] in WORKLOADS
    for name, workload in WORKLOADS.items():
        spec = workload["spec"]
        assert spec.get("serviceName", name) in services or workload["kind"] == "Job"
        pod = spec["template"]["spec"]
        volumes = {v["name"]: v for v in pod.get("volumes", ())} | {
            v["metadata"]["name"]: v for v in spec.get("volumeClaimTemplates", ())
        }
        assert {m["name"] for m in container(name)["volumeMounts"]} == volumes.keys(), name
        assert {
            v["persistentVolumeClaim"]["claimName"]
            for v in volumes.values()
            if "persistentVolumeClaim" in v
        } <= claims
