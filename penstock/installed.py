"""What this installation has: its version, extras, and the services of a mesh.

`pip install penstock` is the client. Each extra brings what more is needed, and `penstock-mesh` all
of a mesh; what is missing is told before anything starts, with the command that brings it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import ModuleType

from penstock.errors import ConfigError

#: what the command imports
CLI = ("prompt_toolkit", "psutil", "rich", "sqlglot", "typer")
#: what live tables of another deployment need (`penstock.uri`, `penstock.remote_table`)
REMOTE_TABLES = (
    "duckdb",
    "polars",
    "psutil",
    "pydantic",
    "pydantic_settings",
    "sqlglot",
    "structlog",
)
#: what the processes of a mesh import, besides what a client does
MESH = (
    "aiohttp",
    "argon2",
    "confluent_kafka",
    "cramjam",
    "duckdb",
    "fastavro",
    "faust",
    "fsspec",
    "httpcore",
    "httpx",
    "jwt",
    "pandas",
    "polars",
    "pooch",
    "prometheus_client",
    "psutil",
    "pydantic",
    "pydantic_settings",
    "pyruhvro",
    "redis",
    "requests",
    "sqlglot",
    "structlog",
    "uvloop",
    "zstandard",
)
#: what the stream jobs import beyond that; in containers only they have it
SPARK = ("py4j", "pyspark")
#: the folders of services, which a checkout has at its top and a wheel in `penstock_mesh`
SERVICES = ("gateway", "schemas", "services", "spark_jobs")


def version() -> str:
    """Return the version of this installation."""
    # reading the metadata of distributions costs more than all else here
    import importlib.metadata

    return importlib.metadata.version("penstock")


def load(module: str, extra: str) -> ModuleType:
    """Import a module that an extra brings. Raises ConfigError: it is not there."""
    require((module,), extra)
    return importlib.import_module(module)


def require(modules: tuple[str, ...], extra: str) -> None:
    """Raise ConfigError unless all *modules* of an extra are installed."""
    missing = _missing(modules)
    if missing:
        raise ConfigError(
            f"not installed: {', '.join(missing)}",
            hint=f"pip install 'penstock[{extra}]=={version()}'",
        )


def require_mesh(more: tuple[str, ...] = ()) -> None:
    """Have the services of a mesh ready to be imported.

    Args:
        more: modules that are needed, too.

    Raises:
        ConfigError: this is the client alone, or something that services import is not there.
    """
    place = _services_of_wheel()
    if place and place not in sys.path:
        sys.path.insert(0, place)
    missing = _missing((*SERVICES, *MESH, *more))
    if missing:
        raise ConfigError(
            "the mesh is not installed here",
            detail=f"missing: {', '.join(missing)}",
            hint=f"pip install 'penstock-mesh=={version()}', or `make setup` in a checkout",
        )


def service_path(inherited: str) -> dict[str, str]:
    """Return the variable by which child processes find the services of a wheel, before what their
    PYTHONPATH is already; a checkout needs none.
    """
    place = _services_of_wheel()
    if not place:
        return {}
    return {"PYTHONPATH": f"{place}{os.pathsep}{inherited}" if inherited else place}


def _services_of_wheel() -> str:
    """Return the folder in which a wheel has the services; "" in a checkout."""
    packed = importlib.util.find_spec("penstock_mesh")
    places = packed.submodule_search_locations if packed is not None else None
    return next(iter(places)) if places else ""


def _missing(modules: tuple[str, ...]) -> list[str]:
    # one that is imported is there, whatever it has made of itself: faust's has no spec any more
    return [
        module
        for module in modules
        if sys.modules.get(module) is None and importlib.util.find_spec(module) is None
    ]
