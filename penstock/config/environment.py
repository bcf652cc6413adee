"""Settings from environment variables: the only file that reads the environment."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource

#: in the environment of every process of a mesh, also of grandchildren: the data directory it
#: belongs to
MESH_VARIABLE = "PENSTOCK_MESH"
#: names the file from which Spark's workers get definitions
ENTRY_FILE_VARIABLE = "PENSTOCK_ENTRY_FILE"
PREFIX = "PENSTOCK_"
_OPENTELEMETRY = "OTEL_"


class UnreadableSecret(Exception):
    """A `…_FILE` variable names a file that cannot be read."""


class EnvironmentSource(PydanticBaseSettingsSource):
    """A service's variable, the shared one, and for secrets the file that either names; in this
    order.
    """

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        service = getattr(self.settings_cls, "service", "")
        for prefix in prefixes(service):
            variable = prefix + field_name.upper()
            if variable in os.environ:
                return os.environ[variable], field_name, self.field_is_complex(field)
            path = os.environ.get(f"{variable}_FILE")
            if path and _is_secret(field):
                try:
                    return Path(path).read_text(encoding="utf-8").rstrip("\r\n"), field_name, False
                except OSError as wrong:
                    raise UnreadableSecret(f"{variable}_FILE: {wrong.strerror}: {path}") from wrong
        theirs = getattr(self.settings_cls, "reference_names", {}).get(field_name, "")
        if theirs and theirs in os.environ:
            return os.environ[theirs], field_name, self.field_is_complex(field)
        return None, field_name, False

    def __call__(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, field in self.settings_cls.model_fields.items():
            value, _, is_complex = self.get_field_value(field, name)
            if value is not None:
                values[name] = _decode(value) if is_complex else value
        return values


def _decode(value: str) -> Any:
    """Read lists and maps as JSON; what is not JSON goes on as text, for pydantic to refuse by
    name.
    """
    try:
        return json.loads(value)
    except ValueError:
        return value


def _is_secret(field: FieldInfo) -> bool:
    return field.annotation is SecretStr or SecretStr in get_args(field.annotation)


def prefixes(service: str) -> tuple[str, ...]:
    """Return what variables of *service* begin with, the first to be looked up first."""
    return (f"{PREFIX}{service.upper()}_", PREFIX) if service else (PREFIX,)


def unknown_variables(service: str, fields: Iterable[str], shared: Iterable[str]) -> list[str]:
    """List the variables of *service* that are set and name none of its *fields*.

    Args:
        shared: fields that every service has.
    """
    if not service:
        return []
    prefix = prefixes(service)[0]
    known = {prefix + name.upper() for name in fields}
    known |= {PREFIX + name.upper() for name in shared}
    known |= {f"{name}_FILE" for name in known}
    return sorted(name for name in os.environ if name.startswith(prefix) and name not in known)


def own_mesh() -> str:
    """The data directory of the mesh that this process is part of; empty: of none."""
    return os.environ.get(MESH_VARIABLE, "")


def entry_file() -> str:
    """The file from which Spark's workers get definitions (`spark_jobs/entry_file.py`); empty:
    from none.
    """
    return os.environ.get(ENTRY_FILE_VARIABLE, "")


def opentelemetry_variables() -> dict[str, str]:
    """Return the variables by which OpenTelemetry's exporters are told what to do."""
    return {name: v for name, v in os.environ.items() if name.startswith(_OPENTELEMETRY)}
