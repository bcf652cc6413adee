"""Certificates for 127.0.0.1 and localhost, made for a test by an authority of its own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme


@dataclass(frozen=True)
class Certificate:
    """PEM files: the authority's certificate, the server's chain, and its key."""

    ca: Path
    cert: Path
    key: Path


def issued(
    directory: Path, *, authority: trustme.CA | None = None, expired: bool = False
) -> Certificate:
    """A certificate in *directory*, of *authority* or of a new one."""
    authority = authority or trustme.CA()
    until = (
        {
            "not_before": datetime.now(UTC) - timedelta(days=30),
            "not_after": datetime.now(UTC) - timedelta(days=9),
        }
        if expired
        else {}
    )
    made = authority.issue_cert("127.0.0.1", "localhost", **until)
    directory.mkdir(exist_ok=True)
    files = Certificate(directory / "ca.pem", directory / "cert.pem", directory / "key.pem")
    authority.cert_pem.write_to_path(str(files.ca))
    files.cert.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
    made.private_key_pem.write_to_path(str(files.key))
    return files
