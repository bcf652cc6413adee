"""The table that results go to: a new supertable's columns and tags, or how they map to those of
one that exists; names of its children.
"""

from penstock.sql.planning.target.planning import plan_target
from penstock.sql.planning.target.request import PlannedTarget, TargetRequest, check_name
from penstock.sql.planning.target.tags import match_tags

__all__ = ["PlannedTarget", "TargetRequest", "check_name", "match_tags", "plan_target"]
