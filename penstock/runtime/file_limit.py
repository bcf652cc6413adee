"""How many files and connections this process may have open."""

from __future__ import annotations

import resource


def raise_file_limit() -> None:
    """Let this process have as many connections as the machine's settings permit."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
