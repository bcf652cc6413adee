"""What is said of one route: parameters, bodies, answers, errors, and who may ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from gateway.api.shapes import TEXT, Shape
from gateway.notices import HEADER

JSON = "application/json"
PLAIN = "text/plain"
PROTOBUF = "application/x-protobuf"


class LoginSpec(Enum):
    """How a caller is recognised: by names of security schemes, of which one has to do.

    Schemes in one tuple go together.
    """

    USER = (("basic",), ("bearer",), ("session",), ("queryUser", "queryPassword"), ("queryToken",))
    OPTIONAL_USER = (("basic",), ("bearer",), ("queryUser", "queryPassword"), ("queryToken",), ())
    OPTIONAL_SESSION = (("session",), ())
    METRICS = (("metricsKey",), ())
    GATEWAY = (("gatewayKey",),)
    NOBODY = ((),)


class ErrorForm(Enum):
    """Forms of errors: ours, and those that clients of other systems read. Name of the shape, and
    media type.
    """

    OURS = ("Problem", JSON)
    TDENGINE = ("TdengineProblem", JSON)
    TDENGINE_2 = ("Tdengine2Problem", JSON)
    INFLUX_1 = ("Influx1Problem", JSON)
    INFLUX_2 = ("Influx2Problem", JSON)
    OTLP = ("OtlpProblem", JSON)
    REGISTRY = ("RegistryProblem", "application/vnd.schemaregistry.v1+json")


@dataclass(frozen=True)
class ParameterSpec:
    """A part of the path or query, or a header."""

    name: str
    description: str
    shape: Shape = field(default_factory=lambda: TEXT)
    place: Literal["path", "query", "header"] = "query"
    required: bool = False


@dataclass(frozen=True)
class AnswerSpec:
    """A good answer; *content* has a shape for each media type that it may come in."""

    description: str
    content: Mapping[str, Shape] = field(default_factory=dict)
    headers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Body:
    """What is sent; *content* has a shape for each media type that is taken."""

    content: Mapping[str, Shape]
    required: bool = True


@dataclass(frozen=True)
class Operation:
    """One method of one path.

    `errors` are the statuses of refusals that only this operation has; those of the guard, which
    everybody passes, come with `login`.
    """

    id: str
    tag: str
    summary: str
    answers: Mapping[int, AnswerSpec]
    description: str = ""
    parameters: tuple[ParameterSpec, ...] = ()
    body: Body | None = None
    errors: tuple[int, ...] = ()
    form: ErrorForm = ErrorForm.OURS
    login: LoginSpec = LoginSpec.USER
    #: between services: no business of clients
    internal: bool = False


#: method and path of a route, as the gateway mounts it
Route = tuple[str, str]
Operations = Mapping[Route, Operation]


def path_part(name: str, description: str, shape: Shape = TEXT) -> ParameterSpec:
    """Return a parameter that is part of the path."""
    return ParameterSpec(name, description, shape, "path", required=True)


def json_answer(shape: Shape, description: str = "OK") -> dict[int, AnswerSpec]:
    """Return the answers of an operation that answers 200 with JSON."""
    return {200: AnswerSpec(description, {JSON: shape})}


#: of an answer to a write that was taken whole, but perhaps not as it was meant
NOTICE = HEADER
WRITTEN = {204: AnswerSpec("Kafka has all points on all in-sync replicas.", headers=(NOTICE,))}
IDEMPOTENCY = ParameterSpec(
    "Idempotency-Key",
    "The same rows may be sent again under the same key, and count once.",
    place="header",
)
TRACE = ParameterSpec(
    "X-Trace-Id", "An id that follows the write through all services.", place="header"
)
ZONE = ParameterSpec("tz", "Time zone in which times without one are read and shown; UTC.")
