"""Which backups stay: the newest few, and the newest of every hour and of every day for a while.
Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.storage.backup_list import Backup

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS


def superfluous(backups: Sequence[Backup], *, newest: int, hours: int, days: int) -> list[Backup]:
    """The backups to remove of one subject.

    Hours and days are counted back from the newest backup, not from a clock: a snode that was away
    for a week removes nothing for it.
    """
    ordered = sorted(backups, key=lambda b: (b.time, b.number), reverse=True)
    kept = {b.name for b in ordered[:newest]}
    if ordered:
        for length, count in ((_HOUR_MS, hours), (_DAY_MS, days)):
            last = ordered[0].time // length
            seen: set[int] = set()
            for backup in ordered:
                slot = backup.time // length
                if slot not in seen and last - slot < count:
                    seen.add(slot)
                    kept.add(backup.name)
    return [b for b in ordered if b.name not in kept]
