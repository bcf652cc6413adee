"""One user's view of the mesh: the catalog as far as they may see it, and what they may do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import redis

from penstock.auth.access import Access, visible
from penstock.catalog.model import Right
from penstock.catalog.principals import Target
from penstock.catalog.view import Catalog


@dataclass(frozen=True)
class Viewer:
    """Who asks, and where the answers come from."""

    whole: Callable[[], Catalog]
    redis: redis.Redis
    access: Access
    user: str

    @property
    def catalog(self) -> Catalog:
        """Return the catalog as far as the user may see it."""
        return visible(self.whole(), self.access, self.user)

    def may(self, right: Right, target: Target) -> bool:
        """Tell whether the user has *right* on *target*; None is everything."""
        return self.access.may(self.user, right, target)

    def manages(self, name: str) -> bool:
        """Tell whether the user may see what concerns the user *name*: oneself, or with ADMIN."""
        return name == self.user or self.may("ADMIN", None)
