"""How every process of ours that handles rows asks the system for memory: variables that its
libraries read when they start.

Arrow's own allocator keeps what it once had, for each thread and size apart: a stream job's worker
that passes small batches from one thread to another grew by a megabyte a minute and more with
nothing alive in it (docs/performance.md). The C library's gives back what is free at the end of its
arenas, of which two are enough: services are many processes with few busy threads.
"""

from __future__ import annotations

from types import MappingProxyType

#: the images have the same (Dockerfile)
ALLOCATORS = MappingProxyType({"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"})
