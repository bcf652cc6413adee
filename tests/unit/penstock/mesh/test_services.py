from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.mesh import kafka, services
from penstock.mesh.layout import Layout, ports_from
from penstock.mesh.readiness import ask
from penstock.mesh.services import (
    Options,
    addresses,
    check_services,
    listeners,
    plan,
)
from penstock.mesh.standby import remark
from penstock.runtime.health import Health
from penstock.setup.java import Java
from penstock.setup.service_packages import PACKAGES


def test_unknown_services_are_named_together() -> None:
    with pytest.raises(ConfigError, match="attic: no such service; cellar: no such service"):
        check_services(("kafka", "attic", "cellar"))


@pytest.mark.parametrize(
    ("service", "names"),
    [
        ("kafka", ["kafka", "controller"]),
        ("redis", ["redis"]),
        ("spark", ["spark-health"]),
        ("spark2", ["spark2-health"]),
        ("gateway", ["gateway", "gateway-health"]),
    ],
)
def test_ports_a_service_binds(service: str, names: list[str]) -> None:
    assert listeners(service) == names


def test_the_postgresql_wire_has_a_port_when_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_GATEWAY_POSTGRES", "true")
    assert listeners("gateway") == ["gateway", "postgres", "gateway-health"]


def test_addresses_never_hold_a_password(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.make()
    found = addresses(layout, ports_from(9000))
    assert found["PENSTOCK_KAFKA_BOOTSTRAP"] == "127.0.0.1:9003"
    for name in ("root", "redis", "kafka"):
        assert layout.secret(name).read_text().strip() not in str(found)


def test_what_a_service_waits_for_is_shown() -> None:
    with Health("attic", wait_for=("catalog",)) as health:
        assert ask(health.port) == "catalog: not started yet"
        health.ready("catalog")
        assert ask(health.port) == ""
    assert ask(health.port) == "its health port"


def test_every_service_has_a_package() -> None:
    assert list(PACKAGES) == ["gateway", "store", "spark", "notifier", "snode", "federation"]


def test_kafka_has_a_login_unless_it_is_open_or_elsewhere(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    ports = ports_from(9000)
    layout.make()
    found = addresses(layout, ports)
    assert (found["PENSTOCK_KAFKA_SECURITY"], found["PENSTOCK_KAFKA_USERS"]) == (
        "SASL_PLAINTEXT",
        "true",
    )
    assert kafka.options(found)["sasl.password"] == layout.secret("kafka").read_text().strip()
    opened = addresses(layout, ports, open_kafka=True)
    assert (opened["PENSTOCK_KAFKA_SECURITY"], opened["PENSTOCK_KAFKA_USERS"]) == (
        "PLAINTEXT",
        "false",
    )
    assert kafka.options(opened) == {}
    assert not {
        name
        for name in addresses(layout, ports, ("gateway",))
        if name.startswith("PENSTOCK_KAFKA_S")
    }


def test_a_standby_is_a_second_process_of_the_jobs_with_a_health_port_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "find_java", lambda: Java(tmp_path, 17))
    monkeypatch.setattr(services, "learned_options", lambda layout, java, program: ["-XX:Learned"])
    monkeypatch.setattr(services, "spark_java_home", lambda java, home: home)
    layout = Layout(tmp_path)
    layout.make()
    options = Options(("kafka", "redis", "spark"), standby=True)
    by_name = {s.name: s for s in plan(layout, ports_from(9000), options)}
    assert list(by_name) == list(options.all_services) == ["kafka", "redis", "spark", "spark2"]
    first = by_name["spark"]
    second = by_name["spark2"]
    assert (first.twin, second.twin) == ("spark2", "spark")
    assert second.needs == ("kafka", "redis", "spark")
    own = {"PENSTOCK_SPARK_HEALTH_PORT": "9015"}
    assert second.environment == {**first.environment, **own}


def test_without_jobs_there_is_no_standby_of_them() -> None:
    assert Options(("kafka", "store"), standby=True).all_services == ("kafka", "store")


def test_what_a_ready_service_says_of_itself_is_shown() -> None:
    with Health("spark", wait_for=("queries",)) as health:
        assert remark(health.port) == ""
        health.ready("queries", True, "node 1 runs the jobs")
        assert remark(health.port) == "node 1 runs the jobs"
    assert remark(health.port) == ""
