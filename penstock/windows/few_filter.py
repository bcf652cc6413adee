"""A few rows through a stream without a window, without frames.

Owns plans whose results are plain columns of source rows, and whose groups follow from the table
(`few_filter`). Rows of a group that is new, or two of one result, send all rows of the call to the
kernel's own way. Nothing is kept here.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.rows.rows import Rows
from penstock.windows.emit.few_results import FewLayout, FewResults, Picked
from penstock.windows.emit.result import Results
from penstock.windows.groups.groups import Groups


class FewFilter:
    """The short way of one filter kernel, over its groups."""

    def __init__(
        self,
        picked: Picked,
        groups: Groups,
        results: Results,
        layout: FewLayout,
        identity: Sequence[str],
    ) -> None:
        """*identity*: the columns of the target that tell its rows apart."""
        self._picked = picked
        self._groups = groups
        self._layout = layout
        self._reads = results.reads
        self._time = results.time
        self._identity = identity

    def publish(self, rows: Rows) -> FewResults | None:
        """Return the results of *rows*, or None if the kernel's own way has to make them."""
        picked = self._picked.of(rows)
        if picked is None:
            return None
        if not len(picked):
            return self._layout.none
        groups = [self._groups.of_table(name) for name in picked.column("tbname")]
        if min(groups) < 0:
            return None
        read = {name: picked.column(name) for name in self._reads}
        made = self._layout.upserts(read, [self._groups.targets.one(group) for group in groups])
        if None in made.rows.column(self._time):
            return None
        keys = set(zip(*(made.rows.column(name) for name in self._identity), strict=True))
        return made if len(keys) == len(picked) else None


def few_filter(
    picked: Picked, groups: Groups, results: Results, identity: Sequence[str]
) -> FewFilter | None:
    """Return the short way of a kernel made of these, or None if its plan has none."""
    if results.few is None or not groups.common:
        return None
    return FewFilter(picked, groups, results, results.few, identity)
