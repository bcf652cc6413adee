"""One consumer over all topics at rest: it tells of each to which a record comes, and reads no
more of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from penstock.bus import Reader
from penstock.errors import BusError
from penstock.runtime import log, vital

#: a consumer serves one thread at a time, and another one would wait for it for ever: what is to be
#: watched, and what no longer, it hears of between two reads, and the broker with the next question
_READ_SECONDS = 1.0
_AGAIN_SECONDS = 1.0

_log = log.get(__name__)


class SleepWatch:
    """Its thread and its consumer begin with the first topic."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._new: dict[tuple[str, int], int] = {}
        self._gone: set[tuple[str, int]] = set()
        self._partitions: dict[str, int] = {}
        self._woken: list[str] = []
        self._listener: Callable[[], None] = lambda: None
        self._halt = threading.Event()

    def listen(self, listener: Callable[[], None]) -> None:
        """Have *listener* called, in the watch's thread, when `take_woken` has something."""
        self._listener = listener

    def add(self, ends: Mapping[str, Sequence[int]]) -> None:
        """Watch topics from here on: the offset behind the last record known, by partition."""
        offsets = {(t, p): end for t, found in ends.items() for p, end in enumerate(found)}
        if not offsets:
            return
        with self._lock:
            self._partitions.update({t: len(found) for t, found in ends.items()})
            self._new.update(offsets)
        if self._thread is None:
            self._thread = threading.Thread(target=self._follow, name="watch", daemon=True)
            self._thread.start()

    def remove(self, topics: Iterable[str]) -> None:
        """Watch these topics no longer."""
        with self._lock:
            self._remove(topics)

    def take_woken(self) -> list[str]:
        """Return the topics to which something has come, which are not watched any more."""
        with self._lock:
            woken, self._woken = self._woken, []
        return woken

    def close(self) -> None:
        """End the thread soon."""
        self._halt.set()

    def _remove(self, topics: Iterable[str]) -> None:
        places = {(t, p) for t in topics for p in range(self._partitions.pop(t, 0))}
        self._gone |= places - self._new.keys()
        for place in places & self._new.keys():
            del self._new[place]

    @vital.run
    def _follow(self) -> None:
        with Reader(
            self._bootstrap,
            {},
            client_id="spark-watch",
            queue_bytes=1 << 20,
            queue_records=1,
        ) as reader:
            while not self._halt.is_set():
                self._change(reader)
                try:
                    # one at a time: an error says nothing of what came with it
                    for batch in reader.read(1, _READ_SECONDS):
                        self._tell(batch.topic)
                except BusError as error:
                    _log.info("a topic at rest cannot be watched", error=str(error))
                    if error.topic:
                        self._tell(error.topic)
                    else:
                        self._halt.wait(_AGAIN_SECONDS)

    def _change(self, reader: Reader) -> None:
        with self._lock:
            new, self._new = self._new, {}
            gone, self._gone = self._gone, set()
        if gone:
            reader.remove(gone)
        reader.add(new)

    def _tell(self, topic: str) -> None:
        with self._lock:
            if topic not in self._partitions:
                return
            self._remove([topic])
            self._woken.append(topic)
        self._listener()
