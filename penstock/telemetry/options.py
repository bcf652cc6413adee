"""How spans are sent, from the variables that OpenTelemetry has named: pure, so that a test can
pass a dictionary.

The target comes from here alone: no statement, record or request can name one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from penstock.errors import ConfigError
from penstock.telemetry.sampler import Sampler

_BASE = "OTEL_EXPORTER_OTLP_ENDPOINT"
_TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
_PATH = "/v1/traces"
_PROTOCOL = "http/protobuf"
_MOST = 1_000_000


@dataclass(frozen=True)
class TraceOptions:
    """`headers` may hold secrets: they are in no text that this object becomes."""

    endpoint: str
    service_name: str
    sampler: Sampler
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    resource: tuple[tuple[str, str], ...] = ()
    #: file of the authorities that the collector's certificate may be of, besides the machine's
    certificate: Path | None = None
    gzip: bool = False
    #: seconds that a request may take
    timeout: float = 10.0
    #: seconds until spans that are few leave
    delay: float = 5.0
    #: spans that wait, and spans of one request, at most
    queue: int = 2048
    batch: int = 512

    @classmethod
    def read(cls, variables: Mapping[str, str], service: str) -> TraceOptions | None:
        """Return what *variables* say, or None when they name no endpoint or turn traces off.

        Args:
            service: what this process is, when OTEL_SERVICE_NAME does not say it.

        Raises:
            ConfigError: one of them cannot be followed; without its value where that is a secret.
        """
        given = {name: value.strip() for name, value in variables.items() if value.strip()}
        endpoint = _endpoint(given)
        if endpoint is None or _is_off(given):
            return None
        _require_protocol(given)
        certificate = _of_traces(given, "CERTIFICATE")
        resource = dict(_pairs(given, "OTEL_RESOURCE_ATTRIBUTES"))
        name = given.get("OTEL_SERVICE_NAME") or resource.pop("service.name", "")
        queue = int(_number(given, "OTEL_BSP_MAX_QUEUE_SIZE", 2048))
        return cls(
            endpoint,
            name or f"penstock-{service}",
            Sampler.by_name(
                given.get("OTEL_TRACES_SAMPLER", "parentbased_always_on"),
                given.get("OTEL_TRACES_SAMPLER_ARG", ""),
            ),
            _headers(given),
            tuple(resource.items()),
            Path(certificate) if certificate else None,
            _of_traces(given, "COMPRESSION") == "gzip",
            _number(given, _traces_variable(given, "TIMEOUT"), 10_000) / 1000,
            _number(given, "OTEL_BSP_SCHEDULE_DELAY", 5000) / 1000,
            queue,
            min(int(_number(given, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512)), queue),
        )


def _is_off(given: Mapping[str, str]) -> bool:
    return (
        given.get("OTEL_SDK_DISABLED", "").lower() == "true"
        or given.get("OTEL_TRACES_EXPORTER", "otlp") == "none"
    )


def _endpoint(given: Mapping[str, str]) -> str | None:
    """Return where spans go: the variable for traces as it stands, or the one for all signals with
    the path of traces. Raises ConfigError.
    """
    variable = _TRACES if _TRACES in given else _BASE
    if variable not in given:
        return None
    if not _is_address(given[variable]):
        # an address may have a password in it: it is not repeated
        raise ConfigError(
            f"{variable} is no address of a collector",
            hint="http://HOST:4318 or https://…; a login goes to OTEL_EXPORTER_OTLP_HEADERS",
        )
    if variable == _TRACES:
        return given[variable]
    return given[variable].rstrip("/") + _PATH


def _is_address(text: str) -> bool:
    """Tell if *text* is a URL of a machine and a path alone."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return False
    return bool(usable) and not (parts.username or parts.query or parts.fragment)


def _traces_variable(given: Mapping[str, str], what: str) -> str:
    own = f"OTEL_EXPORTER_OTLP_TRACES_{what}"
    return own if own in given else f"OTEL_EXPORTER_OTLP_{what}"


def _of_traces(given: Mapping[str, str], what: str) -> str:
    return given.get(_traces_variable(given, what), "")


def _require_protocol(given: Mapping[str, str]) -> None:
    """Raise ConfigError when another protocol than ours is asked for."""
    variable = _traces_variable(given, "PROTOCOL")
    if given.get(variable, _PROTOCOL) != _PROTOCOL:
        raise ConfigError(
            f"{variable}: spans are sent by {_PROTOCOL} only",
            detail=given[variable][:100],
            hint="collectors take it at port 4318",
        )


def _headers(given: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the headers of requests. Raises ConfigError for what no header may be."""
    variable = _traces_variable(given, "HEADERS")
    found = _pairs(given, variable)
    for name, value in found:
        token = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
        if not token or not value.isascii() or not value.isprintable():
            raise ConfigError(f"{variable} has something that is no header")
    return found


def _pairs(given: Mapping[str, str], variable: str) -> tuple[tuple[str, str], ...]:
    """Read `name=value,name=value`, values with %-escapes. Raises ConfigError, without values."""
    found = []
    for part in given.get(variable, "").split(","):
        name, equals, value = part.partition("=")
        if part.strip():
            if not equals or not name.strip():
                raise ConfigError(f"{variable} is a list of name=value, with commas between them")
            found.append((unquote(name.strip()), unquote(value.strip())))
    return tuple(found)


def _number(given: Mapping[str, str], variable: str, default: int) -> float:
    text = given.get(variable, str(default))
    if not (text.isascii() and text.isdigit() and 0 < int(text[:12]) <= _MOST):
        raise ConfigError(
            f"{variable} is a whole number from 1 to {_MOST}", detail=text[:100], hint=str(default)
        )
    return int(text)
