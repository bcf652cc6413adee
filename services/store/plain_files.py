"""Tables whose rows DuckDB can read as they are: no row replaces another, and all files have the
same columns. DuckDB then needs not look at each file before it begins.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from penstock.storage.segments import Segment
from services.store.footers import footer


def find(
    files: Sequence[Segment], columns: Collection[str], precision: str
) -> Sequence[Segment] | None:
    """Return the files if they hold all rows of a table and no others; None: more than reading them
    is needed.

    Args:
        columns: names that each file must have.
        precision: of the table's times.
    """
    if not files or not all(segment.fresh for segment in files):
        return None
    about = {footer(segment.path, precision) for segment in files}
    first = next(iter(about))
    if len(about) > 1 or first.far_times:
        return None
    return files if {*columns} <= {name for name, _ in first.columns} else None
