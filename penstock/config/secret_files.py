"""Secrets in files."""

from __future__ import annotations

from pathlib import Path

from penstock.errors import ConfigError


def read_secret(path: Path, variable: str) -> str:
    """Read the secret in a file, without its line end.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as wrong:
        raise ConfigError(
            f"no secret in {path}",
            detail=str(wrong.strerror),
            hint=f"set {variable}, or start with `penstock up`",
        ) from wrong
