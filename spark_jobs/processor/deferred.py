"""Records that nobody waits for, kept until there are enough of them to be worth working on."""

from __future__ import annotations

from spark_jobs.input import Records, concatenate


class Deferred:
    """Deferred records of one partition, in order."""

    def __init__(self) -> None:
        self._parts: list[Records] = []
        self.count = 0
        self.size = 0

    def add(self, records: Records) -> None:
        self._parts.append(records)
        self.count += len(records)
        self.size += sum(len(v) for v in records.values if v is not None)

    def take(self) -> Records:
        """Return all that was added; from here on there is none."""
        records = concatenate(self._parts)
        self._parts = []
        self.count = 0
        self.size = 0
        return records
