"""`python -m spark_jobs`: the stream jobs' driver."""

from __future__ import annotations

import os

# before whatever loads it
import penstock.runtime.lean_imports  # noqa: F401
from spark_jobs.app import run
from spark_jobs.settings import SparkSettings

if __name__ == "__main__":
    # a dead JVM leaves threads of py4j that never end
    os._exit(run(SparkSettings.from_command_line()))
