"""What variables say of how spans are sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.telemetry.options import TraceOptions
from penstock.telemetry.sampler import Sampler

_BASE = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318/"}


def _read(**variables: str) -> TraceOptions:
    found = TraceOptions.read(_BASE | variables, "gateway")
    assert found is not None
    return found


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "  "},
        {"OTEL_SERVICE_NAME": "mine", "OTEL_TRACES_SAMPLER": "nonsense"},
        {**_BASE, "OTEL_SDK_DISABLED": "TRUE"},
        {**_BASE, "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_without_an_endpoint_nothing_is_sent(variables: dict[str, str]) -> None:
    assert TraceOptions.read(variables, "gateway") is None


def test_defaults_are_the_standard_ones() -> None:
    found = _read()
    assert found.endpoint == "http://collector:4318/v1/traces"
    assert found.service_name == "penstock-gateway"
    assert found.sampler == Sampler(1.0, by_parent=True)
    assert (found.timeout, found.delay, found.queue, found.batch) == (10.0, 5.0, 2048, 512)
    assert (found.headers, found.resource, found.gzip) == ((), (), False)


def test_variables_of_traces_come_before_those_of_all_signals() -> None:
    found = _read(
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="https://[::1]:9/take?".rstrip("?"),
        OTEL_EXPORTER_OTLP_HEADERS="a=1",
        OTEL_EXPORTER_OTLP_TRACES_HEADERS="api-key=s%3Dcret, X-Tenant = t ,",
        OTEL_EXPORTER_OTLP_TIMEOUT="1",
        OTEL_EXPORTER_OTLP_TRACES_TIMEOUT="2500",
        OTEL_EXPORTER_OTLP_COMPRESSION="gzip",
        OTEL_EXPORTER_OTLP_CERTIFICATE="/etc/ca.pem",
        OTEL_EXPORTER_OTLP_PROTOCOL="grpc",
        OTEL_EXPORTER_OTLP_TRACES_PROTOCOL="http/protobuf",
        OTEL_SERVICE_NAME="shop",
        OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test,service.name=other",
        OTEL_BSP_MAX_QUEUE_SIZE="100",
    )
    assert found.endpoint == "https://[::1]:9/take"
    assert found.headers == (("api-key", "s=cret"), ("X-Tenant", "t"))
    assert (found.timeout, found.gzip, found.certificate) == (2.5, True, Path("/etc/ca.pem"))
    assert found.service_name == "shop"
    assert dict(found.resource)["deployment.environment.name"] == "test"
    assert (found.queue, found.batch) == (100, 100)


def test_a_name_may_stand_among_the_attributes() -> None:
    found = _read(OTEL_RESOURCE_ATTRIBUTES="service.name=shop")
    assert (found.service_name, found.resource) == ("shop", ())


@pytest.mark.parametrize(
    ("name", "argument", "wanted"),
    [
        ("always_on", "", Sampler(1.0, by_parent=False)),
        ("parentbased_always_off", "", Sampler(0.0)),
        ("traceidratio", "0.25", Sampler(0.25, by_parent=False)),
        ("parentbased_traceidratio", "", Sampler(1.0)),
    ],
)
def test_samplers(name: str, argument: str, wanted: Sampler) -> None:
    found = _read(OTEL_TRACES_SAMPLER=name, OTEL_TRACES_SAMPLER_ARG=argument)
    assert found.sampler == wanted


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "file:///etc/passwd"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:hunter2@collector"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:hunter2"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://collector/v1/traces?key=hunter2"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "hunter2"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "key=hunter2%0d%0aHost: other"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a b=hunter2"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "key=hünter2"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "-1"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "0"),
        ("OTEL_BSP_SCHEDULE_DELAY", "soon"),
        ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
    ],
)
def test_what_cannot_be_followed_is_said_by_name_and_without_secrets(
    variable: str, value: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        _read(**{variable: value})
    assert variable in str(caught.value)
    assert "hunter2" not in str(caught.value) and "hünter2" not in str(caught.value)


@pytest.mark.parametrize("argument", ["2", "-0.1", "nan", "half"])
def test_a_ratio_is_from_0_to_1(argument: str) -> None:
    with pytest.raises(ConfigError, match="OTEL_TRACES_SAMPLER_ARG"):
        _read(OTEL_TRACES_SAMPLER="traceidratio", OTEL_TRACES_SAMPLER_ARG=argument)


def test_headers_are_in_no_text() -> None:
    assert "hunter2" not in repr(_read(OTEL_EXPORTER_OTLP_HEADERS="api-key=hunter2"))
