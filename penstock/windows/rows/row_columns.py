"""The columns of source rows: those that tell rows from each other, and those that hold values."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.sql.plan import Source


@dataclass(frozen=True)
class RowColumns:
    """Names of the columns of one source's rows, without tags."""

    #: the child table's name, the time and, where there is one, the composite key
    identity: list[str]
    #: the others, in the source's order
    values: list[str]

    @classmethod
    def of(cls, source: Source) -> RowColumns:
        """Return the columns of the rows of *source*."""
        key = [source.key_column] if source.key_column else []
        identity = ["tbname", source.time_column, *key]
        return cls(identity, [c.name for c in source.columns if c.name not in identity])

    @property
    def time(self) -> str:
        """The time column."""
        return self.identity[1]
