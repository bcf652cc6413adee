"""What the schema registry is told to ask of new versions."""

from __future__ import annotations

from dataclasses import dataclass

#: in the place of a table's id: for all tables that have no level of their own
EVERY_TABLE = 0


@dataclass(frozen=True)
class CompatibilityLevel:
    """The compatibility level (`BACKWARD`, …) of a table's subject, or of all subjects. Ids of
    tables are never used again.
    """

    id: int
    table_id: int
    level: str

    @property
    def name(self) -> str:
        return f"compatibility{self.table_id}"
