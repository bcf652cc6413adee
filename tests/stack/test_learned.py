"""Both JVMs of a mesh start from what they have learned. Java says nothing where it cannot use a
cache, for one because of an option that it was not made with, and starts without.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from penstock.mesh.running import RunningMesh
from penstock.setup.aot_cache import FIRST_JAVA, cache_file, is_trained
from penstock.setup.java import find_java
from penstock.setup.jvm_programs import broker, spark

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc"),
    pytest.mark.skipif(find_java().version < FIRST_JAVA, reason="this Java does not learn"),
]


def test_both_jvms_have_their_caches_in_memory(mesh: RunningMesh) -> None:
    assert is_trained(find_java(), (broker(), spark())), "`make setup` trains"
    for service, program in (("kafka", broker()), ("spark", spark())):
        jvm = next(process for process in mesh.processes(service) if process.name() == "java")
        cache = cache_file(find_java(), program)
        assert str(cache) in Path(f"/proc/{jvm.pid}/maps").read_text(), program.name
