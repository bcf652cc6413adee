"""Whether the JVMs of a mesh use what they have learned, or write it down."""

from __future__ import annotations

from penstock.mesh.layout import Layout
from penstock.setup.aot_cache import cache_options, recording_options
from penstock.setup.java import Java
from penstock.setup.jvm_programs import JvmProgram


def learned_options(layout: Layout, java: Java, program: JvmProgram) -> list[str]:
    """Return the options of *program* in this mesh: those that record in a training run, and else
    those that use its cache.
    """
    if layout.recordings.is_dir():
        return recording_options(program, layout.recordings)
    return cache_options(java, program)
